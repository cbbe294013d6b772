#include "views/shared/scene.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "views/shared/format.h"
#include "views/shared/text_widths.h"

namespace tenon::views {

void Scene::rect(Box b, Ink fill, float alpha, float radius) {
  Prim p{Kind::rect};
  p.box = b;
  p.fill = fill;
  p.alpha = alpha;
  p.radius = radius;
  prims_.push_back(p);
}
void Scene::outline(Box b, Ink stroke, float width, float radius, float alpha) {
  Prim p{Kind::rect};
  p.box = b;
  p.stroke = stroke;
  p.width = width;
  p.radius = radius;
  p.alpha = alpha;
  prims_.push_back(p);
}
void Scene::hatch(Box b, Ink stroke, float alpha) {
  Prim p{Kind::rect};
  p.box = b;
  p.stroke = stroke;
  p.alpha = alpha;
  p.hatch = 1;
  prims_.push_back(p);
}
void Scene::polyline(const std::vector<Point>& points, Ink stroke, float width, float alpha) {
  if (points.size() < 2) return;
  Prim p{Kind::line};
  p.stroke = stroke;
  p.width = width;
  p.alpha = alpha;
  p.first = static_cast<uint32_t>(points_.size());
  p.count = static_cast<uint32_t>(points.size());
  points_.insert(points_.end(), points.begin(), points.end());
  prims_.push_back(p);
}
void Scene::polygon(const std::vector<Point>& points, Ink fill, float alpha) {
  if (points.size() < 3) return;
  Prim p{Kind::line};
  p.fill = fill;
  p.closed = true;
  p.alpha = alpha;
  p.first = static_cast<uint32_t>(points_.size());
  p.count = static_cast<uint32_t>(points.size());
  points_.insert(points_.end(), points.begin(), points.end());
  prims_.push_back(p);
}
void Scene::line(Point a, Point b, Ink stroke, float width, float alpha) { polyline({a, b}, stroke, width, alpha); }

void Scene::curve(Point a, Point b, Ink stroke, float width, float alpha, bool vertical) {
  float reach = vertical ? std::max(24.f, std::fabs(b.y - a.y) / 2) : std::max(24.f, std::fabs(b.x - a.x) / 2);
  Point c1 = vertical ? Point{a.x, a.y + reach} : Point{a.x + reach, a.y};
  Point c2 = vertical ? Point{b.x, b.y - reach} : Point{b.x - reach, b.y};
  std::vector<Point> points;
  constexpr int kSegments = 20;
  for (int i = 0; i <= kSegments; ++i) {
    float t = static_cast<float>(i) / kSegments, u = 1 - t;
    float k0 = u * u * u, k1 = 3 * u * u * t, k2 = 3 * u * t * t, k3 = t * t * t;
    points.push_back({k0 * a.x + k1 * c1.x + k2 * c2.x + k3 * b.x, k0 * a.y + k1 * c1.y + k2 * c2.y + k3 * b.y});
  }
  polyline(points, stroke, width, alpha);
}

void Scene::text(Box b, std::string text, Ink ink, Face face, Align align) {
  if (text.empty()) return;
  Prim p{Kind::text};
  p.box = b;
  p.fill = ink;
  p.face = face;
  p.align = align;
  p.first = static_cast<uint32_t>(strings_.size());
  strings_.push_back(std::move(text));
  prims_.push_back(p);
}
void Scene::clip(Box b) {
  Prim p{Kind::clip};
  p.box = b;
  prims_.push_back(p);
}
void Scene::unclip() { prims_.push_back(Prim{Kind::unclip}); }

void Scene::target(Box b, Hit hit, Cursor cursor, std::string tip) {
  Target t{b, hit, cursor, 0};
  if (!tip.empty()) {
    t.tip = static_cast<uint32_t>(strings_.size());
    strings_.push_back(std::move(tip));
  }
  targets_.push_back(t);
}

const Scene::Target* Scene::target_at(float x, float y) const {
  for (auto t = targets_.rbegin(); t != targets_.rend(); ++t)
    if (t->box.contains(x, y)) return &*t;
  return nullptr;
}
Hit Scene::hit_at(float x, float y) const {
  const Target* t = target_at(x, y);
  return t ? t->hit : Hit{};
}
const std::string& Scene::tip_at(float x, float y) const {
  const Target* t = target_at(x, y);
  return strings_[t ? t->tip : 0];
}

size_t Scene::count(Kind kind) const {
  size_t n = 0;
  for (const Prim& p : prims_) n += p.kind == kind;
  return n;
}

std::vector<std::string> Scene::texts() const {
  std::vector<std::string> out;
  for (const Prim& p : prims_)
    if (p.kind == Kind::text) out.push_back(strings_[p.first]);
  return out;
}

std::string Scene::dump() const {
  std::string out;
  auto box = [](const Box& b) { return fmt::format("{:.0f},{:.0f} {:.0f}x{:.0f}", b.x, b.y, b.w, b.h); };
  for (const Prim& p : prims_) {
    switch (p.kind) {
      case Kind::rect:
        out += fmt::format("{} {} {}\n",
                           p.hatch               ? "hatch"
                           : p.fill == Ink::none ? "outline"
                                                 : "rect",
                           box(p.box), name(p.fill == Ink::none ? p.stroke : p.fill));
        break;
      case Kind::line:
        out +=
            fmt::format("{} {} points {}\n", p.closed ? "shape" : "line", p.count, name(p.closed ? p.fill : p.stroke));
        break;
      case Kind::text:
        out += fmt::format("text {} {} \"{}\"\n", box(p.box), name(p.fill), strings_[p.first]);
        break;
      case Kind::clip:
        out += fmt::format("clip {}\n", box(p.box));
        break;
      case Kind::unclip:
        out += "unclip\n";
        break;
    }
  }
  return out;
}

std::vector<std::string> Scene::overlaps() const {
  struct Placed {
    Box box;
    uint32_t text;
  };
  std::vector<Placed> placed;
  std::vector<std::string> out;
  std::vector<Box> clips{{0, 0, size_.w, size_.h}};
  for (const Prim& p : prims_) {
    if (p.kind == Kind::clip) clips.push_back(p.box);
    if (p.kind == Kind::unclip && clips.size() > 1) clips.pop_back();
    if (p.kind != Kind::text) continue;
    float w = std::min(text_width(strings_[p.first], p.face), p.box.w),
          h = p.face == Face::small || p.face == Face::mono_small ? 9 : 11;
    float x = p.align == Align::left    ? p.box.x
              : p.align == Align::right ? p.box.right() - w
                                        : p.box.x + (p.box.w - w) / 2;
    Box b{x + 1, p.box.y + (p.box.h - h) / 2, w - 2, h};
    if (!b.overlaps(clips.back())) continue;
    if (clips.size() == 1 && (b.x < 0 || b.y < 0 || b.right() > size_.w || b.bottom() > size_.h))
      out.push_back("outside: " + strings_[p.first]);
    for (const Placed& o : placed)
      if (o.box.overlaps(b)) out.push_back(strings_[o.text] + " / " + strings_[p.first]);
    placed.push_back({b, p.first});
  }
  return out;
}

static float (*exact_measure)(const std::string&,
                              Face) = nullptr;  // set once, on the UI thread, before the first frame
void measure_text_with(float (*measure)(const std::string&, Face)) { exact_measure = measure; }

static thread_local bool t_average = false;
AverageTextWidths::AverageTextWidths() : before_(std::exchange(t_average, true)) {}
AverageTextWidths::~AverageTextWidths() { t_average = before_; }

float text_width(const std::string& text, Face face) {
  if (exact_measure && !t_average) return exact_measure(text, face);
  static constexpr float advance[] = {6.9f, 5.9f, 8.2f, 7.8f, 6.6f};
  return static_cast<float>(characters(text)) * advance[static_cast<int>(face)];
}

}  // namespace tenon::views
