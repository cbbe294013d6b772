// The edits of the builder; how the model is shown and selected is in builder_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "engine/spec/submodel.h"
#include "views/builder/builder_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
/// The scope that layers share: one that is put between them belongs to it, too.
std::string scope_of(const std::string& a, const std::vector<std::string>& others) {
  std::string scope = a.substr(0, a.find_last_of('.') + 1);
  for (const std::string& n : others)
    while (!scope.empty() && !n.starts_with(scope)) {
      const size_t dot = scope.size() < 2 ? std::string::npos : scope.find_last_of('.', scope.size() - 2);
      scope.resize(dot == std::string::npos ? 0 : dot + 1);
    }
  return scope;
}
}  // namespace

/// An edit that added a layer, which is chosen then.
bool BuilderModel::put_in(const std::string& text, ModelSpec next, const std::string& name) {
  if (!apply(text, std::move(next))) return false;
  choose(name);
  reveal(name);
  return true;
}

bool BuilderModel::add_layer(const std::string& type, double x, double y) {
  const LayerInfo* info = find_layer_type(type);
  if (!info) return refuse(tr("There is no layer type {}", type));
  ModelSpec next = spec_;
  LayerSpec l = new_layer(spec_, *info);
  if (layout_.by_hand()) {
    const Point p = layout_.free_place(x, y);
    l.x = p.x;
    l.y = p.y;
  }
  next.layers.push_back(l);
  return put_in(tr("Add {}", type), std::move(next), l.name);
}

/// Below another layer, what stands there moves down.
void BuilderModel::insert_at(ModelSpec& next, LayerSpec& l, const LayerSpec& after) const {
  if (!layout_.by_hand()) return;
  constexpr double kStep = 72;
  l.x = after.x;
  l.y = after.y + kStep;
  const double x = after.x, y = after.y;
  for (LayerSpec& o : next.layers)
    if (std::fabs(o.x - x) < ModelLayout::kNodeW / 2 && o.y > y) o.y += kStep;
}

/// The chosen layer; of a group the one in it that gives its result; else the last before the output.
const LayerSpec* BuilderModel::anchor() const {
  const LayerSpec* after = spec_.find(primary_);
  if (!group_.empty())
    if (const auto outputs = ports_of(spec_, group_).outputs; !outputs.empty())
      after = spec_.find(group_ + "." + outputs.back().layer);
  if (after && after->type == "Output") after = nullptr;
  if (!after)
    for (const WireSpec& w : spec_.wires)
      if (const LayerSpec* to = spec_.find(w.to); to && to->type == "Output") after = spec_.find(w.from);
  // An empty model grows from its input on.
  if (!after && !spec_.layers.empty() && std::all_of(spec_.layers.begin(), spec_.layers.end(), [](const LayerSpec& l) {
        return l.type == "Input" || l.type == "Output";
      }))
    for (const LayerSpec& l : spec_.layers)
      if (l.type == "Input") after = &l;
  return after;
}

