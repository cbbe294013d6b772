#include "views/builder/builder_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/train/freeze.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
bool all_at_origin(const ModelSpec& s) {
  return std::all_of(s.layers.begin(), s.layers.end(), [](const LayerSpec& l) { return l.x == 0 && l.y == 0; });
}
}  // namespace

void BuilderModel::set_spec(const ModelSpec& spec, int64_t batch) {
  spec_ = spec;
  batch_ = std::max<int64_t>(batch, 1);
  edits_.clear();
  done_ = 0;
  selected_.clear();
  primary_.clear();
  selected_wire_ = -1;
  if (all_at_origin(spec_)) place(spec_);
  fit_next_ = true;
  own_view_ = false;
  examine_now();
  changed();
}

void BuilderModel::set_batch(int64_t batch) {
  batch_ = std::max<int64_t>(batch, 1);
  examine_now();
  changed();
}

void BuilderModel::set_frozen(const std::string& patterns) {
  if (patterns == frozen_) return;
  frozen_ = patterns;
  changed();
}

std::string BuilderModel::frozen_text(const LayerReport& report) const {
  if (frozen_.empty()) return {};
  const Freeze freeze(frozen_);
  const auto& names = report.parameter_names;
  const auto n = std::count_if(names.begin(), names.end(), [&](const std::string& p) { return freeze.holds(p); });
  return n == 0 ? "" : static_cast<size_t>(n) == names.size() ? tr("frozen") : tr("partly frozen");
}

/// Where a layer stands says nothing about its shapes: while one is dragged the model is not run again.
void BuilderModel::examine_now() {
  ModelSpec shapes = spec_;
  for (LayerSpec& l : shapes.layers) l.x = l.y = 0;
  if (batch_ == examined_batch_ && shapes == examined_) return;
  reports_.clear();
  for (LayerReport& r : examine(spec_, batch_)) reports_[r.layer] = std::move(r);
  examined_ = std::move(shapes);
  examined_batch_ = batch_;
}

const LayerReport* BuilderModel::report(const std::string& layer) const {
  auto at = reports_.find(layer);
  return at == reports_.end() ? nullptr : &at->second;
}
int64_t BuilderModel::parameters() const {
  int64_t n = 0;
  for (const auto& [name, r] : reports_) n += r.parameters;
  return n;
}
double BuilderModel::flops() const {
  double n = 0;
  for (const auto& [name, r] : reports_) n += r.flops;
  return n;
}
int64_t BuilderModel::output_bytes() const {
  int64_t n = 0;
  for (const auto& [name, r] : reports_) n += r.output_bytes;
  return n;
}
std::vector<std::string> BuilderModel::errors() const {
  std::vector<std::string> out;
  for (const LayerSpec& l : spec_.layers)
    if (const LayerReport* r = report(l.name); r && !r->error.empty()) out.push_back(l.name + ": " + r->error);
  return out;
}

bool BuilderModel::refuse(const std::string& why) {
  why_ = why;
  return false;
}

bool BuilderModel::apply(const std::string& text, ModelSpec next, const std::string& merge) {
  why_.clear();
  if (next == spec_) return false;
  edits_.resize(done_);
  // Steps of one gesture (a drag, turning one number) are one edit to undo.
  if (!merge.empty() && !edits_.empty() && edits_.back().merge == merge)
    edits_.back().after = next;
  else
    edits_.push_back({text, merge, spec_, next});
  done_ = edits_.size();
  spec_ = std::move(next);
  examine_now();
  changed();
  if (on_edit) on_edit();
  return true;
}

bool BuilderModel::replace(const std::string& text, const ModelSpec& spec) {
  forget_missing(spec);
  return apply(text, spec);
}

/// What the model that comes does not have is not chosen any longer.
void BuilderModel::forget_missing(const ModelSpec& next) {
  std::erase_if(selected_, [&next](const std::string& n) { return !next.find(n); });
  if (!next.find(primary_)) primary_.clear();
  selected_wire_ = -1;
}

