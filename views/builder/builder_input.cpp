// Pointer, wheel and keys of the builder.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "engine/spec/submodel.h"
#include "views/builder/builder_model.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kFarZoom = 0.3f, kMostZoom = 1.6f;  // how far the wheel goes out (farther where the model needs it), in
}

float BuilderModel::least_zoom() const { return std::min(kFarZoom, fitting_); }

void BuilderModel::fit() {
  fit_next_ = true;
  own_view_ = false;
  changed();
}

void BuilderModel::zoom_at(float factor, float x, float y) {
  const float next = std::clamp(zoom_ * factor, least_zoom(), kMostZoom);
  pan_x_ = x - (x - pan_x_) * next / zoom_;
  pan_y_ = y - (y - pan_y_) * next / zoom_;
  zoom_ = next;
  own_view_ = true;
}

void BuilderModel::zoom_by(float factor) {
  zoom_at(factor, size_.w / 2, size_.h / 2);
  changed();
}

void BuilderModel::reveal(const std::string& layer) {
  const int at = index_of(layer);
  if (at < 0) return;
  layout_.reveal(at);
  reveal_next_ = layer;
  if (!own_view_) fit_next_ = true;
  changed();
}

bool BuilderModel::press_port(Hit hit) {
  const LayerSpec& l = spec_.layers[static_cast<size_t>(hit.id / kMostPorts)];
  const int index = static_cast<int>(hit.id % kMostPorts);
  if (hit.kind == output_port) {
    wire_from_ = l.name;
    wire_port_ = index;
    drag_ = Drag::wire;
    return true;
  }
  for (const WireSpec& w : spec_.wires)  // a wire taken by its head can be put elsewhere
    if (w.to == l.name && w.to_port == index) {
      wire_from_ = w.from;
      wire_port_ = w.from_port;
      drag_ = Drag::wire;
      return true;
    }
  return false;
}

bool BuilderModel::press_layer(const std::string& name, Mods mods) {
  if (mods.shift || mods.ctrl) {
    std::set<std::string> names = selected_;
    const bool added = names.insert(name).second;
    if (!added) names.erase(name);
    select_names(std::move(names), added ? name : primary_);
  } else if (selected_.contains(name) && selected_.size() > 1) {
    primary_ = name;  // a drag moves all of them; a click without one leaves this alone
  } else if (!selected_.contains(name) || primary_ != name) {
    choose(name);
  }
  drag_ = Drag::move;
  return true;
}

bool BuilderModel::press(const PointerEvent& e) {
  press_x_ = pointer_x_ = e.x;
  press_y_ = pointer_y_ = e.y;
  start_x_ = pan_x_;
  start_y_ = pan_y_;
  moved_ = false;
  moved_dx_ = moved_dy_ = 0;
  why_.clear();
  said_.clear();
  loose_ = false;
  const Hit hit = last_.hit_at(e.x, e.y);
  if (e.button == Button::middle) {
    drag_ = Drag::pan;
    return false;
  }
  if (e.button != Button::left) return false;
  add_ = e.mods.shift || e.mods.ctrl;
  switch (hit.kind) {
    case output_port:
    case input_port:
      return press_port(hit);
    case layer:
      return press_layer(spec_.layers[static_cast<size_t>(hit.id)].name, e.mods);
    case group:
    case opened_group:
      if (add_ || group_ != layout_.tree().path(static_cast<int>(hit.id))) choose_group(static_cast<int>(hit.id), add_);
      drag_ = Drag::move;
      return true;
    case wire:
      choose_wire(static_cast<int>(hit.id));
      return true;
    case minimap:
      drag_ = Drag::map;
      move_by_minimap(e.x, e.y);
      return true;
    default:
      drag_ = Drag::band;
      return false;
  }
}

