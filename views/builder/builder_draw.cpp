// The picture of the builder and its pointer and keys; the edits are in builder_model.cpp.
#include <algorithm>
#include <cmath>

#include "views/builder/builder_model.h"
#include "views/builder/layer_summary.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kNodeW = 280, kNodeH = 48, kPort = 4;
constexpr float kFarZoom = 0.3f,
                kMostZoom = 1.6f;    ///< how far the wheel goes out (farther where the whole model needs it) and in
constexpr float kLeastZoom = 0.02f;  ///< a thousand layers in a small window

/// A quiet colour a family of layers, so that a network's rhythm is seen from afar.
Ink family(const std::string& type) {
  const LayerInfo* info = find_layer_type(type);
  std::string group = info ? lower(info->group) : "";
  if (type == "Input" || type == "Output") return Ink::secondary;
  if (type.find("Pool") != std::string::npos) return Ink::series1;
  if (type.find("Norm") != std::string::npos) return Ink::series2;
  if (group == "image") return Ink::series0;
  if (group == "basic") return Ink::series5;
  if (group == "activation") return Ink::series6;
  if (group == "regularisation") return Ink::series3;
  return Ink::series7;
}
}  // namespace

Point BuilderModel::to_canvas(double x, double y) const {
  return {static_cast<float>(x) * zoom_ + pan_x_, static_cast<float>(y) * zoom_ + pan_y_};
}

Box BuilderModel::box_of(const LayerSpec& l) const {
  Point p = to_canvas(l.x, l.y);
  return {p.x, p.y, kNodeW * zoom_, kNodeH * zoom_};
}

Point BuilderModel::port(const LayerSpec& l, bool output, int index) const {
  const LayerInfo* info = find_layer_type(l.type);
  int count = std::max(1, info ? (output ? info->outputs : info->inputs) : 1);
  Box b = box_of(l);
  float x = b.x + b.w * static_cast<float>(index + 1) / static_cast<float>(count + 1);
  return {x, output ? b.bottom() : b.y};
}

float BuilderModel::least_zoom() const { return std::min(kFarZoom, fitting_); }

void BuilderModel::fit() {
  fit_next_ = true;
  own_view_ = false;
  changed();
}

void BuilderModel::zoom_by(float factor) {
  float next = std::clamp(zoom_ * factor, least_zoom(), kMostZoom), cx = size_.w / 2, cy = size_.h / 2;
  pan_x_ = cx - (cx - pan_x_) * next / zoom_;
  pan_y_ = cy - (cy - pan_y_) * next / zoom_;
  zoom_ = next;
  own_view_ = true;
  changed();
}

void BuilderModel::draw_wire(Scene& scene, Point a, Point b, Ink ink, float width, int64_t id) {
  std::vector<Point> points;
  if (b.y > a.y - 2) {
    float reach = std::min((b.y - a.y) * 0.5f, 60 * zoom_);
    for (int i = 0; i <= 16; ++i) {
      float t = static_cast<float>(i) / 16, u = 1 - t;
      float k0 = u * u * u, k1 = 3 * u * u * t, k2 = 3 * u * t * t, k3 = t * t * t;
      points.push_back(
          {(k0 + k1) * a.x + (k2 + k3) * b.x, k0 * a.y + k1 * (a.y + reach) + k2 * (b.y - reach) + k3 * b.y});
    }
  } else {  // upwards: out below, up between the columns, in from above
    float d = 14 * zoom_, side = b.x > a.x ? a.x + (kNodeW / 2 + 24) * zoom_ : a.x - (kNodeW / 2 + 24) * zoom_,
          r = 6 * zoom_;
    float s = side > a.x ? 1.f : -1.f, s2 = b.x > side ? 1.f : -1.f;
    points = {a,
              {a.x, a.y + d - r},
              {a.x + r * s, a.y + d},
              {side - r * s, a.y + d},
              {side, a.y + d - r},
              {side, b.y - d + r},
              {side + r * s2, b.y - d},
              {b.x - r * s2, b.y - d},
              {b.x, b.y - d + r},
              b};
  }
  scene.polyline(points, ink, width);
  if (id < 0) return;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    Point p = points[i], q = points[i + 1];
    scene.target({std::min(p.x, q.x) - 4, std::min(p.y, q.y) - 4, std::fabs(p.x - q.x) + 8, std::fabs(p.y - q.y) + 8},
                 {wire, id}, Cursor::hand);
  }
}

