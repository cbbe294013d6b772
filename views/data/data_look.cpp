#include "views/data/data_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "engine/train/open_data.h"
#include "engine/train/recipe.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

std::string sample_type(const Meta& m) { return fmt::format("{} {}", name(m.dtype), to_string(m.shape)); }

/// The rows that were asked for, and the first ones.
void take_samples(const data::Dataset& set, bool train, std::vector<int64_t> rows, int64_t most, DataLook& look) {
  std::erase_if(rows, [&](int64_t row) { return row >= set.size(); });
  for (int64_t row = 0; row < std::min(most, set.size()); ++row)
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  for (int64_t row : rows) {
    look.samples.push_back({train, row, target_text(set, row), set.source(row)});
  }
}

Table::Cell value_cell(double v) {
  Table::Cell c = Table::Cell::number(v, format_value(v));
  c.tip = format_exact(v);
  return c;
}

Table::Cell count_cell(int64_t n) { return Table::Cell::number(static_cast<double>(n), format_grouped(n)); }

}  // namespace

std::string target_text(const data::Dataset& set, int64_t row) {
  const Tensor y = data::fetch(set, {row}).y;
  const Meta one = set.target();
  const int64_t n = one.shape.product();
  if (one.dtype == DType::i64 && n == 1) return set.class_name(y.data<int64_t>()[0]);
  if (one.dtype != DType::f32 || n > 8) return sample_type(one);
  std::string text;
  for (int64_t k = 0; k < n; ++k) text += (k ? ", " : "") + format_value(y.data<float>()[k]);
  return text;
}

std::optional<OfferedKey> offered_key(const std::string& hint, const Recipe& recipe) {
  static const std::regex pattern("(data\\.[a-z_]+) = ([A-Za-z0-9_-]+)");
  const std::vector<AttrDef> keys = recipe.used_keys();
  for (auto at = std::sregex_iterator(hint.begin(), hint.end(), pattern); at != std::sregex_iterator(); ++at) {
    const std::string key = (*at)[1], value = (*at)[2];
    for (const AttrDef& def : keys)
      if (def.name == key && std::find(def.choices.begin(), def.choices.end(), value) != def.choices.end() &&
          attr_text(recipe.at(key)) != value)
        return OfferedKey{key, value};
  }
  return std::nullopt;
}

bool is_small(const DataLook& l) {
  constexpr int64_t kMostValues = int64_t{1} << 27;
  return (l.train_samples + l.test_samples) * l.split->train->input().shape.product() <= kMostValues;
}

DataLook look_at(const Recipe& of, int64_t samples, const std::vector<int64_t>& rows) {
  Recipe recipe = of;
  recipe.set("data.transforms", "");
  const auto opened = std::make_shared<const data::Split>(open_data(recipe));
  const data::Split& split = *opened;
  DataLook look;
  look.split = opened;
  look.recipe = std::make_shared<const Recipe>(of);
  look.dataset = recipe.text("data.dataset");
  look.dir = recipe.text("data.dir");
  look.task = split.train->task();
  look.input = sample_type(split.train->input());
  look.target = sample_type(split.train->target());
  look.train_samples = split.train->size();
  look.test_samples = split.test->size();
  look.remarks = split.remarks;
  take_samples(*split.train, true, rows, samples, look);
  take_samples(*split.test, false, {}, samples, look);
  return look;
}

void read_all(DataLook& look, const data::SurveyProgress& progress) {
  look.survey = data::survey(*look.split, progress);
  look.remarks = look.survey->remarks;
  look.classes = count_classes(*look.split);
}

std::string data_text(const DataLook& l) {
  const std::string of = l.dir.empty() ? "" : " " + tr("of {}", std::filesystem::path(l.dir).filename().string());
  return fmt::format("{}{} · {} · {} · {}", l.dataset, of, l.task, tr("inputs {}", l.input),
                     tr("targets {}", l.target));
}

std::string split_text(const DataLook& l) {
  for (const data::Remark& r : l.remarks)
    if (r.id == "split") return r.text;
  return {};
}

Table splits_table(const DataLook& l) {
  Table t;
  t.columns = {{tr("Split")}, {tr("Samples"), true}};
  if (l.survey)
    t.columns.insert(t.columns.end(), {{tr("Smallest"), true, tr("of the inputs' values")},
                                       {tr("Largest"), true, tr("of the inputs' values")},
                                       {tr("Mean"), true, tr("of the inputs' values")},
                                       {tr("Deviation"), true, tr("of the inputs' values")},
                                       {tr("Not finite"), true, tr("values that are NaN or infinite")}});
  auto add = [&](const std::string& name, int64_t samples, const data::Survey::Part* p) {
    Table::Row row{{{name, 0, {}, Ink::none}, count_cell(samples)}, {}};
    if (p) {
      for (double v : {p->min, p->max, p->mean, p->deviation}) row.cells.push_back(value_cell(v));
      row.cells.push_back(count_cell(p->not_finite));
      if (p->not_finite > 0) row.cells.back().mark = Ink::bad;
    }
    t.rows.push_back(std::move(row));
  };
  add(tr("training"), l.train_samples, l.survey ? &l.survey->train : nullptr);
  add(tr("test"), l.test_samples, l.survey ? &l.survey->test : nullptr);
  return t;
}

Table remarks_table(const DataLook& l) {
  Table t;
  t.columns = {{tr("What was found")}, {tr("Where")}, {tr("Places"), true}};
  for (const auto kind : {data::Remark::Kind::warning, data::Remark::Kind::assumed})
    for (const data::Remark& r : l.remarks) {
      if (r.kind != kind) continue;
      std::string where, files;
      for (size_t i = 0; i < r.places.size(); ++i) {
        const bool same = i > 0 && r.places[i].file == r.places[i - 1].file && !r.places[i].place.empty();
        where += (i ? ", " : "") + (same ? r.places[i].place : r.places[i].text());
        if (!r.places[i].file.empty() && !same) files += (files.empty() ? "" : "\n") + r.places[i].file;
      }
      t.rows.push_back({{{r.text, 0, {}, kind == data::Remark::Kind::warning ? Ink::warning : Ink::good},
                         {where, 0, files, Ink::none},
                         r.count > 0 ? count_cell(r.count) : Table::Cell{}},
                        {}});
    }
  return t;
}

Table classes_table(const DataLook& l) {
  Table t;
  t.columns = {{tr("Class")},
               {tr("Training"), true, tr("targets of the training set")},
               {tr("Test"), true, tr("targets of the test split")},
               {tr("Balanced weight"), true, tr("what loss.weight = balanced gives it")}};
  for (const ClassCount& c : l.classes)
    t.rows.push_back({{{c.name, 0, {}, c.train == 0 ? Ink::warning : Ink::none},
                       count_cell(c.train),
                       count_cell(c.test),
                       value_cell(c.weight)},
                      {}});
  return t;
}

Table samples_table(const DataLook& l) {
  Table t;
  t.columns = {{tr("Sample"), true, tr("row of its split")}, {tr("From")}, {tr("Target")}, {tr("Split")}};
  for (const DataLook::Sample& s : l.samples) {
    const std::string from = s.source.text();
    t.rows.push_back(
        {{count_cell(s.row),
          {from.empty() ? tr("generated") : from, 0, s.source.file, from.empty() ? Ink::secondary : Ink::none},
          {s.target, 0, {}, Ink::none},
          {s.train ? tr("training") : tr("test"), 0, {}, Ink::none}},
         {}});
  }
  return t;
}

}  // namespace tenon::views