bool BuilderModel::insert_layer(const std::string& type) {
  const LayerInfo* info = find_layer_type(type);
  if (!info) return refuse(tr("There is no layer type {}", type));
  if (std::exchange(loose_, false) && index_of(wire_from_) >= 0 && info->inputs > 0) {
    ModelSpec next = spec_;
    LayerSpec l = new_layer(spec_, *info);
    const LayerSpec& from = spec_.layers[static_cast<size_t>(index_of(wire_from_))];
    if (layout_.by_hand()) {
      const Point p = layout_.free_place(from.x, from.y + ModelLayout::kNodeH + 24);
      l.x = p.x, l.y = p.y;
    }
    next.layers.push_back(l);
    next.wires.push_back({from.name, wire_port_, l.name, 0});
    return put_in(tr("Add {} behind {}", type, from.name), std::move(next), l.name);
  }
  if (selected_wire_ >= 0 && info->inputs > 0 && info->outputs > 0) {
    const WireSpec wire = spec_.wires[static_cast<size_t>(selected_wire_)];
    ModelSpec next = spec_;
    LayerSpec l = new_layer(spec_, *info);
    l.name = free_name(spec_, scope_of(wire.from, {wire.to}) + l.name);
    if (const int at = index_of(wire.from); at >= 0) insert_at(next, l, spec_.layers[static_cast<size_t>(at)]);
    next.layers.push_back(l);
    wire_into(next, l.name, wire);
    return put_in(tr("Insert {} between {} and {}", type, wire.from, wire.to), std::move(next), l.name);
  }
  const LayerSpec* after = anchor();
  const LayerInfo* before = after ? find_layer_type(after->type) : nullptr;
  if (!after || info->inputs == 0 || (before && before->outputs == 0))
    return add_layer(type, after ? after->x + ModelLayout::kNodeW + 52 : 0, after ? after->y : 0);
  ModelSpec next = spec_;
  LayerSpec l = new_layer(spec_, *info);
  std::vector<std::string> readers;
  for (const WireSpec& w : spec_.wires)
    if (w.from == after->name) readers.push_back(w.to);
  std::string scope = scope_of(after->name, readers);
  if (!group_.empty() && scope.starts_with(group_ + ".")) scope = group_.substr(0, group_.rfind('.') + 1);
  l.name = free_name(spec_, scope + l.name);
  const std::string behind = after->name;
  insert_at(next, l, *after);
  next.layers.push_back(l);
  wire_behind(next, l.name, behind);
  return put_in(tr("Insert {} after {}", type, behind), std::move(next), l.name);
}

bool BuilderModel::replace_selected(const std::string& type) {
  const LayerInfo* info = find_layer_type(type);
  if (!info) return refuse(tr("There is no layer type {}", type));
  if (selected_.empty()) return refuse(tr("Select the layers that are to be replaced"));
  ModelSpec next = spec_;
  std::set<std::string> now;
  std::string primary;
  for (const std::string& name : selected_) {
    const std::string to = edits::replace_type(next, name, *info);
    if (name == primary_) primary = to;
    now.insert(to);
  }
  const std::string text = selected_.size() == 1 ? tr("Replace {} by {}", *selected_.begin(), type)
                                                 : tr("Replace {} layers by {}", selected_.size(), type);
  if (!apply(text, std::move(next))) return false;
  select_names(std::move(now), primary);
  return true;
}

bool BuilderModel::remove_selected() {
  if (selected_wire_ >= 0 && selected_wire_ < static_cast<int>(spec_.wires.size())) {
    ModelSpec next = spec_;
    const WireSpec w = next.wires[static_cast<size_t>(selected_wire_)];
    next.wires.erase(next.wires.begin() + selected_wire_);
    selected_wire_ = -1;
    return apply(tr("Cut {} → {}", w.from, w.to), std::move(next));
  }
  if (selected_.empty()) return refuse(tr("Nothing is selected"));
  ModelSpec next = without_layers(spec_, selected_);
  const std::string text =
      selected_.size() == 1 ? tr("Delete {}", *selected_.begin()) : tr("Delete {} layers", selected_.size());
  selected_.clear();
  primary_.clear();
  group_.clear();
  return apply(text, std::move(next));
}

bool BuilderModel::reaches(const std::string& from, const std::string& to) const {
  // Each layer once: paths double with every branch that joins again, and a file may hold a circle.
  std::unordered_map<std::string, std::vector<const std::string*>> fed;
  for (const WireSpec& w : spec_.wires) fed[w.from].push_back(&w.to);
  std::set<std::string> seen{from};
  std::vector<std::string> next{from};
  while (!next.empty()) {
    const std::string at = std::move(next.back());
    next.pop_back();
    if (at == to) return true;
    for (const std::string* reader : fed[at])
      if (seen.insert(*reader).second) next.push_back(*reader);
  }
  return false;
}

bool BuilderModel::connect(const std::string& from, int from_port, const std::string& to, int to_port) {
  if (index_of(from) < 0 || index_of(to) < 0) return refuse(tr("There is no such layer"));
  if (reaches(to, from)) return refuse(tr("{} already feeds {}: a wire back would make a circle", to, from));
  return connect_ends(from, from_port, {{"", 0, to, to_port}});
}

