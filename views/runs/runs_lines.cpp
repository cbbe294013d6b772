// Runs as lines through axes that stand beside each other: parallel coordinates.
#include <algorithm>

#include "views/runs/runs_chart.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

namespace {
constexpr size_t kMostLines = 400;  ///< more are a carpet, and take longer than a frame
constexpr float kTop = 50, kBottom = 26;
}  // namespace

void RunsChart::draw_axis(Scene& scene, float x, Box area, float room, const RunField& field,
                          const Scale& scale) const {
  scene.line({x, area.y}, {x, area.bottom()}, Ink::secondary);
  std::string title = field.text();
  if (text_width(title, Face::small) > room) title = title.substr(title.rfind('.') + 1);
  if (scale.log && text_width(title, Face::small) + 100 < room) title = tr("{} (logarithmic)", title);
  const float left = std::clamp(x - room / 2, 2.f, std::max(scene.size().w - room - 2, 2.f));
  scene.text({left, area.y - 24, room, 16}, title, Ink::text, Face::small, Align::center);
  const bool last = x + room > scene.size().w;
  for (const auto& [at, text] : scale.marks(std::max(2, static_cast<int>(area.h / 60)))) {
    const float y = area.bottom() - at * area.h;
    const float w = std::min(text_width(text, Face::mono_small) + 4, std::max(room / 2 - 8, 10.f));
    const Box at_mark{last ? x - 7 - w : x + 7, y - 8, w, 16};
    scene.line({x - 3, y}, {x + 3, y}, Ink::secondary);
    scene.rect({at_mark.x - 2, y - 7, w + 4, 14}, Ink::panel, 0.8f, 2);  // the lines lie under the words
    scene.text(at_mark, text, Ink::secondary, Face::mono_small, last ? Align::right : Align::left);
  }
}

void RunsChart::draw_line(Scene& scene, const Spot& s, const std::vector<float>& xs, Box area) const {
  std::vector<Point> line;
  for (size_t i = 0; i < axes_.size(); ++i) {
    const auto value = value_of(axes_[i], *s.row);
    const auto at = value ? scales_[i].place(*value) : std::nullopt;  // a key that says nothing to it has no place
    if (at) line.push_back({xs[i], area.bottom() - *at * area.h});
  }
  line.push_back({xs.back(), area.bottom() - s.y * area.h});
  const int64_t id = s.row->info.id;
  const auto at = std::find(picked_.begin(), picked_.end(), id);
  const Ink ink = id == selected_       ? Ink::accent
                  : at != picked_.end() ? compared_ink(static_cast<int>(at - picked_.begin()))
                                        : ink_of(s);
  const bool loud = id == selected_ || at != picked_.end();
  scene.polyline(line, ink, loud ? 2.5f : 1.2f, loud ? 1.f : 0.5f);
  for (const Point& p : line) {
    scene.rect({p.x - 2.5f, p.y - 2.5f, 5, 5}, ink, 1, 2.5f);
    scene.target({p.x - 6, p.y - 6, 12, 12}, {run, id}, Cursor::hand, tip_of(s));
  }
}

void RunsChart::draw_lines(Scene& scene) const {
  const Size size = scene.size();
  const auto gaps = static_cast<float>(axes_.size());
  const float inset = std::min(80.f, size.w / (2 * gaps + 2));
  const Box area{inset, kTop, std::max(size.w - 2 * inset, 20.f), std::max(size.h - kTop - kBottom, 20.f)};
  const float gap = area.w / gaps;
  std::vector<float> xs;
  for (size_t i = 0; i <= axes_.size(); ++i) xs.push_back(area.x + gap * static_cast<float>(i));
  // The highest and the lowest stay where there are too many; what is chosen lies on top.
  std::vector<const Spot*> order;
  const size_t n = spots_.size();
  for (size_t i = 0; i < n; ++i)
    if (n <= kMostLines || i < kMostLines / 2 || i >= n - kMostLines / 2 || spots_[i].row->info.id == selected_)
      order.push_back(&spots_[i]);
  const auto loudness = [&](const Spot* s) {
    const int64_t id = s->row->info.id;
    return id == selected_ ? 2 : std::find(picked_.begin(), picked_.end(), id) != picked_.end() ? 1 : 0;
  };
  std::stable_sort(order.begin(), order.end(), [&](const Spot* a, const Spot* b) { return loudness(a) < loudness(b); });
  for (const Spot* s : order) draw_line(scene, *s, xs, area);
  for (size_t i = 0; i < axes_.size(); ++i) draw_axis(scene, xs[i], area, gap - 8, axes_[i], scales_[i]);
  draw_axis(scene, xs.back(), area, gap - 8, y_, up_);
  if (order.size() < n)
    scene.text({size.w / 2, size.h - 18, size.w / 2 - 8, 16},
               tr("the {} highest and lowest of {}", format_grouped(static_cast<int64_t>(kMostLines)),
                  format_grouped(static_cast<int64_t>(n))),
               Ink::secondary, Face::small, Align::right);
}

}  // namespace tenon::views
