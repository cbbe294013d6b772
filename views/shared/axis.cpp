#include "views/shared/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"

namespace tenon::views {

void Axis::set_full(double a, double b) {
  bool was_fitted = fitted();
  full_lo = a;
  full_hi = b > a ? b : a + 1;
  if (was_fitted)
    fit();
  else
    show(lo, hi);
}

void Axis::show(double a, double b) {
  double all = full_hi - full_lo, want = std::clamp(b - a, std::min(min_span, all), all);
  double middle = (a + b) / 2;
  a = std::clamp(middle - want / 2, full_lo, full_hi - want);
  lo = a;
  hi = a + want;
}

void Axis::zoom(double at, double factor) {
  double left = (at - lo) / span(),
         want = std::clamp(span() * factor, std::min(min_span, full_hi - full_lo), full_hi - full_lo);
  double a = std::clamp(at - left * want, full_lo, full_hi - want);
  lo = a;
  hi = a + want;
}

void Axis::reveal(double a, double b) {
  if (a >= lo && b <= hi) return;
  double need = (b - a) * 1.5;
  if (need > span())
    show((a + b) / 2 - need / 2, (a + b) / 2 + need / 2);
  else
    show((a + b) / 2 - span() / 2, (a + b) / 2 + span() / 2);
}

bool Axis::key(const KeyEvent& e) {
  if (e.mods.ctrl || e.mods.alt) return false;
  double middle = (lo + hi) / 2;
  if (e.key == "W")
    zoom(middle, 0.7);
  else if (e.key == "S")
    zoom(middle, 1 / 0.7);
  else if (e.key == "A")
    pan(-span() * 0.15);
  else if (e.key == "D")
    pan(span() * 0.15);
  else if (e.key == "F")
    fit();
  else
    return false;
  return true;
}

bool Axis::wheel(const WheelEvent& e) {
  if (e.x < x || e.x > x + w) return false;
  if (e.mods.shift || e.dx != 0)
    pan(-(e.dx != 0 ? e.dx : e.dy) * span() * 0.1);
  else if (e.dy != 0)
    zoom(to_value(e.x), std::pow(0.8, e.dy));
  else
    return false;
  return true;
}

Ticks byte_ticks(double lo, double hi, double most) {
  double unit = 1;
  while (hi / unit >= 1024) unit *= 1024;
  Ticks t = nice_ticks(lo / unit, hi / unit, most);
  t.first *= unit;
  t.step *= unit;
  return t;
}

std::string without_zeros(std::string number) {
  const size_t dot = number.find('.'), end = std::min(number.find_first_of("e "), number.size());
  if (dot == std::string::npos || dot >= end) return number;
  size_t last = end;
  while (number[last - 1] == '0') --last;
  if (number[last - 1] == '.') --last;
  return number.erase(last, end - last);
}

void draw_time_axis(Scene& scene, const Axis& axis, Box header, float bottom) {
  Ticks t = nice_ticks(axis.lo, axis.hi, std::max(2, static_cast<int>(axis.w / 110)));
  double unit = t.step >= 1e9 ? 1e9 : t.step >= 1e6 ? 1e6 : t.step >= 1e3 ? 1e3 : 1;
  if (axis.hi >= 1e6 && unit < 1e6 && t.step >= 1e4) unit = 1e6;  // ticks of 50 µs beside 12 ms read better as 0.05 ms
  if (axis.hi >= 1e9 && unit < 1e9 && t.step >= 1e7) unit = 1e9;
  const char* name = unit == 1e9 ? "s" : unit == 1e6 ? "ms" : unit == 1e3 ? "µs" : "ns";
  int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(t.step / unit) - 1e-9)));
  for (int i = 0; i < t.count; ++i) {
    double v = t.at(i);
    float px = axis.to_px(v);
    if (px < axis.x - 0.5f || px > axis.x + axis.w + 0.5f) continue;
    scene.line({px, header.bottom() - 4}, {px, bottom}, Ink::grid, 1);
    std::string label =
        std::fabs(v) < t.step / 1000 ? fmt::format("0 {}", name) : fmt::format("{:.{}f} {}", v / unit, digits, name);
    float width = text_width(label, Face::mono_small) + 8;
    if (px + width > axis.x + axis.w) continue;
    scene.text({px + 4, header.y, width, header.h}, label, Ink::secondary, Face::mono_small);
  }
  scene.line({header.x, header.bottom()}, {header.right(), header.bottom()}, Ink::line);
}

}  // namespace tenon::views