void BuilderModel::undo() {
  if (!can_undo()) return;
  spec_ = edits_[--done_].before;
  edits_[done_].merge.clear();
  forget_missing(spec_);
  examine_now();
  changed();
  if (on_edit) on_edit();
}
void BuilderModel::redo() {
  if (!can_redo()) return;
  spec_ = edits_[done_++].after;
  forget_missing(spec_);
  examine_now();
  changed();
  if (on_edit) on_edit();
}

std::string BuilderModel::free_name(const std::string& type) const {
  std::string base = lower(type);
  if (!spec_.find(base)) return base;
  for (int i = 2;; ++i)
    if (std::string name = fmt::format("{}{}", base, i); !spec_.find(name)) return name;
}

bool BuilderModel::add_layer(const std::string& type, double x, double y) {
  const LayerInfo* info = find_layer_type(type);
  if (!info) return refuse(tr("There is no layer type {}", type));
  ModelSpec next = spec_;
  LayerSpec l;
  l.name = free_name(type);
  l.type = type;
  for (const AttrDef& a : info->attrs) l.attrs.push_back({a.name, a.fallback});
  l.x = std::round(x / 8) * 8;
  l.y = std::round(y / 8) * 8;
  std::string name = l.name;
  next.layers.push_back(std::move(l));
  apply(tr("Add {}", type), std::move(next));
  choose(name);
  return true;
}

bool BuilderModel::insert_layer(const std::string& type) {
  const LayerInfo* info = find_layer_type(type);
  if (!info) return refuse(tr("There is no layer type {}", type));
  const LayerSpec* after = spec_.find(primary_);
  if (after && after->type == "Output") after = nullptr;
  if (!after)
    for (const WireSpec& w : spec_.wires)
      if (const LayerSpec* to = spec_.find(w.to); to && to->type == "Output") after = spec_.find(w.from);
  if (!after || info->inputs == 0) return add_layer(type, after ? after->x + 332 : 0, after ? after->y : 0);
  ModelSpec next = spec_;
  LayerSpec l;
  l.name = free_name(type);
  l.type = type;
  for (const AttrDef& a : info->attrs) l.attrs.push_back({a.name, a.fallback});
  l.x = after->x;
  l.y = after->y + 72;
  std::string name = l.name, from = after->name;
  double from_y = after->y, from_x = after->x;
  for (LayerSpec& o : next.layers)
    if (std::fabs(o.x - from_x) < 140 && o.y > from_y) o.y += 72;
  if (info->outputs > 0)
    for (WireSpec& w : next.wires)
      if (w.from == from && w.from_port == 0) {
        w.from = name;
        w.from_port = 0;
      }
  next.layers.push_back(std::move(l));
  next.wires.push_back({from, 0, name, 0});
  apply(tr("Insert {} after {}", type, from), std::move(next));
  choose(name);
  return true;
}

bool BuilderModel::remove_selected() {
  ModelSpec next = spec_;
  if (selected_wire_ >= 0 && selected_wire_ < static_cast<int>(next.wires.size())) {
    WireSpec w = next.wires[selected_wire_];
    next.wires.erase(next.wires.begin() + selected_wire_);
    selected_wire_ = -1;
    return apply(tr("Cut {} → {}", w.from, w.to), std::move(next));
  }
  if (selected_.empty()) return refuse(tr("Nothing is selected"));
  std::set<std::string> gone = selected_;
  for (const std::string& name : gone) {
    // A layer in the middle of a chain is taken out of it: what fed it feeds what it fed.
    std::vector<WireSpec> in, out;
    for (const WireSpec& w : next.wires) {
      if (w.to == name) in.push_back(w);
      if (w.from == name) out.push_back(w);
    }
    std::erase_if(next.wires, [&](const WireSpec& w) { return w.to == name || w.from == name; });
    if (in.size() == 1)
      for (const WireSpec& o : out) next.wires.push_back({in[0].from, in[0].from_port, o.to, o.to_port});
    std::erase_if(next.layers, [&](const LayerSpec& l) { return l.name == name; });
  }
  std::string text = gone.size() == 1 ? tr("Delete {}", *gone.begin()) : tr("Delete {} layers", gone.size());
  selected_.clear();
  primary_.clear();
  return apply(text, std::move(next));
}

