#include "views/shared/tensor_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kFigureLine = 20, kLeastHistogram = 86, kBetween = 20, kTwoColumns = 250;
constexpr int kFigures = 9, kRowsOfTwo = 5;
}  // namespace

float statistics_height(float width, float height) {
  const float one = kFigures * kFigureLine + kLeastHistogram;
  return width >= kTwoColumns && height < one + kLeastHistogram ? kRowsOfTwo * kFigureLine + kLeastHistogram : one;
}

std::pair<int, int> first_slice(const Shape& size) {
  const int n = size.n;
  if (n > 2 && size[n - 1] == 1 && size[n - 2] == 1) return {0, 1};
  return {n >= 2 ? n - 2 : -1, n - 1};
}

void tint_value(Scene& scene, Box box, double v, double scale, float strength) {
  if (!std::isfinite(v)) {
    scene.rect(box, Ink::bad, 0.9f);
    scene.hatch(box, Ink::dark_on_fill, 0.35f);
  } else if (v != 0 && scale > 0) {
    const float a = static_cast<float>(std::min(1.0, std::fabs(v) / scale));
    scene.rect(box, v > 0 ? Ink::positive : Ink::negative, a * strength);
  }
}

void draw_tint_legend(Scene& scene, Point at, double scale) {
  scene.rect({at.x, at.y + 4, 8, 8}, Ink::negative, 1, 2);
  scene.text({at.x + 12, at.y, 90, 16}, format_value(-scale), Ink::secondary, Face::mono_small);
  scene.rect({at.x + 108, at.y + 4, 8, 8}, Ink::positive, 1, 2);
  scene.text({at.x + 120, at.y, 90, 16}, format_value(scale), Ink::secondary, Face::mono_small);
}

void draw_statistics(Scene& scene, Box b, const TensorStats& s) {
  // Where there is little height and some width, two columns leave room for the histogram.
  const bool two = statistics_height(b.w, b.h) < statistics_height(0, 0);
  const float w = two ? (b.w - kBetween) / 2 : b.w, top = b.y;
  float x = b.x, y = top, lowest = top;
  auto line = [&](const std::string& name, const std::string& value, Ink ink = Ink::text) {
    if (two && y >= top + kRowsOfTwo * kFigureLine) x = b.x + w + kBetween, y = top;
    if (y + kFigureLine > b.bottom()) return;
    scene.text({x, y, 60, kFigureLine}, name, Ink::secondary, Face::small);
    scene.text({x + 62, y, w - 62, kFigureLine}, value, ink, Face::mono_small, Align::right);
    y += kFigureLine;
    lowest = std::max(lowest, y);
  };
  auto share = [&](int64_t n) {
    if (n == 0) return std::string("0");
    const std::string part =
        format_percent(static_cast<double>(n) / static_cast<double>(std::max<int64_t>(s.count, 1)));
    return two ? part : fmt::format("{} ({})", format_grouped(n), part);
  };
  line(tr("elements"), format_grouped(s.count));
  line("min", format_value(s.min));
  line("max", format_value(s.max));
  line(tr("mean"), format_value(s.mean));
  line("std", format_value(s.std));
  line(tr("norm"), format_value(s.l2));
  line(tr("zeros"), share(s.zeros));
  line("nan", s.nan ? share(s.nan) : "0", s.nan ? Ink::bad_text : Ink::text);
  line("inf", s.inf ? share(s.inf) : "0", s.inf ? Ink::bad_text : Ink::text);
  if (s.denormal) line(tr("denormal"), share(s.denormal), Ink::warning_text);
  y = lowest;
  if (b.bottom() - y < 66 || s.finite() == 0) return;
  Box plot{b.x, y + 10, b.w, std::min(b.bottom() - y - 30, 110.f)};
  int64_t most = 1;
  for (int64_t n : s.bins) most = std::max(most, n);
  const float bin = plot.w / static_cast<float>(s.bins.size());
  for (size_t i = 0; i < s.bins.size(); ++i) {
    if (!s.bins[i]) continue;
    float h = std::max(1.f, static_cast<float>(s.bins[i]) / static_cast<float>(most) * plot.h);
    double a = s.min + (s.max - s.min) * static_cast<double>(i) / static_cast<double>(s.bins.size());
    double z = s.min + (s.max - s.min) * static_cast<double>(i + 1) / static_cast<double>(s.bins.size());
    Box bar{plot.x + static_cast<float>(i) * bin, plot.bottom() - h, std::max(bin - 1, 1.f), h};
    scene.rect(bar, (a + z) / 2 < 0 ? Ink::negative : Ink::positive);
    scene.target({bar.x, plot.y, bin, plot.h}, {}, Cursor::arrow,
                 tr("{} to {}: {}", format_value(a), format_value(z), format_grouped(s.bins[i])));
  }
  scene.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, Ink::secondary);
  scene.text({plot.x, plot.bottom() + 2, plot.w / 2, 16}, format_value(s.min), Ink::secondary, Face::mono_small);
  scene.text({plot.x + plot.w / 2, plot.bottom() + 2, plot.w / 2, 16}, format_value(s.max), Ink::secondary,
             Face::mono_small, Align::right);
}

}  // namespace tenon::views
