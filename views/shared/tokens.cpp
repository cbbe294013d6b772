#include "views/shared/tokens.h"

#include <algorithm>
#include <cmath>

namespace tenon::views {

namespace {
constexpr bool in_order() {
  for (int i = 0; i < kInks; ++i)
    if (static_cast<int>(kTokens[i].ink) != i) return false;
  return true;
}
static_assert(in_order(), "kTokens is indexed by Ink: one row an ink, in the order of the enumeration");

double linear(uint8_t c) {
  double s = c / 255.0;
  return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
}
double luminance(Rgb c) { return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b); }
}  // namespace

double contrast(Rgb a, Rgb b) {
  double la = luminance(a) + 0.05, lb = luminance(b) + 0.05;
  return std::max(la, lb) / std::min(la, lb);
}

Ink on_fill(Ink fill) {
  Rgb f = color(fill, ThemeName::dark);
  bool dark =
      contrast(f, color(Ink::dark_on_fill, ThemeName::dark)) >= contrast(f, color(Ink::light_on_fill, ThemeName::dark));
  return dark ? Ink::dark_on_fill : Ink::light_on_fill;
}

}  // namespace tenon::views
