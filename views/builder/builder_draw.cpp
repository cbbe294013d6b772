// The picture of the builder; from afar it is drawn by builder_far.cpp.
#include <algorithm>
#include <cmath>

#include "engine/spec/submodel.h"
#include "views/builder/builder_ink.h"
#include "views/builder/builder_model.h"
#include "views/builder/layer_summary.h"
#include "views/graph/rounded.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kPort = 4, kMargin = 24;
}  // namespace

/// A quiet colour a family of layers, so that a network's rhythm is seen from afar.
Ink family_ink(const std::string& type) {
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

Box BuilderModel::box_of(const LayerSpec& l) const {
  const int at = index_of(l.name), cell = at < 0 ? -1 : layout_.cell_of_layer(at);
  return cell < 0 ? Box{} : to_canvas(layout_.picture().cells[static_cast<size_t>(cell)].box);
}

Point BuilderModel::port(const LayerSpec& l, bool output, int index) const {
  const LayerInfo* info = find_layer_type(l.type);
  const Box b = box_of(l);
  return {b.x + port_at(b.w, index, info ? (output ? info->outputs : info->inputs) : 1), output ? b.bottom() : b.y};
}

bool BuilderModel::seen(Box b) const {
  return b.right() >= -20 && b.bottom() >= -20 && b.x <= size_.w + 20 && b.y <= size_.h + 20;
}

void BuilderModel::fit_now() {
  const float w = std::max(whole_.w, 1.f), h = std::max(whole_.h, 1.f);
  const float room_w = std::max(size_.w - 2 * kMargin, 8.f), room_h = std::max(size_.h - 36 - 2 * kMargin, 8.f);
  fitting_ = std::min({room_w / w, room_h / h, 1.f});
  zoom_ = fitting_;
  pan_x_ = std::round(kMargin + (room_w - w * zoom_) / 2 - whole_.x * zoom_);
  pan_y_ = std::round(kMargin + (room_h - h * zoom_) / 2 - whole_.y * zoom_);
  fit_next_ = false;
}

void BuilderModel::draw_ground(Scene& scene) const {
  const float dots = 32 * zoom_;
  if (dots < 16) return;
  for (float y = std::fmod(pan_y_, dots); y < size_.h; y += dots)
    for (float x = std::fmod(pan_x_, dots); x < size_.w; x += dots) scene.rect({x, y, 1, 1}, Ink::line);
}

void BuilderModel::draw_frames(Scene& scene) const {
  for (const GroupLayout::Frame& f : layout_.picture().frames) {
    const Box b = to_canvas(f.box);
    if (!seen(b) || b.w < 3 || b.h < 3) continue;
    const std::string path = layout_.tree().path(f.node);
    const bool on = !group_.empty() && path == group_;
    const float radius = zoom_ < kNamesZoom ? 0.f : 6.f;
    scene.rect(b, f.depth % 2 ? Ink::panel : Ink::base, 0.7f, radius);
    scene.outline(b, on ? Ink::accent : Ink::line, on ? 2.f : 1.f, radius);
  }
}

/// The names of open groups lie over their wires, at the size of text at any zoom.
void BuilderModel::draw_titles(Scene& scene) const {
  std::vector<Box> placed;
  for (const GroupLayout::Frame& f : layout_.picture().frames) {
    const Box b = to_canvas(f.box);
    if (!seen(b) || b.w < 30 || b.h < 16) continue;
    const bool near = zoom_ >= kWordsZoom;
    const SubModelSpec* of = submodel_of(spec_, layout_.instance_at(f.node));
    const std::string text = "▾ " + layout_.short_title(f) + (of ? " · " + of->name : "");
    const float h = near ? 18.f : 14.f;
    const Box chip{b.x + (near ? 6.f : 2.f), b.y + (near ? 4.f * std::min(zoom_ * 1.4f, 1.f) : 1.f),
                   std::min(text_width(text, Face::small) + 12, b.w - (near ? 12.f : 4.f)), h};
    if (std::any_of(placed.begin(), placed.end(), [&](const Box& o) { return o.overlaps(chip); })) continue;
    placed.push_back(chip);
    const bool on = !group_.empty() && layout_.tree().path(f.node) == group_;
    scene.rect(chip, f.depth % 2 ? Ink::panel : Ink::base, 0.92f, 3);
    scene.text({chip.x + 4, chip.y, chip.w - 6, chip.h}, text, on ? Ink::accent : Ink::secondary, Face::small);
    const int errors = below_[static_cast<size_t>(f.node)].errors;
    scene.target(chip, {opened_group, f.node}, Cursor::hand,
                 layout_.tree().path(f.node) + "\n" + tr("{} layers", format_grouped(layout_.tree().at(f.node).items)) +
                     (errors ? "\n" + tr("{} errors", errors) : "") + "\n" + tr("Double click folds it"));
  }
}

void BuilderModel::draw_piece(Scene& scene, size_t piece, Ink ink, float width) const {
  const int at = layout_.picture().pieces[piece].wire;
  const std::vector<Point>& points = layout_.way(piece);
  std::vector<Point> way;
  way.reserve(points.size());
  float x0 = 1e9f, y0 = 1e9f, x1 = -1e9f, y1 = -1e9f;
  for (const Point& q : points) {
    way.push_back(to_canvas(q));
    x0 = std::min(x0, way.back().x), x1 = std::max(x1, way.back().x);
    y0 = std::min(y0, way.back().y), y1 = std::max(y1, way.back().y);
  }
  if (x1 < 0 || y1 < 0 || x0 > size_.w || y0 > size_.h) return;
  if (zoom_ < kNamesZoom)  // far away: a line without corners or places to click
    return scene.polyline(way, ink, 1, zoom_ < 0.12f ? 0.5f : 0.8f);
  if (way.size() == 2)  // drawn as the bent ones are: soft, not as a hairline
    scene.polyline({way[0], {(way[0].x + way[1].x) / 2, (way[0].y + way[1].y) / 2}, way[1]}, ink, width);
  else
    scene.polyline(rounded(way, 7 * zoom_), ink, width);
  for (size_t i = 0; i + 1 < way.size(); ++i) {
    const Point a = way[i], b = way[i + 1];
    scene.target({std::min(a.x, b.x) - 4, std::min(a.y, b.y) - 4, std::fabs(a.x - b.x) + 8, std::fabs(a.y - b.y) + 8},
                 {wire, at}, Cursor::hand);
  }
}

/// Those of chosen layers, and a chosen wire, lie over the others.
void BuilderModel::draw_wires(Scene& scene) const {
  const GroupLayout& picture = layout_.picture();
  std::vector<char> look(picture.pieces.size(), 0);  // 1: of a faulty layer, 2: of a chosen layer, 3: chosen
  const auto mark = [&](int wire, char as) {
    for (int p = picture.last[static_cast<size_t>(wire)]; p >= 0; p = picture.pieces[static_cast<size_t>(p)].before)
      look[static_cast<size_t>(p)] = std::max(look[static_cast<size_t>(p)], as);
  };
  const bool few = selected_.size() <= 4;
  for (size_t w = 0; w < spec_.wires.size() && w < picture.last.size(); ++w) {
    const auto [from, to] = ends_[w];
    if (static_cast<int>(w) == selected_wire_)
      mark(static_cast<int>(w), 3);
    else if (few && (is_chosen(from) || is_chosen(to)))
      mark(static_cast<int>(w), 2);
    else if (to >= 0 && bad_[static_cast<size_t>(to)])
      mark(static_cast<int>(w), 1);
  }
  constexpr size_t kMostPieces = 4'000;
  const float least = zoom_ < kNamesZoom ? 3 / zoom_ : 0;  // from far away shorter ones are no lines
  const Box seen{-pan_x_ / zoom_, -pan_y_ / zoom_, size_.w / zoom_, size_.h / zoom_};
  size_t drawn = 0;
  for (char as : {0, 1, 2, 3})
    for (size_t p = 0; p < picture.pieces.size(); ++p) {
      if (look[p] != as || (as == 0 && drawn > kMostPieces) || !layout_.may_be_seen(p, seen, least)) continue;
      const size_t before = scene.prims().size();
      draw_piece(scene, p, as >= 2 ? Ink::accent : as == 1 ? Ink::bad : Ink::secondary, as == 3 ? 2.5f : 1.5f);
      drawn += scene.prims().size() - before;
    }
}

std::string BuilderModel::tip_of(int index) const {
  const LayerSpec& l = spec_.layers[static_cast<size_t>(index)];
  const LayerInfo* info = find_layer_type(l.type);
  const LayerReport* r = report_of(index);
  std::string tip = l.name + "\n" + (info ? l.type + ": " + info->help : l.type);
  if (!l.comment.empty()) tip += "\n" + l.comment;
  if (l.off) tip += "\n" + tr("Off: what it would read goes on in its place");
  if (r && r->parameters) tip += "\n" + tr("{} parameters", format_grouped(r->parameters));
  if (!l.shares.empty()) tip += "\n" + tr("It has the weights of {}", l.shares);
  const std::string frozen = r ? frozen_text(*r) : "";
  if (!frozen.empty()) tip += "\n" + tr("{}: the next run does not train it (init.freeze)", frozen);
  if (r && r->flops > 0) tip += "\n" + tr("{} a batch of {}", format_flops(r->flops), batch_);
  if (heat_.shown() && static_cast<size_t>(index) < heat_.layers.size())
    tip += "\n" + tr(heat_title(heat_.what)) + ": " + heat_.text(heat_.layers[static_cast<size_t>(index)]);
  if (r && !r->error.empty()) tip += "\n" + r->error + (r->hint.empty() ? "" : "\n" + r->hint);
  return tip;
}

/// The ink of a cell's outline.
Ink BuilderModel::rim(const GroupLayout::Cell& c) const {
  const int index = layout_.layer_of(c);
  if (index < 0) {
    if (selected_.empty()) return Ink::line;
    const std::vector<int> layers = layout_.layers_below(c.node);
    return std::any_of(layers.begin(), layers.end(), [&](int i) { return is_chosen(i); }) ? Ink::accent : Ink::line;
  }
  if (bad_[static_cast<size_t>(index)]) return Ink::bad;
  if (is_chosen(index)) return Ink::accent;
  return std::binary_search(found_.begin(), found_.end(), index) ? Ink::warning : Ink::line;
}

void BuilderModel::draw_cell(Scene& scene, const GroupLayout::Cell& c) const {
  const Box b = to_canvas(c.box);
  if (!seen(b)) return;
  if (zoom_ < kNamesZoom) return draw_speck(scene, c, b);
  if (const int index = layout_.layer_of(c); index >= 0)
    draw_layer(scene, index, c, b);
  else
    draw_group(scene, c, b);
}

void BuilderModel::draw_layer(Scene& scene, int index, const GroupLayout::Cell& c, Box b) const {
  const LayerSpec& l = spec_.layers[static_cast<size_t>(index)];
  const LayerReport* r = report_of(index);
  const bool bad = r && !r->error.empty(), on = is_chosen(index);
  const Ink edge = rim(c);
  scene.rect(b, Ink::raised, 1, 4);
  draw_heat(scene, c, b);
  if (l.off) {
    scene.hatch({b.x + 2, b.y + 2, b.w - 4, b.h - 4}, Ink::line, 0.8f);
    if (zoom_ < kWordsZoom) scene.rect({b.x + 8, b.y + 2, b.w - 16, b.h - 4}, Ink::raised, 0.8f);
  }
  const float inset = std::min(4.f, b.h / 4);  // clear of the round corners
  scene.rect({b.x + 1, b.y + inset, 3, b.h - 2 * inset}, bad ? Ink::bad : family_ink(l.type), l.off ? 0.4f : 1, 1);
  scene.outline(b, edge, edge != Ink::line ? 2.f : 1.f, 4);
  if (bad && on) scene.outline({b.x - 3, b.y - 3, b.w + 6, b.h + 6}, Ink::accent, 1, 6);
  scene.target(b, {layer, index}, Cursor::hand, tip_of(index));
  if (zoom_ >= kWordsZoom) {
    draw_layer_words(scene, index, c, b);
  } else {
    const float x = b.x + 10, w = b.w - 16;
    const std::string name = layout_.short_name(c);
    const float name_w = std::min(text_width(name, Face::small) + 2, w);
    scene.text({x, b.y, name_w, b.h}, name, bad ? Ink::bad_text : l.off ? Ink::secondary : Ink::text, Face::small);
    const bool hot = heat_.shown() && heat_of(c) > 0;
    const std::string what = l.off ? tr("off") : hot ? heat_.text(heat_of(c)) : l.type;
    constexpr size_t kFew = 300;  // so many words more are no burden
    const bool roomy = zoom_ >= kTypesZoom || layout_.picture().cells.size() < kFew;
    if ((roomy || hot || l.off) && text_width(what, Face::small) + 10 < w - name_w)
      scene.text({x + name_w + 8, b.y, w - name_w - 8, b.h}, what, hot ? Ink::text : Ink::secondary, Face::small,
                 Align::right);
  }
  if (zoom_ >= kPortsZoom) draw_ports(scene, index, b);
}

/// Its name, type and attributes; what leaves it and its parameters, or what is wrong; its comment.
void BuilderModel::draw_layer_words(Scene& scene, int index, const GroupLayout::Cell& c, Box b) const {
  const LayerSpec& l = spec_.layers[static_cast<size_t>(index)];
  const LayerInfo* info = find_layer_type(l.type);
  const LayerReport* r = report_of(index);
  const bool bad = r && !r->error.empty();
  const float x = b.x + 12, w = b.w - 20, h = 20 * zoom_;
  float row = b.y + 4 * zoom_;
  const std::string name = layout_.short_name(c);
  const float name_w = std::min(text_width(name, Face::body) + 4, w * 0.52f);
  scene.text({x, row, name_w, h}, name, l.off ? Ink::secondary : Ink::text, Face::body);
  std::string what = attr_summary(l, info);
  what = what.empty() || lower(l.name) == lower(l.type + what) ? l.type : l.type + "  " + what;
  scene.text({x + name_w + 6, row, w - name_w - 6, h}, what, Ink::secondary, Face::small, Align::right);
  row += h;
  const std::string frozen = r ? frozen_text(*r) : "";
  std::string shape = r && !r->outputs.empty() ? r->outputs[0] : r && !r->inputs.empty() ? r->inputs[0] : "";
  if (l.off) shape = tr("off: passed by");
  std::string count;
  if (r && r->parameters) {
    const std::string n = format_count(static_cast<double>(r->parameters));
    count = r->parameters == 1 ? tr("{} parameter", n) : tr("{} parameters", n);
  }
  if (!l.shares.empty()) count = shared_text(l);
  if (!frozen.empty()) count = format_count(static_cast<double>(r->parameters)) + " " + frozen;
  if (heat_.shown()) count = heat_of(c) > 0 ? heat_.text(heat_of(c)) : "";
  const float count_w = count.empty() ? 0 : std::min(text_width(count, Face::small) + 4, w * 0.6f);
  if (bad) {  // where its shape would be: it has none
    scene.text({x, row, 16, h}, "⚠", Ink::bad_text, Face::small);
    scene.text({x + 16, row, w - 16, h}, r->error, Ink::bad_text, Face::small);
  } else {
    scene.text({x, row, w - count_w - 6, h}, shape, Ink::secondary, Face::mono_small);
    if (!count.empty())
      scene.text({b.right() - 8 - count_w, row, count_w, h}, count, heat_.shown() ? Ink::text : Ink::secondary,
                 Face::small, Align::right);
  }
  if (l.comment.empty()) return;
  row += h;
  const std::string line = l.comment.substr(0, l.comment.find('\n'));
  scene.rect({x - 4, row + 1, w + 6, b.bottom() - row - 4}, Ink::warning, 0.14f, 3);
  scene.text({x, row, w, b.bottom() - row - 2}, line, Ink::text, Face::small);
}

void BuilderModel::draw_ports(Scene& scene, int index, Box b) const {
  const LayerSpec& l = spec_.layers[static_cast<size_t>(index)];
  const LayerInfo* info = find_layer_type(l.type);
  const LayerReport* r = report_of(index);
  const float radius = std::clamp(kPort * zoom_ * 1.4f, 1.5f, kPort);  // small enough to leave the boxes in sight
  const auto dot = [&](bool output, int i, int count) {
    const Point p{b.x + port_at(b.w, i, count), output ? b.bottom() : b.y};
    const bool used = (output ? used_out_ : used_in_).contains({index, i});
    const Box at{p.x - radius, p.y - radius, 2 * radius, 2 * radius};
    const Ink ink = used ? Ink::secondary : Ink::accent;
    if (radius >= 3) {
      scene.rect(at, Ink::panel, 1, radius);
      scene.outline(at, ink, 1.5f, radius);
    } else {
      scene.rect(at, ink, 1, radius);  // a ring of that size is a dot
    }
    const auto& shapes = r ? (output ? r->outputs : r->inputs) : std::vector<std::string>{};
    const std::string text = static_cast<size_t>(i) < shapes.size() ? shapes[static_cast<size_t>(i)] : "";
    const float out = std::min(9.f, 7 * zoom_);  // a short wire can be clicked between its ports
    const float in = std::min(9.f, b.h / 3);     // and its layer, too
    scene.target({p.x - 9, output ? p.y - in : p.y - out, 18, in + out},
                 {output ? output_port : input_port, port_id(index, i)}, Cursor::cross,
                 output ? tr("output {}", text) : tr("input {}", text));
  };
  const int inputs = info ? info->inputs : 1, outputs = info ? info->outputs : 1;
  for (int i = 0; i < inputs; ++i) dot(false, i, inputs);
  for (int i = 0; i < outputs; ++i) dot(true, i, outputs);
}

/// A folded group: it lies on another sheet, and says what it holds.
void BuilderModel::draw_group(Scene& scene, const GroupLayout::Cell& c, Box b) const {
  const auto& [errors, parameters, flops] = below_[static_cast<size_t>(c.node)];
  const Ink edge = errors ? Ink::bad : rim(c);
  const float sheet = std::max(2.f, 4 * zoom_);
  scene.rect({b.x + sheet, b.y + sheet, b.w, b.h}, Ink::panel, 1, 4);
  scene.outline({b.x + sheet, b.y + sheet, b.w, b.h}, Ink::line, 1, 4);
  scene.rect(b, Ink::raised, 1, 4);
  draw_heat(scene, c, b);
  scene.outline(b, edge, edge != Ink::line ? 2.f : 1.f, 4);
  std::string tip =
      layout_.tree().path(c.node) + "\n" + tr("{} layers", format_grouped(layout_.tree().at(c.node).items));
  if (parameters) tip += "\n" + tr("{} parameters", format_grouped(parameters));
  if (flops > 0) tip += "\n" + tr("{} a batch of {}", format_flops(flops), batch_);
  if (heat_.shown()) tip += "\n" + tr(heat_title(heat_.what)) + ": " + heat_.text(heat_of(c));
  if (errors) tip += "\n" + tr("{} errors", errors);
  const std::string path = layout_.instance_at(c.node);
  const SubModelSpec* of = submodel_of(spec_, path);
  const std::string owner = of ? shared_instance(spec_, path) : std::string();
  if (of)
    tip +=
        "\n" + tr("Sub-model {}: what is changed in one instance is changed in all {}", of->name, of->instances.size());
  if (!owner.empty()) tip += "\n" + tr("It has the weights of {}", owner);
  scene.target(b, {group, c.node}, Cursor::hand, tip + "\n" + tr("Double click opens it"));
  const std::string name = "▸ " + layout_.short_name(c);
  const std::string count = parameters ? format_count(static_cast<double>(parameters)) : "";
  const float x = b.x + 10, w = b.w - 18;
  if (of && zoom_ >= kPortsZoom) draw_instance_ports(scene, path, b);
  if (zoom_ < kWordsZoom) {
    const std::string holds = heat_.shown() ? heat_.text(heat_of(c))
                              : of          ? of->name
                                            : tr("{} layers", format_grouped(layout_.tree().at(c.node).items));
    const float holds_w = text_width(holds, Face::small) + 4, name_w = text_width(name, Face::small) + 4;
    const bool both = name_w + holds_w + 8 < w;
    scene.text({x, b.y, both ? w - holds_w - 8 : w, b.h}, name, errors ? Ink::bad_text : Ink::text, Face::small);
    if (both)
      scene.text({x + w - holds_w, b.y, holds_w, b.h}, holds, heat_.shown() ? Ink::text : Ink::secondary, Face::small,
                 Align::right);
    return;
  }
  const float h = 20 * zoom_, row = b.y + 4 * zoom_;
  const float of_w = of ? std::min(text_width(of->name, Face::small) + 4, w * 0.5f) : 0;
  scene.text({x, row, w - of_w - 6, h}, name, Ink::text, Face::body);
  if (of) scene.text({x + w - of_w, row, of_w, h}, of->name, Ink::secondary, Face::small, Align::right);
  const std::string parts = tr("{} layers", format_grouped(layout_.tree().at(c.node).items));
  const std::string sum = heat_.shown()    ? heat_.text(heat_of(c))
                          : !owner.empty() ? "⇄ " + owner
                          : parameters     ? tr("{} parameters", count)
                                           : "";
  const float sum_w = sum.empty() ? 0 : text_width(sum, Face::small) + 4;
  if (errors)
    scene.text({x, row + h, w, h}, "⚠ " + (errors == 1 ? tr("1 error") : tr("{} errors", errors)), Ink::bad_text,
               Face::small);
  else
    scene.text({x, row + h, w - sum_w - 6, h}, parts, Ink::secondary, Face::small);
  if (!sum.empty() && !errors)
    scene.text({b.right() - 8 - sum_w, row + h, sum_w, h}, sum, heat_.shown() ? Ink::text : Ink::secondary, Face::small,
               Align::right);
}

/// A wire that is being drawn, and the band around what is to be selected.
void BuilderModel::draw_gesture(Scene& scene) const {
  if (drag_ == Drag::wire)
    if (const int at = index_of(wire_from_); at >= 0)
      scene.curve(port(spec_.layers[static_cast<size_t>(at)], true, wire_port_), {pointer_x_, pointer_y_}, Ink::accent,
                  2, 1, true);
  if (drag_ == Drag::band && moved_) {
    const Box b{std::min(press_x_, pointer_x_), std::min(press_y_, pointer_y_), std::fabs(pointer_x_ - press_x_),
                std::fabs(pointer_y_ - press_y_)};
    scene.rect(b, Ink::accent, 0.1f);
    scene.outline(b, Ink::accent, 1);
  }
}

void BuilderModel::draw_status(Scene& scene) const {
  const std::vector<std::string>& wrong = errors();
  const std::string layers = spec_.layers.size() == 1 ? tr("1 layer") : tr("{} layers", spec_.layers.size());
  std::string total = tr("{} · {} parameters · {} forward · activations {} at batch {}", layers,
                         format_count(static_cast<double>(parameters())), format_flops(flops()),
                         format_bytes(static_cast<double>(output_bytes())), batch_);
  scene.rect({0, size_.h - 28, size_.w, 28}, Ink::panel, 0.92f);
  scene.line({0, size_.h - 28}, {size_.w, size_.h - 28}, Ink::line);
  std::string fault = wrong.empty()       ? tr("every shape fits")
                      : wrong.size() == 1 ? tr("1 error")
                                          : tr("{} errors", wrong.size());
  if (spec_.layers.empty()) fault = tr("no layers yet");
  float fault_w = text_width(fault, Face::small) + 24;
  scene.text({12, size_.h - 28, size_.w - fault_w - 32, 28}, total, Ink::secondary, Face::small);
  scene.text({size_.w - fault_w - 12, size_.h - 28, fault_w, 28}, (wrong.empty() ? "✓ " : "⚠ ") + fault,
             wrong.empty() ? Ink::good_text : Ink::bad_text, Face::small, Align::right);
  const std::string habits =
      tr("Wheel moves · Ctrl and wheel zooms · drag on the ground selects, with the middle button moves · "
         "port to port wires");
  if (const float w = text_width(habits, Face::small) + 24;
      why_.empty() && said_.empty() && !used_wheel_ && !own_view_ && w < size_.w && size_.h > 200) {
    scene.rect({0, size_.h - 49, w, 20}, Ink::panel);  // the ground's dots would stand among its points
    scene.text({12, size_.h - 49, size_.w - 24, 20}, habits, Ink::secondary, Face::small);
  }
  if (const std::string& told = why_.empty() ? said_ : why_; !told.empty()) {
    const bool refused = !why_.empty();
    float w = std::min(text_width(told, Face::small) + 24, size_.w - 32);
    scene.rect({16, size_.h - 60, w, 24}, Ink::raised, 1, 4);
    scene.outline({16, size_.h - 60, w, 24}, refused ? Ink::warning : Ink::line, 1, 4);
    scene.text({28, size_.h - 60, w - 20, 24}, told, refused ? Ink::warning_text : Ink::text, Face::small);
  }
}

void BuilderModel::draw(Scene& scene) {
  if (size_.w != scene.size().w || size_.h != scene.size().h) fit_next_ |= !own_view_;
  size_ = scene.size();
  const GroupLayout& picture = layout_.picture();
  float x0 = 1e9f, y0 = 1e9f, x1 = -1e9f, y1 = -1e9f;
  const float aside = layout_.by_hand() ? 12.f : 0.f;  // where wires that are not led yet may pass
  const auto reach = [&](Box b) {
    x0 = std::min(x0, b.x - aside), y0 = std::min(y0, b.y - aside);
    x1 = std::max(x1, b.right() + aside), y1 = std::max(y1, b.bottom() + aside);
  };
  for (const auto& c : picture.cells) reach(c.box);
  for (const auto& f : picture.frames) reach(f.box);
  if (!layout_.by_hand())
    for (const auto& p : picture.pieces)
      for (Point q : p.points) reach({q.x, q.y, 0, 0});
  whole_ = picture.cells.empty() ? Box{} : Box{x0, y0, x1 - x0, y1 - y0};
  if (fit_next_ && !picture.cells.empty()) fit_now();
  if (!reveal_next_.empty()) {
    const std::string name = std::exchange(reveal_next_, {});
    if (const int at = index_of(name); at >= 0) {
      const Box b = box_of(spec_.layers[static_cast<size_t>(at)]);
      if (b.x < 8 || b.y < 8 || b.right() > size_.w - 8 || b.bottom() > size_.h - 40) {
        pan_x_ = std::round(pan_x_ + size_.w / 2 - b.x - b.w / 2);
        pan_y_ = std::round(pan_y_ + size_.h / 2 - b.y - b.h / 2);
        own_view_ = true;
      }
    }
  }
  chosen_.assign(spec_.layers.size(), 0);
  for (const std::string& name : selected_)
    if (const int at = index_of(name); at >= 0) chosen_[static_cast<size_t>(at)] = 1;
  find_hottest();
  draw_ground(scene);
  draw_frames(scene);
  draw_wires(scene);
  for (const auto& c : picture.cells) draw_cell(scene, c);
  draw_titles(scene);
  if (zoom_ < kNamesZoom) draw_far_names(scene);
  draw_gesture(scene);
  draw_minimap(scene);
  draw_heat_legend(scene);
  draw_status(scene);
}

}  // namespace tenon::views