bool BuilderModel::reaches(const std::string& from, const std::string& to) const {
  // Each layer once: paths double with every branch that joins again, and a file may hold a circle.
  std::set<std::string> seen{from};
  std::vector<std::string> next{from};
  while (!next.empty()) {
    const std::string at = std::move(next.back());
    next.pop_back();
    if (at == to) return true;
    for (const WireSpec& w : spec_.wires)
      if (w.from == at && seen.insert(w.to).second) next.push_back(w.to);
  }
  return false;
}

bool BuilderModel::connect(const std::string& from, int from_port, const std::string& to, int to_port) {
  if (!spec_.find(from) || !spec_.find(to)) return refuse(tr("There is no such layer"));
  if (reaches(to, from)) return refuse(tr("{} already feeds {}: a wire back would make a circle", to, from));
  ModelSpec next = spec_;
  std::erase_if(next.wires, [&](const WireSpec& w) { return w.to == to && w.to_port == to_port; });
  next.wires.push_back({from, from_port, to, to_port});
  return apply(tr("Connect {} → {}", from, to), std::move(next));
}

bool BuilderModel::disconnect(const std::string& to, int to_port) {
  ModelSpec next = spec_;
  std::erase_if(next.wires, [&](const WireSpec& w) { return w.to == to && w.to_port == to_port; });
  return apply(tr("Cut the wire into {}", to), std::move(next));
}

bool BuilderModel::set_attr(const std::string& layer, const std::string& attr, const AttrValue& value) {
  ModelSpec next = spec_;
  LayerSpec* l = next.find(layer);
  if (!l) return refuse(tr("There is no layer {}", layer));
  auto at = std::find_if(l->attrs.begin(), l->attrs.end(), [&](const Attr& a) { return a.name == attr; });
  if (at == l->attrs.end())
    l->attrs.push_back({attr, value});
  else
    at->value = value;
  return apply(tr("Set {} of {} to {}", attr, layer, attr_text(value)), std::move(next));
}

bool BuilderModel::rename(const std::string& layer, const std::string& name) {
  if (layer == name) return false;
  if (name.empty()) return refuse(tr("A layer needs a name"));
  if (spec_.find(name)) return refuse(tr("There is a layer {} already", name));
  ModelSpec next = spec_;
  LayerSpec* l = next.find(layer);
  if (!l) return refuse(tr("There is no layer {}", layer));
  l->name = name;
  for (WireSpec& w : next.wires) {
    if (w.from == layer) w.from = name;
    if (w.to == layer) w.to = name;
  }
  bool was = primary_ == layer;
  selected_.erase(layer);
  apply(tr("Rename {} to {}", layer, name), std::move(next));
  if (was) choose(name);
  return true;
}

bool BuilderModel::move_selected(double dx, double dy) {
  ModelSpec next = spec_;
  for (LayerSpec& l : next.layers)
    if (selected_.count(l.name)) {
      l.x += dx;
      l.y += dy;
    }
  std::string text = selected_.size() == 1 ? tr("Move {}", *selected_.begin()) : tr("Move {} layers", selected_.size());
  return apply(text, std::move(next), fmt::format("move {}", drag_serial_));
}

