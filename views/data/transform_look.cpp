#include "views/data/transform_look.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/data/transform.h"
#include "engine/train/recipe.h"
#include "views/data/data_look.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/sample_picture.h"

namespace tenon::views {
namespace {

std::string help_of(const std::string& text) {
  const std::string name = text.substr(0, text.find(' '));
  for (const data::TransformDef& def : data::transforms())
    if (def.name == name) return def.help;
  return {};
}

std::string shares_text(const data::Dataset& set, const std::vector<float>& shares) {
  std::string text;
  for (size_t c = 0; c < shares.size(); ++c)
    if (shares[c] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", set.class_name(static_cast<int64_t>(c)),
                          format_value(shares[c]));
  return text;
}

TransformLook::Step step_of(const data::Dataset& set, const data::TransformStep& from) {
  TransformLook::Step step;
  step.text = from.text;
  step.help = help_of(from.text);
  step.shape = from.item.size;
  int64_t finite = 0;
  double sum = 0;
  for (float value : from.item.x) {
    const auto v = static_cast<double>(value);
    if (!std::isfinite(v)) continue;
    step.min = finite ? std::min(step.min, v) : v;
    step.max = finite ? std::max(step.max, v) : v;
    sum += v, ++finite;
  }
  step.mean = finite ? sum / static_cast<double>(finite) : 0;
  const Meta meta{DType::f32, {}, from.item.size};
  if (is_picture(meta) || is_sound(meta))
    step.picture = sample_picture(from.item.x.data(), meta.shape, from.item.bottom_first,
                                  Levels(from.item.x.data(), static_cast<int64_t>(from.item.x.size())), kLookSide);
  if (!from.item.mask.empty() && meta.shape.n == 3)
    step.mask = mask_picture(from.item.mask.data(), meta.shape[1], meta.shape[2], from.item.bottom_first, kLookSide);
  step.shares = shares_text(set, from.item.shares);
  return step;
}

}  // namespace

TransformLook look_through(const Recipe& recipe, const data::Split& raw, bool train, int64_t row, int64_t epoch) {
  const auto& set = train ? raw.train : raw.test;
  const auto steps = data::transform_steps(set, data::with_rate(recipe.text("data.transforms"), raw),
                                           static_cast<uint64_t>(recipe.integer("seed")), train, row, epoch);
  TransformLook look{train, row, set->size(), epoch, target_text(*set, row), set->source(row), {}};
  for (const data::TransformStep& s : steps) look.steps.push_back(step_of(*set, s));
  return look;
}

std::string sample_text(const TransformLook& l) {
  const std::string from = l.source.text();
  const std::string which =
      l.train ? tr("training sample {}", format_grouped(l.row)) : tr("test sample {}", format_grouped(l.row));
  return fmt::format("{} · {} · {}{}", which, from.empty() ? tr("generated") : from, l.target,
                     l.train ? " · " + tr("epoch {}", l.epoch) : "");
}

std::string step_name(const TransformLook::Step& step) { return step.text.empty() ? tr("as it is") : step.text; }

std::string step_text(const TransformLook::Step& s) {
  std::string text = fmt::format("{} · {} … {} · {}", to_string(s.shape), format_value(s.min), format_value(s.max),
                                 tr("mean {}", format_value(s.mean)));
  return s.shares.empty() ? text : text + " · " + s.shares;
}

Table steps_table(const TransformLook& l) {
  Table t;
  t.columns = {{tr("Transform")},      {.title = tr("Shape"), .whole = true},
               {tr("Smallest"), true}, {tr("Largest"), true},
               {tr("Mean"), true},     {tr("Classes")}};
  for (const TransformLook::Step& s : l.steps) {
    Table::Row row{{{step_name(s), 0, s.help, Ink::none}, {to_string(s.shape), 0, {}, Ink::none}}, {}};
    for (double v : {s.min, s.max, s.mean}) row.cells.push_back(Table::Cell::number(v, format_value(v)));
    row.cells.push_back({s.shares, 0, {}, Ink::none});
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