bool BuilderModel::connect_ends(const std::string& from, int from_port, const std::vector<WireSpec>& ends) {
  ModelSpec next = spec_;
  for (const WireSpec& end : ends) {
    if (reaches(end.to, from)) return refuse(tr("{} already feeds {}: a wire back would make a circle", end.to, from));
    std::erase_if(next.wires, [&](const WireSpec& w) { return w.to == end.to && w.to_port == end.to_port; });
    next.wires.push_back({from, from_port, end.to, end.to_port});
  }
  return apply(tr("Connect {} → {}", from, ends.front().to), std::move(next));
}

bool BuilderModel::disconnect(const std::string& to, int to_port) {
  ModelSpec next = spec_;
  std::erase_if(next.wires, [&](const WireSpec& w) { return w.to == to && w.to_port == to_port; });
  return apply(tr("Cut the wire into {}", to), std::move(next));
}

namespace {
void put_attr(LayerSpec& l, const std::string& attr, const AttrValue& value) {
  const auto at = std::find_if(l.attrs.begin(), l.attrs.end(), [&](const Attr& a) { return a.name == attr; });
  if (at == l.attrs.end())
    l.attrs.push_back({attr, value});
  else
    at->value = value;
}
bool knows(const LayerSpec& l, const std::string& attr) {
  const LayerInfo* info = find_layer_type(l.type);
  return info && std::any_of(info->attrs.begin(), info->attrs.end(), [&](const AttrDef& a) { return a.name == attr; });
}
}  // namespace

bool BuilderModel::set_attr(const std::string& layer, const std::string& attr, const AttrValue& value) {
  const int at = index_of(layer);
  if (at < 0) return refuse(tr("There is no layer {}", layer));
  ModelSpec next = spec_;
  put_attr(next.layers[static_cast<size_t>(at)], attr, value);
  return apply(tr("Set {} of {} to {}", attr, layer, attr_text(value)), std::move(next));
}

bool BuilderModel::set_attr_of_selected(const std::string& attr, const AttrValue& value) {
  ModelSpec next = spec_;
  size_t count = 0;
  for (LayerSpec& l : next.layers)
    if (selected_.contains(l.name) && knows(l, attr)) {
      put_attr(l, attr, value);
      ++count;
    }
  if (!count) return refuse(tr("None of the selected layers has {}", attr));
  return apply(tr("Set {} of {} layers to {}", attr, count, attr_text(value)), std::move(next));
}

bool BuilderModel::set_comment(const std::string& layer, const std::string& text) {
  const int at = index_of(layer);
  if (at < 0) return refuse(tr("There is no layer {}", layer));
  ModelSpec next = spec_;
  next.layers[static_cast<size_t>(at)].comment = text;
  return apply(text.empty() ? tr("Take the comment off {}", layer) : tr("Comment {}", layer), std::move(next));
}

bool BuilderModel::switch_selected() {
  if (selected_.empty()) return refuse(tr("Nothing is selected"));
  ModelSpec next = spec_;
  const bool off = std::any_of(next.layers.begin(), next.layers.end(),
                               [&](const LayerSpec& l) { return selected_.contains(l.name) && !l.off; });
  size_t count = 0;
  for (LayerSpec& l : next.layers)
    if (selected_.contains(l.name) && l.type != "Input" && l.type != "Output") l.off = off, ++count;
  if (!count) return refuse(tr("A model needs its input and its output"));
  const std::string what = count == 1 ? primary_ : tr("{} layers", count);
  return apply(off ? tr("Turn off {}", what) : tr("Turn on {}", what), std::move(next));
}

bool BuilderModel::rename(const std::string& layer, const std::string& name) {
  if (layer == name) return false;
  if (name.empty()) return refuse(tr("A layer needs a name"));
  if (index_of(name) >= 0) return refuse(tr("There is a layer {} already", name));
  const int at = index_of(layer);
  if (at < 0) return refuse(tr("There is no layer {}", layer));
  ModelSpec next = spec_;
  if (const std::string fault = edits::rename_all(next, {{layer, name}}); !fault.empty()) return refuse(fault);
  bool was = primary_ == layer;
  selected_.erase(layer);
  apply(tr("Rename {} to {}", layer, name), std::move(next));
  if (was) choose(name);
  return true;
}

bool BuilderModel::rename_group(const std::string& path, const std::string& to) {
  ModelSpec next = spec_;
  if (const std::string fault = edits::rename_scope(next, path, to); !fault.empty()) return refuse(fault);
  if (!apply(tr("Rename the group {} to {}", path, to), std::move(next))) return false;
  if (const int node = layout_.node_of(to); node >= 0) choose_group(node, false);
  return true;
}