bool BuilderModel::drag(const PointerEvent& e) {
  pointer_x_ = e.x;
  pointer_y_ = e.y;
  if (drag_ == Drag::none) return false;
  const bool begins = !moved_ && std::fabs(e.x - press_x_) + std::fabs(e.y - press_y_) > 4;
  moved_ = moved_ || begins;
  if (drag_ == Drag::wire) {
    const Hit hit = last_.hit_at(press_x_, press_y_);
    if (begins && hit.kind == input_port) {  // it comes off once it is drawn, not by a click
      const std::string to = spec_.layers[static_cast<size_t>(hit.id / kMostPorts)].name;
      ModelSpec next = spec_;
      for (const WireSpec& end : ends_at(to, static_cast<int>(hit.id % kMostPorts)))
        std::erase_if(next.wires, [&](const WireSpec& o) { return o.to == end.to && o.to_port == end.to_port; });
      apply(tr("Cut the wire into {}", to), std::move(next));
    }
    return true;
  }
  if (drag_ == Drag::map) return move_by_minimap(e.x, e.y), true;
  if (!moved_) return false;
  if (drag_ == Drag::pan) {
    own_view_ = true;
    pan_x_ = start_x_ + e.x - press_x_;
    pan_y_ = start_y_ + e.y - press_y_;
  } else if (drag_ == Drag::move) {
    // The picture moves with the pointer; the model has the new places once it is let go, as one edit.
    const double dx = std::round((e.x - press_x_) / zoom_ / 8) * 8, dy = std::round((e.y - press_y_) / zoom_ / 8) * 8;
    if (dx == moved_dx_ && dy == moved_dy_) return false;
    moved_dx_ == 0 && moved_dy_ == 0 ? lift_selected() : layout_.foresee_opened();
    moved_dx_ = dx;
    moved_dy_ = dy;
    LayerPlaces now = dragged_;
    for (const std::string& name : selected_)
      if (const int at = index_of(name); at >= 0)
        now[static_cast<size_t>(at)].x += dx, now[static_cast<size_t>(at)].y += dy;
    layout_.show_moved(now);
  }
  return true;
}

/// Where everything stands as a drag begins. Where the layers of a folded group stand within it is asked for when the
/// drag ends; earlier, if only some of them are chosen, which moves the group otherwise.
void BuilderModel::lift_selected() {
  std::map<int, int> chosen;  // layers by folded group
  for (const std::string& name : selected_)
    if (const int cell = layout_.cell_of_layer(index_of(name)); cell >= 0) ++chosen[cell];
  const auto& cells = layout_.picture().cells;
  const bool parts = std::any_of(chosen.begin(), chosen.end(), [&](const auto& c) {
    return c.second < layout_.tree().at(cells[static_cast<size_t>(c.first)].node).items;
  });
  dragged_ = layout_.places(parts);
}

/// To an input, or to a layer's first input that is free; over the ground a layer is asked for that is put there.
void BuilderModel::drop_wire(float x, float y) {
  const Hit hit = last_.hit_at(x, y);
  if (hit.kind == input_port) {
    connect_ends(
        wire_from_, wire_port_,
        ends_at(spec_.layers[static_cast<size_t>(hit.id / kMostPorts)].name, static_cast<int>(hit.id % kMostPorts)));
  } else if (hit.kind == group && !layout_.instance_at(static_cast<int>(hit.id)).empty()) {
    const std::string scope = layout_.instance_at(static_cast<int>(hit.id));
    const ScopePorts ports = ports_of(spec_, scope);
    const std::vector<ScopePort>* to = ports.inputs.empty() ? nullptr : &ports.inputs.front();
    for (const auto& input : ports.inputs)
      if (!used_in_.contains({index_of(scope + "." + input.front().layer), input.front().port})) {
        to = &input;
        break;
      }
    if (to) connect_ends(wire_from_, wire_port_, ends_at(scope + "." + to->front().layer, to->front().port));
  } else if (hit.kind == layer) {
    const LayerSpec& l = spec_.layers[static_cast<size_t>(hit.id)];
    const LayerInfo* info = find_layer_type(l.type);
    int free = 0;
    for (int i = 0; info && i < info->inputs; ++i)
      if (!used_in_.contains({static_cast<int>(hit.id), i})) {
        free = i;
        break;
      }
    if (l.name != wire_from_) connect(wire_from_, wire_port_, l.name, free);
  } else if (!hit && moved_ && on_palette) {
    loose_ = true;
    on_palette(x, y, "");
  }
}

void BuilderModel::select_band() {
  const Box band{std::min(press_x_, pointer_x_), std::min(press_y_, pointer_y_), std::fabs(pointer_x_ - press_x_),
                 std::fabs(pointer_y_ - press_y_)};
  std::set<std::string> names;
  if (add_) names = selected_;
  std::string first;
  for (const auto& c : layout_.picture().cells) {
    if (!to_canvas(c.box).overlaps(band)) continue;
    for (int i : layout_.layers_below(c.node)) {
      const std::string& name = spec_.layers[static_cast<size_t>(i)].name;
      if (first.empty()) first = name;
      names.insert(name);
    }
  }
  if (names.empty()) return clear_selection();
  select_names(std::move(names), first);
}

