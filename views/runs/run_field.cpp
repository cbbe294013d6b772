#include "views/runs/run_field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/train/metric.h"
#include "projects/finish.h"

namespace tenon::views {

namespace {
RunValue number(double x) { return {true, x, {}}; }
RunValue words(const std::string& text) { return {false, 0, text}; }
}  // namespace

const std::vector<std::pair<std::string, RunField::Kind>>& own_fields() {
  using Kind = RunField::Kind;
  static const auto& all = *new std::vector<std::pair<std::string, Kind>>{
      {"name", Kind::name},       {"status", Kind::status}, {"steps", Kind::steps},     {"total", Kind::total},
      {"seconds", Kind::seconds}, {"time", Kind::seconds},  {"created", Kind::created}, {"error", Kind::error},
      {"note", Kind::note},       {"tags", Kind::tags},     {"tag", Kind::tags}};
  return all;
}

std::string RunField::text() const {
  if (kind == Kind::recipe) return key;
  if (kind == Kind::last) return "last." + key;
  if (kind == Kind::best) return "best." + key;
  for (const auto& [word, own] : own_fields())
    if (own == kind) return word;
  return {};
}

const std::string& RunField::metric() const {
  static const std::string none;
  return kind == Kind::last || kind == Kind::best ? key : none;
}

std::optional<RunValue> value_of(const RunField& field, const RunRow& row) {
  using Kind = RunField::Kind;
  switch (field.kind) {
    case Kind::name:
      return words(row.info.name);
    case Kind::status:
      return words(projects::status_text(row.info));
    case Kind::steps:
      return number(static_cast<double>(row.info.steps));
    case Kind::total:
      return number(static_cast<double>(row.info.total_steps));
    case Kind::seconds:
      return number(row.info.seconds);
    case Kind::created:
      return words(row.info.created);
    case Kind::error:
      return words(row.info.error);
    case Kind::note:
      return words(row.info.note);
    case Kind::tags:
      return words(tags_text(row.info));
    case Kind::recipe:
      if (const RunValue* v = row.recipe.find(field.key)) return *v;
      return {};
    case Kind::last:
    case Kind::best:
      if (const MetricEnd* end = row.metrics.find(field.key)) {
        const double x = field.kind == Kind::last ? end->last : end->best;
        if (field.kind == Kind::last || std::isfinite(x)) return number(x);
      }
      return {};
  }
  return {};
}

namespace {
std::optional<std::string> metric_named(const RunFields& fields, const std::string& name) {
  for (const std::string& full : {name, "test_" + name})
    if (fields.metrics.count(full)) return full;
  return {};
}

[[noreturn]] void unknown(const RunFields& fields, const std::string& text) {
  std::vector<std::string> all(fields.keys.begin(), fields.keys.end());
  for (const std::string& k : fields.keys)
    if (const size_t dot = k.rfind('.'); dot != k.npos) all.push_back(k.substr(dot + 1));
  for (const std::string& m : fields.metrics) {
    all.push_back("last." + m);
    if (better(m) != 0) all.push_back("best." + m);
  }
  for (const auto& own : own_fields()) all.push_back(own.first);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const std::string near = near_names(text, all.data(), all.size());
  throw Error::usage("\"" + text + "\", which no run has",
                     near.empty() ? "Fields are name, status, steps, seconds, created, tags, note, keys of the recipe, "
                                    "last.METRIC and best.METRIC."
                                  : near);
}
}  // namespace

RunField field_named(const RunFields& fields, const std::string& text) {
  for (const auto& [word, kind] : own_fields())
    if (text == word) return {kind, {}};
  if (text.starts_with("last.") || text.starts_with("best.")) {
    const auto m = metric_named(fields, text.substr(5));
    if (!m) unknown(fields, text);
    if (text[0] == 'b' && better(*m) == 0)
      throw Error::usage("best." + *m + ", which has no better and worse", "Ask for last." + *m + ".");
    return {text[0] == 'b' ? RunField::Kind::best : RunField::Kind::last, *m};
  }
  if (fields.keys.count(text)) return {RunField::Kind::recipe, text};
  std::vector<std::string> ends;
  for (const std::string& k : fields.keys)
    if (k.ends_with("." + text)) ends.push_back(k);
  if (ends.size() == 1) return {RunField::Kind::recipe, ends[0]};
  if (ends.size() > 1)
    throw Error::usage(fmt::format("\"{}\", which may be {}", text, fmt::join(ends, " or ")), "Write the whole key.");
  if (auto m = metric_named(fields, text)) return {RunField::Kind::last, *m};
  unknown(fields, text);
}

std::vector<RunField> told_fields(const RunRows& rows) {
  std::vector<RunField> out;
  if (rows.empty()) return out;
  for (const std::string& key : differing_keys(rows)) out.push_back({RunField::Kind::recipe, key});
  return out;
}

std::optional<RunField> main_field(const RunRows& rows) {
  std::optional<RunField> most;
  size_t most_values = 0;
  for (const RunField& f : told_fields(rows)) {
    std::set<double> values;
    bool numbers = true;
    for (const auto& r : rows)
      if (const auto v = value_of(f, *r)) {
        numbers &= v->number;
        values.insert(v->x);
      }
    const size_t n = numbers ? values.size() : 1;  // words are better to group by
    if (!most || n > most_values) {
      most = f;
      most_values = n;
    }
  }
  return most;
}

std::vector<RunField> varied_fields(const RunRows& rows) {
  std::vector<RunField> fields = told_fields(rows);
  std::erase_if(fields, [&](const RunField& f) {
    std::optional<RunValue> first;
    for (const auto& r : rows) {
      const auto v = value_of(f, *r);
      if (v && first && !(*v == *first)) return false;
      if (v && !first) first = v;
    }
    return true;
  });
  return fields;
}

int result_rank(const std::string& metric) {
  return (metric.starts_with("test_") ? 0 : 2) + (better(metric) > 0 ? 0 : 1);
}

std::vector<RunField> result_fields(const RunRows& rows) {
  std::set<std::string> metrics;
  for (const auto& r : rows) metrics.insert(r->metrics.keys().begin(), r->metrics.keys().end());
  std::vector<std::string> judged;
  for (const std::string& m : metrics)
    if (better(m) != 0) judged.push_back(m);
  std::stable_sort(judged.begin(), judged.end(),
                   [](const std::string& a, const std::string& b) { return result_rank(a) < result_rank(b); });
  std::vector<RunField> out;
  for (const std::string& m : judged)
    for (const RunField::Kind kind : {RunField::Kind::best, RunField::Kind::last}) out.push_back({kind, m});
  out.push_back({RunField::Kind::steps, {}});
  out.push_back({RunField::Kind::seconds, {}});
  return out;
}

}  // namespace tenon::views
