#include "views/weights/weights_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

constexpr const char* kInitKeys[] = {"init.from",    "init.run",    "init.map",   "init.match",
                                     "init.missing", "init.sha256", "init.freeze"};
constexpr const char* kSource = "weights";
/// What name() calls the states, for the list of texts.
[[maybe_unused]] constexpr const char* kStates[] = {
    tr_later("by name"),     tr_later("by rule"),    tr_later("by shape"), tr_later("suggested by shape"),
    tr_later("wrong shape"), tr_later("unreadable"), tr_later("missing"),  tr_later("left over"),
    tr_later("left out")};

std::string dims_text(const std::vector<int64_t>& v) { return fmt::format("[{}]", fmt::join(v, ", ")); }

Ink ink_of_state(WeightState s) {
  switch (s) {
    case WeightState::by_name:
    case WeightState::by_rule:
    case WeightState::by_shape:
      return Ink::good;
    case WeightState::wrong_shape:
    case WeightState::unreadable:
      return Ink::bad;
    case WeightState::missing:
    case WeightState::suggested:
      return Ink::warning;
    default:
      return Ink::secondary;
  }
}

std::string layer_of(const std::string& tensor) {
  const size_t dot = tensor.rfind('.');
  return dot == tensor.npos ? tensor : tensor.substr(0, dot);
}

}  // namespace

void WeightsModel::set_map(WeightMap map, std::string from) {
  map_ = std::move(map);
  from_ = std::move(from);
}

Table WeightsModel::table() const {
  Table t;
  t.columns = {{tr("Model")}, {tr("From the file")}, {tr("How")},      {tr("Trained")},
               {tr("Shape")}, {tr("File shape")},    {tr("File type")}};
  for (const WeightRow& r : map_.rows) {
    const ModelTensor* m = r.target < 0 ? nullptr : &map_.model[static_cast<size_t>(r.target)];
    const GivenTensor* g = r.source < 0 ? nullptr : &map_.given[static_cast<size_t>(r.source)];
    Table::Row row;
    if (m) row.selection = Selection::module(layer_of(m->name), kSource);
    const std::string how = from_.empty() ? tr("from the seed") : tr(name(r.state));
    const std::string trained = !m          ? std::string()
                                : m->frozen ? tr("frozen")
                                : m->buffer ? tr("statistics")
                                            : tr("yes");
    const auto text = [](std::string s) { return Table::Cell{std::move(s), 0, {}, Ink::none}; };
    row.cells = {text(m ? m->name : ""),
                 text(g ? g->name : ""),
                 {how, static_cast<double>(r.state), g ? g->problem : "",
                  from_.empty() ? Ink::secondary : ink_of_state(r.state)},
                 text(trained),
                 text(m ? dims_text(m->shape) : ""),
                 text(g ? dims_text(g->shape) : ""),
                 text(g ? g->dtype : "")};
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string WeightsModel::said() const {
  int64_t frozen = 0, all = 0;
  for (const ModelTensor& m : map_.model) {
    int64_t n = 1;
    for (int64_t d : m.shape) n *= d;
    if (m.buffer) continue;
    all += n;
    if (m.frozen) frozen += n;
  }
  std::string text = from_.empty() ? tr("the seed gives every value") : map_.text();
  if (frozen > 0) text += tr("; {} of {} parameters are frozen", format_grouped(frozen), format_grouped(all));
  return text;
}

int WeightsModel::source_of(const Table::Row& row) const {
  if (row.cells.size() < 2 || row.cells[1].text.empty()) return -1;
  for (size_t i = 0; i < map_.given.size(); ++i)
    if (map_.given[i].name == row.cells[1].text) return static_cast<int>(i);
  return -1;
}

std::vector<std::string> WeightsModel::targets(int source) const {
  std::vector<std::string> names;
  if (source < 0) return names;
  for (const ModelTensor& m : map_.model)
    if (m.shape == map_.given[static_cast<size_t>(source)].shape) names.push_back(m.name);
  return names;
}

std::string WeightsModel::target(int source) const {
  for (const WeightRow& r : map_.rows)
    if (r.source == source && r.taken()) return map_.model[static_cast<size_t>(r.target)].name;
  return {};
}

bool WeightsModel::left_out(int source) const {
  return std::any_of(map_.rows.begin(), map_.rows.end(),
                     [&](const WeightRow& r) { return r.source == source && r.state == WeightState::left_out; });
}

Recipe WeightsModel::sent(const Recipe& recipe, int source, const std::string& target) const {
  Recipe r = recipe;
  r.set_value("init.map", with_rule(recipe.text("init.map"), map_.given[static_cast<size_t>(source)].name, target));
  return r;
}

Recipe WeightsModel::begun_with(Recipe recipe, const std::string& file) {
  for (const char* key : {"init.run", "init.map", "init.match", "init.sha256"}) recipe.reset(key);
  recipe.set_value("init.from", file);
  return recipe;
}

Recipe WeightsModel::begun_anew(Recipe recipe) {
  for (const char* key : kInitKeys)
    if (std::string(key) != "init.freeze") recipe.reset(key);
  return recipe;
}

std::string WeightsModel::said_by(const Recipe& recipe) {
  std::string all;
  for (const char* key : kInitKeys) all += attr_text(recipe.at(key)) + "\n";
  return all;
}

}  // namespace tenon::views