bool BuilderModel::release(const PointerEvent& e) {
  const Drag was = drag_;
  drag_ = Drag::none;
  switch (was) {
    case Drag::wire:
      if (!moved_) {  // a click on a port is one on its layer
        const Hit hit = last_.hit_at(press_x_, press_y_);
        if (hit.kind != input_port && hit.kind != output_port) return true;
        const std::string name = spec_.layers[static_cast<size_t>(hit.id / kMostPorts)].name;
        if (const std::string scope = folded_instance(name); scope.empty())
          press_layer(name, e.mods);
        else if (const int node = layout_.node_of(scope); node >= 0)
          choose_group(node, add_);
        drag_ = Drag::none;
        return true;
      }
      drop_wire(e.x, e.y);
      return true;
    case Drag::band:
      moved_ ? select_band() : clear_selection();
      return true;
    case Drag::move:
      if (moved_dx_ != 0 || moved_dy_ != 0) {
        if (!move_selected(moved_dx_, moved_dy_)) layout_.show(spec_, false);
      } else if (!add_ && !moved_ && group_.empty() && selected_.size() > 1) {
        choose(std::string(primary_));
      }
      return true;
    default:
      return was != Drag::none;
  }
}

bool BuilderModel::pointer(const PointerEvent& e) {
  switch (e.type) {
    case PointerEvent::Type::press:
      return press(e);
    case PointerEvent::Type::move:
      return drag(e);
    case PointerEvent::Type::release:
      return release(e);
    case PointerEvent::Type::double_click: {
      const Hit hit = last_.hit_at(e.x, e.y);
      if (hit.kind == group || hit.kind == opened_group) return toggle_group(static_cast<int>(hit.id)), true;
      if (hit.kind == layer && on_inspect) on_inspect();
      if (hit.kind == wire) choose_wire(static_cast<int>(hit.id));
      if ((!hit || hit.kind == wire) && on_palette) on_palette(e.x, e.y, "");
      return true;
    }
    case PointerEvent::Type::leave:
      return false;
  }
  return false;
}

Hit BuilderModel::hit_for_menu(float x, float y) {
  const Hit hit = last_.hit_at(x, y);
  if (hit.kind == layer || hit.kind == input_port || hit.kind == output_port) {
    const auto index = static_cast<size_t>(hit.kind == layer ? hit.id : hit.id / kMostPorts);
    const std::string name = spec_.layers[index].name;
    if (!selected_.contains(name)) choose(name);
    return {layer, static_cast<int64_t>(index)};
  }
  if (hit.kind == group || hit.kind == opened_group) {
    if (group_ != layout_.tree().path(static_cast<int>(hit.id))) choose_group(static_cast<int>(hit.id), false);
    return {group, hit.id};
  }
  if (hit.kind == wire) choose_wire(static_cast<int>(hit.id));
  return hit;
}

bool BuilderModel::wheel(const WheelEvent& e) {
  if (e.mods.ctrl) {
    zoom_at(std::pow(1.15f, e.dy), e.x, e.y);
  } else if (e.mods.shift) {
    pan_x_ += e.dy * 60;
  } else {
    pan_x_ += e.dx * 60;
    pan_y_ += e.dy * 60;
  }
  own_view_ = used_wheel_ = true;
  return true;
}

/// Up and down along the wires, left and right through all layers, as they stand in the list.
bool BuilderModel::walk(const std::string& key) {
  const auto& all = spec_.layers;
  if (all.empty()) return false;
  std::string to;
  if (primary_.empty()) {
    to = all.front().name;
  } else if (key == "Up" || key == "Down") {
    for (const WireSpec& w : spec_.wires) {
      if (key == "Down" && w.from == primary_) to = w.to;
      if (key == "Up" && w.to == primary_) to = w.from;
      if (!to.empty()) break;
    }
  } else {
    const int at = index_of(primary_) + (key == "Right" ? 1 : -1);
    if (at >= 0 && at < static_cast<int>(all.size())) to = all[static_cast<size_t>(at)].name;
  }
  if (to.empty()) return key == "Left" || key == "Right";
  choose(to);
  reveal_next_ = to;
  return true;
}

bool BuilderModel::key(const KeyEvent& e) {
  if (e.mods.ctrl || e.mods.alt) return false;
  if (e.key == "Del" || e.key == "Backspace") return remove_selected() || !why_.empty();
  if (e.key == "Esc") {
    if (drag_ == Drag::move) layout_.show(spec_, false);
    drag_ = Drag::none;
    why_.clear();
    clear_selection();
    return true;
  }
  if (e.key == "Up" || e.key == "Down" || e.key == "Left" || e.key == "Right") return walk(e.key);
  if ((e.key == "Return" || e.key == "Enter") && (!primary_.empty() || !group_.empty())) {
    if (!group_.empty()) return toggle_selected_group();
    if (on_inspect) on_inspect();
    return true;
  }
  // Typing a letter looks for a layer to add.
  if (on_palette && e.text.size() == 1 && std::isalpha(static_cast<unsigned char>(e.text[0]))) {
    on_palette(size_.w / 2 - 140, 40, e.text);
    return true;
  }
  return false;
}

}  // namespace tenon::views