/// Layers top to bottom by their distance from the inputs, side by side where they are as deep; a long chain goes on in
/// a new column, as many rows to a column as make the whole about as wide as a window is.
void BuilderModel::place(ModelSpec& spec) const {
  constexpr double kStepX = 332, kStepY = 72, kFewRows = 6, kShape = 1.8;
  const double most_rows =
      std::max(kFewRows, std::ceil(std::sqrt(static_cast<double>(spec.layers.size()) * kStepX / kStepY / kShape)));
  std::map<std::string, int> depth;
  std::vector<std::string> order;
  try {
    for (const LayerSpec* l : spec.topological()) order.push_back(l->name);
  } catch (const Error&) {  // a circle: leave it to be seen as it was drawn, in the order of the list
    for (const LayerSpec& l : spec.layers) order.push_back(l.name);
  }
  int deepest = 0;
  for (const std::string& name : order) {
    int d = 0;
    for (const WireSpec& w : spec.wires)
      if (w.to == name && depth.count(w.from)) d = std::max(d, depth[w.from] + 1);
    depth[name] = d;
    deepest = std::max(deepest, d);
  }
  int columns = static_cast<int>(std::ceil((deepest + 1) / most_rows));
  int per = (deepest + columns) / std::max(columns, 1);
  std::vector<int> widest(static_cast<size_t>(columns) + 1, 1), row_count(static_cast<size_t>(deepest) + 1, 0);
  for (const std::string& name : order) {
    int n = ++row_count[depth[name]];
    int c = depth[name] / std::max(per, 1);
    widest[c] = std::max(widest[c], n);
  }
  std::vector<int> placed(static_cast<size_t>(deepest) + 1, 0);
  for (const std::string& name : order) {
    LayerSpec* l = spec.find(name);
    int d = depth[name], c = d / std::max(per, 1);
    double x0 = 0;
    for (int k = 0; k < c; ++k) x0 += widest[k] * kStepX;
    double center = (widest[c] - row_count[d]) * kStepX / 2;
    l->x = x0 + center + placed[d]++ * kStepX;
    l->y = (d % std::max(per, 1)) * kStepY;
  }
}

void BuilderModel::auto_layout() {
  ModelSpec next = spec_;
  place(next);
  apply(tr("Arrange the layers"), std::move(next));
  fit();
}

void BuilderModel::choose(const std::string& layer) {
  selected_wire_ = -1;
  selected_.clear();
  primary_ = spec_.find(layer) ? layer : std::string();
  if (!primary_.empty()) selected_.insert(primary_);
  if (!primary_.empty()) select(Selection::module(primary_, "builder"));
  changed();
}

void BuilderModel::set_selection(const Selection& s) {
  if (s.source == "builder") return;
  // An op, a tensor, a node or a block of the step shown elsewhere belongs to a layer too.
  const std::string module = s.kind == Selection::Kind::module ? s.name : links_ ? links_.module_of(s) : std::string();
  if (module.empty()) return;
  selected_.clear();
  selected_wire_ = -1;
  primary_.clear();
  for (const LayerSpec& l : spec_.layers)
    if (in_module(l.name, module)) {
      selected_.insert(l.name);
      if (primary_.empty()) primary_ = l.name;
    }
  changed();
}

void BuilderModel::select_all() {
  for (const LayerSpec& l : spec_.layers) selected_.insert(l.name);
  changed();
}

Table BuilderModel::table() const {
  Table t;
  t.columns = {{tr("Layer")},      {tr("Type")}, {tr("Output")}, {tr("Parameters"), true},
               {tr("FLOP"), true}, {tr("Error")}};
  for (const LayerSpec& l : spec_.layers) {
    const LayerReport* r = report(l.name);
    Table::Row row;
    row.selection = Selection::module(l.name, "builder table");
    row.cells = {
        {l.name, 0, {}, Ink::none},
        {l.type, 0, {}, Ink::none},
        {r && !r->outputs.empty() ? r->outputs[0] : "", 0, {}, Ink::none},
        Table::Cell::number(r ? static_cast<double>(r->parameters) : 0, r ? format_grouped(r->parameters) : ""),
        Table::Cell::number(r ? r->flops : 0, r && r->flops > 0 ? format_flops(r->flops) : "–"),
        {r ? r->error : "", 0, r ? r->hint : "", r && !r->error.empty() ? Ink::bad : Ink::none}};
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string BuilderModel::summary() const {
  std::string text =
      tr("Model {}: {} layers, {} parameters", spec_.name, spec_.layers.size(), format_grouped(parameters()));
  if (!errors().empty()) text += tr(", with errors");
  const LayerSpec* l = primary_.empty() ? nullptr : spec_.find(primary_);
  if (!l) return text;
  text += tr("; chosen: {}, {}", l->name, l->type);
  if (const LayerReport* r = report(l->name))
    text += !r->error.empty()     ? tr(", error: {}", r->error)
            : !r->outputs.empty() ? tr(", gives {}", r->outputs[0])
                                  : "";
  return text;
}

}  // namespace tenon::views