bool BuilderModel::group_selected(const std::string& name) {
  if (selected_.empty()) return refuse(tr("Select the layers of the group"));
  ModelSpec next = spec_;
  if (const std::string fault = edits::put_into_scope(next, selected_, name); !fault.empty()) return refuse(fault);
  std::set<std::string> now;
  for (size_t i = 0; i < spec_.layers.size(); ++i)
    if (selected_.contains(spec_.layers[i].name)) now.insert(next.layers[i].name);
  if (!apply(tr("Group {} layers as {}", now.size(), name), std::move(next))) return false;
  select_names(now, "");
  return true;
}

bool BuilderModel::ungroup_selected() {
  std::string path = group_;
  if (path.empty() && !primary_.empty() && primary_.find('.') != std::string::npos)
    path = primary_.substr(0, primary_.find_last_of('.'));
  if (path.empty()) return refuse(tr("No group is selected"));
  const size_t dot = path.find_last_of('.');
  ModelSpec next = spec_;
  const std::string fault = edits::rename_scope(next, path, dot == std::string::npos ? "" : path.substr(0, dot));
  if (!fault.empty()) return refuse(fault);
  std::set<std::string> now;
  for (size_t i = 0; i < spec_.layers.size(); ++i)
    if (in_module(spec_.layers[i].name, path)) now.insert(next.layers[i].name);
  if (!apply(tr("Ungroup {}", path), std::move(next))) return false;
  select_names(std::move(now), "");
  return true;
}

/// The first layer that is moved gives all of them the place where they are seen: see Note [Places].
bool BuilderModel::move_selected(double dx, double dy) {
  if (selected_.empty() || (dx == 0 && dy == 0)) return false;
  ModelSpec next = layout_.placed(spec_);
  for (LayerSpec& l : next.layers)
    if (selected_.contains(l.name)) {
      l.x += dx;
      l.y += dy;
    }
  return apply(selected_.size() == 1 ? tr("Move {}", *selected_.begin()) : tr("Move {} layers", selected_.size()),
               std::move(next));
}

bool BuilderModel::align_selected(edits::Line line) {
  if (selected_.size() < 2) return refuse(tr("Select the layers that are to be aligned"));
  return apply(tr("Align {} layers", selected_.size()), edits::aligned(layout_.placed(spec_), selected_, line));
}

bool BuilderModel::spread_selected() {
  if (selected_.size() < 3) return refuse(tr("Select three layers or more to give them equal gaps"));
  return apply(tr("Spread {} layers", selected_.size()), edits::spread(layout_.placed(spec_), selected_));
}

void BuilderModel::auto_layout() {
  ModelSpec next = spec_;
  for (LayerSpec& l : next.layers) l.x = l.y = 0;
  apply(tr("Arrange the layers"), std::move(next));
  fit();
}

std::string BuilderModel::copied() const {
  return selected_.empty() ? std::string() : edits::part_as_text(spec_, selected_);
}

bool BuilderModel::paste(const std::string& text) {
  std::vector<std::string> added;
  try {
    const int at = index_of(primary_);
    const bool end = at >= 0 && spec_.layers[static_cast<size_t>(at)].type == "Output";
    // Behind what is selected; of a whole group, behind the layer in it that is read outside.
    std::string behind = end ? "" : primary_;
    if (selected_.size() > 1)
      for (const WireSpec& w : spec_.wires)
        if (selected_.contains(w.from) && !selected_.contains(w.to)) behind = w.from;
    ModelSpec next = edits::with_part(spec_, text, behind, added);
    const std::string said = added.size() == 1 ? tr("Paste {}", added[0]) : tr("Paste {} layers", added.size());
    if (!apply(said, std::move(next))) return false;
  } catch (const Error& e) {
    return refuse(e.message());
  }
  select_names({added.begin(), added.end()}, added.front());
  reveal(added.front());
  return true;
}

bool BuilderModel::duplicate_selected() {
  if (selected_.empty()) return refuse(tr("Nothing is selected"));
  return paste(copied());
}

}  // namespace tenon::views