void BuilderModel::draw_layer(Scene& scene, const LayerSpec& l, int64_t id) {
  const LayerInfo* info = find_layer_type(l.type);
  const LayerReport* r = report(l.name);
  bool bad = r && !r->error.empty(), on = selected_.count(l.name) > 0;
  Box b = box_of(l);
  if (b.right() < -20 || b.bottom() < -20 || b.x > size_.w + 20 || b.y > size_.h + 20) return;
  scene.rect(b, Ink::raised, 1, 4);
  const float inset = std::min(4.f, b.h / 4);  // clear of the round corners
  scene.rect({b.x + 1, b.y + inset, 3, b.h - 2 * inset}, bad ? Ink::bad : family(l.type), 1, 1);
  scene.outline(b, bad ? Ink::bad : on ? Ink::accent : Ink::line, on || bad ? 2.f : 1.f, 4);
  if (bad && on) scene.outline({b.x - 3, b.y - 3, b.w + 6, b.h + 6}, Ink::accent, 1, 6);
  std::string tip = info ? l.type + ": " + info->help : l.type;
  if (r && r->parameters) tip += "\n" + tr("{} parameters", format_grouped(r->parameters));
  const std::string frozen = r ? frozen_text(*r) : "";
  if (!frozen.empty()) tip += "\n" + tr("{}: the next run does not train it (init.freeze)", frozen);
  if (r && r->flops > 0) tip += "\n" + tr("{} a batch of {}", format_flops(r->flops), batch_);
  if (bad) tip += "\n" + r->error + (r->hint.empty() ? "" : "\n" + r->hint);
  scene.target(b, {layer, id}, Cursor::hand, tip);
  float x = b.x + 12, w = b.w - 20;
  if (zoom_ >= 0.8f) {
    float row = b.y + 4 * zoom_, h = 20 * zoom_;
    float name_w = std::min(text_width(l.name, Face::body) + 4, w * 0.52f);
    scene.text({x, row, name_w, h}, l.name, Ink::text, Face::body);
    std::string what = attr_summary(l, info);
    what = what.empty() || lower(l.name) == lower(l.type + what) ? l.type : l.type + "  " + what;
    scene.text({x + name_w + 6, row, w - name_w - 6, h}, what, Ink::secondary, Face::small, Align::right);
    row += 20 * zoom_;
    std::string shape = r && !r->outputs.empty() ? r->outputs[0] : r && !r->inputs.empty() ? r->inputs[0] : "";
    std::string count;
    if (r && r->parameters) {
      const std::string n = format_count(static_cast<double>(r->parameters));
      count = r->parameters == 1 ? tr("{} parameter", n) : tr("{} parameters", n);
    }
    if (!frozen.empty()) count = format_count(static_cast<double>(r->parameters)) + " " + frozen;
    float count_w = count.empty() ? 0 : text_width(count, Face::small) + 4;
    if (!bad) scene.text({x, row, w - count_w - 6, h}, shape, Ink::secondary, Face::mono_small);
    if (!bad && !count.empty())
      scene.text({b.right() - 8 - count_w, row, count_w, h}, count, Ink::secondary, Face::small, Align::right);
    if (bad) {  // where its shape would be: it has none
      scene.text({x, row, 16, h}, "⚠", Ink::bad_text, Face::small);
      scene.text({x + 16, row, w - 16, h}, r->error, Ink::bad_text, Face::small);
    }
  } else if (zoom_ >= 0.3f) {
    scene.text({x, b.y, w, b.h}, l.name, bad ? Ink::bad_text : Ink::text, Face::small);
  }
  int inputs = info ? info->inputs : 1, outputs = info ? info->outputs : 1;
  auto dot = [&](Point p, bool output, int i) {
    bool used = std::any_of(spec_.wires.begin(), spec_.wires.end(), [&](const WireSpec& wi) {
      return output ? wi.from == l.name && wi.from_port == i : wi.to == l.name && wi.to_port == i;
    });
    const float radius =
        std::clamp(kPort * zoom_ * 1.4f, 1.5f, kPort);  // small enough to leave the boxes in sight from afar
    scene.rect({p.x - radius, p.y - radius, 2 * radius, 2 * radius}, Ink::panel, 1, radius);
    scene.outline({p.x - radius, p.y - radius, 2 * radius, 2 * radius}, used ? Ink::secondary : Ink::accent, 1.5f,
                  radius);
    const std::string text = r ? (output ? (i < static_cast<int>(r->outputs.size()) ? r->outputs[i] : "")
                                         : (i < static_cast<int>(r->inputs.size()) ? r->inputs[i] : ""))
                               : "";
    scene.target({p.x - 9, p.y - 9, 18, 18}, {output ? output_port : input_port, port_id(id, i)}, Cursor::cross,
                 output ? tr("output {}", text) : tr("input {}", text));
  };
  for (int i = 0; i < inputs; ++i) dot(port(l, false, i), false, i);
  for (int i = 0; i < outputs; ++i) dot(port(l, true, i), true, i);
}

void BuilderModel::draw(Scene& scene) {
  if (size_.w != scene.size().w || size_.h != scene.size().h) fit_next_ |= !own_view_;
  size_ = scene.size();
  if (fit_next_ && !spec_.layers.empty()) {
    double x0 = 1e300, y0 = 1e300, x1 = -1e300, y1 = -1e300;
    for (const LayerSpec& l : spec_.layers) {
      x0 = std::min(x0, l.x), y0 = std::min(y0, l.y);
      x1 = std::max(x1, l.x + kNodeW), y1 = std::max(y1, l.y + kNodeH);
    }
    float w = static_cast<float>(x1 - x0), h = static_cast<float>(y1 - y0);
    fitting_ = std::clamp(std::min((size_.w - 48) / w, (size_.h - 84) / h), kLeastZoom, 1.f);
    zoom_ = fitting_;
    pan_x_ = std::max((size_.w - w * zoom_) / 2, 24.f) - static_cast<float>(x0) * zoom_;
    pan_y_ = std::max((size_.h - 36 - h * zoom_) / 2, 24.f) - static_cast<float>(y0) * zoom_;
    pan_x_ = std::round(pan_x_);
    pan_y_ = std::round(pan_y_);
    fit_next_ = false;
  }
  float dots = 32 * zoom_;
  if (dots >= 16)
    for (float y = std::fmod(pan_y_, dots); y < size_.h; y += dots)
      for (float x = std::fmod(pan_x_, dots); x < size_.w; x += dots) scene.rect({x, y, 1, 1}, Ink::line);
  for (size_t i = 0; i < spec_.wires.size(); ++i) {
    const WireSpec& w = spec_.wires[i];
    const LayerSpec *from = spec_.find(w.from), *to = spec_.find(w.to);
    if (!from || !to) continue;
    const LayerReport* r = report(w.to);
    bool bad = r && !r->error.empty(), on = static_cast<int>(i) == selected_wire_;
    draw_wire(scene, port(*from, true, w.from_port), port(*to, false, w.to_port),
              on    ? Ink::accent
              : bad ? Ink::bad
                    : Ink::secondary,
              on ? 2.5f : 1.5f, static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < spec_.layers.size(); ++i) draw_layer(scene, spec_.layers[i], static_cast<int64_t>(i));
  if (drag_ == Drag::wire)
    if (const LayerSpec* from = spec_.find(wire_from_))
      draw_wire(scene, port(*from, true, wire_port_), {pointer_x_, pointer_y_}, Ink::accent, 2, -1);

  auto wrong = errors();
  std::string total = tr("{} layers · {} parameters · {} forward · activations {} at batch {}", spec_.layers.size(),
                         format_count(static_cast<double>(parameters())), format_flops(flops()),
                         format_bytes(static_cast<double>(output_bytes())), batch_);
  scene.rect({0, size_.h - 28, size_.w, 28}, Ink::panel, 0.92f);
  scene.line({0, size_.h - 28}, {size_.w, size_.h - 28}, Ink::line);
  std::string fault = wrong.empty()       ? tr("every shape fits")
                      : wrong.size() == 1 ? tr("1 error")
                                          : tr("{} errors", wrong.size());
  float fault_w = text_width(fault, Face::small) + 24;
  scene.text({12, size_.h - 28, size_.w - fault_w - 32, 28}, total, Ink::secondary, Face::small);
  scene.text({size_.w - fault_w - 12, size_.h - 28, fault_w, 28}, (wrong.empty() ? "✓ " : "⚠ ") + fault,
             wrong.empty() ? Ink::good_text : Ink::bad_text, Face::small, Align::right);
  if (!why_.empty()) {
    float w = std::min(text_width(why_, Face::small) + 24, size_.w - 32);
    scene.rect({16, size_.h - 60, w, 24}, Ink::raised, 1, 4);
    scene.outline({16, size_.h - 60, w, 24}, Ink::warning, 1, 4);
    scene.text({28, size_.h - 60, w - 20, 24}, why_, Ink::warning_text, Face::small);
  }
}

bool BuilderModel::pointer(const PointerEvent& e) {
  switch (e.type) {
    case PointerEvent::Type::press: {
      press_x_ = pointer_x_ = e.x;
      press_y_ = pointer_y_ = e.y;
      start_x_ = pan_x_;
      start_y_ = pan_y_;
      moved_ = false;
      moved_dx_ = moved_dy_ = 0;
      why_.clear();
      Hit hit = last_.hit_at(e.x, e.y);
      if (e.button == Button::middle) {
        drag_ = Drag::pan;
        return false;
      }
      if (e.button != Button::left) return false;
      ++drag_serial_;
      if (hit.kind == output_port || hit.kind == input_port) {
        const LayerSpec& l = spec_.layers[hit.id / kMostPorts];
        int index = static_cast<int>(hit.id % kMostPorts);
        if (hit.kind == output_port) {
          wire_from_ = l.name;
          wire_port_ = index;
          drag_ = Drag::wire;
          return true;
        }
        for (const WireSpec& w : spec_.wires)  // a wire taken by its head comes off and can be put elsewhere
          if (w.to == l.name && w.to_port == index) {
            WireSpec held = w;
            disconnect(held.to, held.to_port);
            wire_from_ = held.from;
            wire_port_ = held.from_port;
            drag_ = Drag::wire;
            return true;
          }
        return false;
      }
      if (hit.kind == layer) {
        const std::string name = spec_.layers[hit.id].name;
        if (e.mods.shift || e.mods.ctrl) {
          if (!selected_.erase(name)) selected_.insert(name);
          primary_ = selected_.count(name) ? name : std::string();
        } else if (!selected_.count(name) || primary_ != name) {
          if (selected_.count(name) && selected_.size() > 1)
            primary_ = name;
          else
            choose(name);
        }
        drag_ = Drag::move;
        return true;
      }
      if (hit.kind == wire) {
        selected_.clear();
        primary_.clear();
        selected_wire_ = static_cast<int>(hit.id);
        return true;
      }
      drag_ = Drag::pan;
      return false;
    }
    case PointerEvent::Type::move: {
      pointer_x_ = e.x;
      pointer_y_ = e.y;
      if (drag_ == Drag::none) return false;
      if (std::fabs(e.x - press_x_) + std::fabs(e.y - press_y_) > 4) moved_ = true;
      if (drag_ == Drag::wire) return true;
      if (!moved_) return false;
      if (drag_ == Drag::pan) {
        own_view_ = true;
        pan_x_ = start_x_ + e.x - press_x_;
        pan_y_ = start_y_ + e.y - press_y_;
      } else {
        double dx = std::round((e.x - press_x_) / zoom_ / 8) * 8, dy = std::round((e.y - press_y_) / zoom_ / 8) * 8;
        if (dx != moved_dx_ || dy != moved_dy_) move_selected(dx - moved_dx_, dy - moved_dy_);
        moved_dx_ = dx;
        moved_dy_ = dy;
      }
      return true;
    }
    case PointerEvent::Type::release: {
      Drag was = drag_;
      drag_ = Drag::none;
      if (was == Drag::wire) {
        Hit hit = last_.hit_at(e.x, e.y);
        if (hit.kind == input_port)
          connect(wire_from_, wire_port_, spec_.layers[hit.id / kMostPorts].name,
                  static_cast<int>(hit.id % kMostPorts));
        else if (hit.kind == layer) {
          const LayerSpec& l = spec_.layers[hit.id];
          const LayerInfo* info = find_layer_type(l.type);
          int free = 0;
          for (int i = 0; info && i < info->inputs; ++i)
            if (std::none_of(spec_.wires.begin(), spec_.wires.end(),
                             [&](const WireSpec& w) { return w.to == l.name && w.to_port == i; })) {
              free = i;
              break;
            }
          if (l.name != wire_from_) connect(wire_from_, wire_port_, l.name, free);
        }
        return true;
      }
      if (was == Drag::pan && !moved_ && e.button == Button::left) {
        selected_.clear();
        primary_.clear();
        selected_wire_ = -1;
        return true;
      }
      return was != Drag::none;
    }
    case PointerEvent::Type::double_click: {
      Hit hit = last_.hit_at(e.x, e.y);
      if (!hit && on_palette) on_palette(e.x, e.y, "");
      return true;
    }
    case PointerEvent::Type::leave:
      return false;
  }
  return false;
}

bool BuilderModel::wheel(const WheelEvent& e) {
  own_view_ = true;
  if (e.mods.ctrl) {
    float next = std::clamp(zoom_ * std::pow(1.15f, e.dy), least_zoom(), kMostZoom);
    pan_x_ = e.x - (e.x - pan_x_) * next / zoom_;
    pan_y_ = e.y - (e.y - pan_y_) * next / zoom_;
    zoom_ = next;
  } else if (e.mods.shift) {
    pan_x_ += e.dy * 60;
  } else {
    pan_x_ += e.dx * 60;
    pan_y_ += e.dy * 60;
  }
  return true;
}

bool BuilderModel::key(const KeyEvent& e) {
  if (e.mods.ctrl || e.mods.alt) return false;
  if (e.key == "Del" || e.key == "Backspace") return remove_selected() || !why_.empty();
  if (e.key == "Esc") {
    drag_ = Drag::none;
    selected_.clear();
    primary_.clear();
    selected_wire_ = -1;
    why_.clear();
    return true;
  }
  if (e.key == "Up" || e.key == "Down") {
    for (const WireSpec& w : spec_.wires) {
      if (e.key == "Down" && w.from == primary_) return choose(w.to), true;
      if (e.key == "Up" && w.to == primary_) return choose(w.from), true;
    }
    if (primary_.empty() && !spec_.layers.empty()) return choose(spec_.layers.front().name), true;
    return false;
  }
  if (e.key == "Left" || e.key == "Right") {  // through all of them, as they stand in the list
    const auto& all = spec_.layers;
    const auto at = std::find_if(all.begin(), all.end(), [&](const LayerSpec& l) { return l.name == primary_; });
    if (all.empty()) return false;
    if (at == all.end())
      choose(all.front().name);
    else if (e.key == "Right" && at + 1 != all.end())
      choose(std::string((at + 1)->name));
    else if (e.key == "Left" && at != all.begin())
      choose(std::string((at - 1)->name));
    return true;
  }
  if ((e.key == "Return" || e.key == "Enter") && !primary_.empty()) {
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
