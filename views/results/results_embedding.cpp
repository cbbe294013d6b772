// Every sample of the results as the model's last layer reads it, along the two directions in which samples differ
// most.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "views/results/results_model.h"
#include "views/results/sample_sight.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using projects::Embedding;
using projects::Prediction;

namespace {
constexpr float kEmbeddingHead = 26, kClassRow = 20, kClassesWidth = 150, kReach = 14;
constexpr int64_t kRoundClasses = 8;
constexpr size_t kInkedClasses =
    2 * kRoundClasses;  ///< the second eight are squares; of more, the one that was chosen stands out

/// The same scale along both directions, so that distances are distances.
struct PlaneFrame {
  double lo[2] = {0, 0}, hi[2] = {0, 0};
  explicit PlaneFrame(const ResultsModel::Places& places) {
    bool any = false;
    for (const auto& p : places) {
      if (std::isnan(p[0])) continue;
      for (int k = 0; k < 2; ++k) {
        lo[k] = any ? std::min(lo[k], p[k]) : p[k];
        hi[k] = any ? std::max(hi[k], p[k]) : p[k];
      }
      any = true;
    }
  }
  Point place(const std::array<double, 2>& p, Box area) const {
    const double scale =
        0.94 * std::min(area.w / std::max(hi[0] - lo[0], 1e-30), area.h / std::max(hi[1] - lo[1], 1e-30));
    const auto at = [&](int k) { return hi[k] > lo[k] ? scale * (p[k] - (lo[k] + hi[k]) / 2) : 0.0; };
    return {area.x + area.w / 2 + static_cast<float>(at(0)), area.y + area.h / 2 - static_cast<float>(at(1))};
  }
};

std::string share_text(double v) { return fmt::format("{:.0f} %", 100 * v); }
}  // namespace

void ResultsModel::set_places(const Shared& of, const std::string& placement, std::shared_ptr<const Places> places) {
  if (of != results_) return;
  placed_[placement] = std::move(places);
  changed();
}

void ResultsModel::place_by(const std::string& placement) {
  placed_by_ = placement;
  changed();
}

const projects::Placement* ResultsModel::placement() const {
  return has_places(placed_by_) ? projects::find_placement(placed_by_) : nullptr;
}

const ResultsModel::Places& ResultsModel::places() const {
  const auto placed = placed_.find(placed_by_);
  return placed != placed_.end() ? *placed->second : results_->embedding.plane.points;
}

std::optional<Point> ResultsModel::place_of(int64_t row, Box area) const {
  const Places& points = places();
  if (row < 0 || row >= static_cast<int64_t>(points.size()) || std::isnan(points[static_cast<size_t>(row)][0]))
    return {};
  return PlaneFrame(points).place(points[static_cast<size_t>(row)], area);
}

std::string ResultsModel::words_of(int64_t row) const {
  if (row < 0 || row >= static_cast<int64_t>(results_->predictions.size())) return {};
  const Prediction& p = results_->predictions[static_cast<size_t>(row)];
  std::string text = tr("sample {}", format_grouped(row));
  if (p.truth >= 0)
    text += ": " + (p.guess == p.truth
                        ? tr("{}, sure {:.1f} %", class_text(*results_, p.truth), 100 * p.confidence)
                        : tr("{}, taken for {}", class_text(*results_, p.truth), class_text(*results_, p.guess)));
  return text + ", " + tr("loss {}", format_value(p.loss));
}

Table ResultsModel::embedding() const {
  Table t;
  if (!results_ || results_->embedding.module.empty()) return t;
  const Embedding& e = results_->embedding;
  const projects::Placement* by = placement();
  auto axis = [&](size_t k) {
    return !by      ? tr("{} of the variance", share_text(e.plane.share[k]))
           : k == 0 ? tr("along {}'s plane", by->title)
                    : tr("across {}'s plane", by->title);
  };
  t.columns = {{tr("Sample"), true, tr("row of the test split")},
               {tr("Truth")},
               {tr("Guess")},
               {tr("First"), true, axis(0)},
               {tr("Second"), true, axis(1)}};
  const Places& points = places();
  for (size_t i = 0; i < std::min(points.size(), results_->predictions.size()); ++i) {
    const Prediction& p = results_->predictions[i];
    Table::Row row;
    row.selection = Selection::sample(p.row, "results");
    row.cells = {Table::Cell::number(static_cast<double>(p.row), format_grouped(p.row)),
                 {class_text(*results_, p.truth), 0, {}, Ink::none},
                 {class_text(*results_, p.guess), 0, {}, p.guess == p.truth ? Ink::good : Ink::bad}};
    for (double v : points[i]) {
      row.cells.push_back(Table::Cell::number(v, format_value(v)));
      row.cells.back().tip = format_exact(v);
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

void ResultsModel::draw_points(Scene& scene, Box area) const {
  const Places& points = places();
  const PlaneFrame frame(points);
  const size_t classes = results_->classes.size(), n = std::min(points.size(), results_->predictions.size());
  const auto loud = static_cast<int64_t>(ranked_class());
  auto ink_of = [&](const Prediction& p) {
    if (p.truth < 0) return Ink::series0;
    if (classes <= kInkedClasses) return series_ink(static_cast<int>(p.truth));
    return p.truth == loud ? Ink::series0 : Ink::baseline;
  };
  auto squared = [&](int64_t truth) { return classes <= kInkedClasses && truth >= kRoundClasses; };
  // What was guessed wrong lies over what was guessed right, and the class that stands out over all others.
  auto level = [&](const Prediction& p) {
    return (classes > kInkedClasses && p.truth == loud ? 2 : 0) + (p.truth >= 0 && p.guess != p.truth ? 1 : 0);
  };
  for (int at = 0; at < 4; ++at)
    for (size_t i = 0; i < n; ++i) {
      const Prediction& p = results_->predictions[i];
      if (std::isnan(points[i][0]) || level(p) != at) continue;
      const Point c = frame.place(points[i], area);
      const float round = squared(p.truth) ? 0 : 1;
      if (at % 2)
        scene.outline({c.x - 4, c.y - 4, 8, 8}, ink_of(p), 1.5f, 4 * round);
      else
        scene.rect({c.x - 3, c.y - 3, 6, 6}, ink_of(p), 0.75f, 3 * round);
    }
  for (int64_t row : {under_, row_})
    if (const auto c = place_of(row, area))
      scene.outline({c->x - 7, c->y - 7, 14, 14}, row == row_ ? Ink::accent : Ink::text, 2, 7);
}

/// The classes; where there are too many to have an ink each, a click lets one stand out.
void ResultsModel::draw_classes(Scene& scene, Box box) const {
  const size_t n = results_->classes.size();
  // What stands above them takes a row, or two where it is too wide for one.
  const std::string title = tr("Truth · hollow: guessed wrong");
  const size_t cut = text_width(title, Face::small) <= box.w ? title.npos : title.find(" · ");
  const float head = cut == title.npos ? kClassRow : 2 * kClassRow;
  const size_t room = static_cast<size_t>(std::max(0.f, (box.h - head) / kClassRow));
  const size_t out = ranked_class(), from = out >= room && n > room ? out + 1 - room : 0;
  scene.text({box.x, box.y, box.w, kClassRow}, title.substr(0, cut), Ink::secondary, Face::small);
  if (cut != title.npos)
    scene.text({box.x, box.y + kClassRow, box.w, kClassRow}, title.substr(cut + std::string(" · ").size()),
               Ink::secondary, Face::small);
  float y = box.y + head;
  for (size_t c = from; c < std::min(n, from + room); ++c, y += kClassRow) {
    const Box row{box.x, y, box.w, kClassRow};
    const bool inked = n <= kInkedClasses, chosen = !inked && c == out;
    if (chosen) scene.rect(row, Ink::raised, 1, 3);
    const Ink ink = inked ? series_ink(static_cast<int>(c)) : chosen ? Ink::series0 : Ink::baseline;
    scene.rect({row.x + 6, y + kClassRow / 2 - 4, 8, 8}, ink, 1, inked && c >= kRoundClasses ? 0 : 4);
    scene.text({row.x + 22, y, box.w - 26, kClassRow}, results_->classes[c], Ink::text, Face::small);
    if (!inked) scene.target(row, {ranked, static_cast<int64_t>(c)}, Cursor::hand, results_->classes[c]);
  }
}

void ResultsModel::draw_embedding(Scene& scene, Box rest) const {
  const Embedding& e = results_->embedding;
  if (e.module.empty()) {
    scene.text({rest.x, rest.y, rest.w, kEmbeddingHead}, results_->why_unembedded(), Ink::secondary, Face::small);
    return;
  }
  const auto drawn = static_cast<int64_t>(e.plane.points.size()),
             all = static_cast<int64_t>(results_->predictions.size());
  std::string about = tr("what {} reads: {} numbers a sample", e.module, format_grouped(e.width));
  if (drawn < all) about += tr(", the first {} samples", format_grouped(drawn));
  about += " · " + (placement() ? fmt::format("{}: {}", placement()->title, placement()->reads)
                                : tr("PCA: {} and {} of their variance", share_text(e.plane.share[0]),
                                     share_text(e.plane.share[1])));
  const std::string title = tr("Embedding");
  const float w = text_width(title) + 12;
  scene.text({rest.x, rest.y, w, kEmbeddingHead}, title);
  scene.text({rest.x + w, rest.y, rest.w - w, kEmbeddingHead}, about, Ink::secondary, Face::small);
  rest.y += kEmbeddingHead;
  rest.h -= kEmbeddingHead;
  const bool listed = !results_->classes.empty() && rest.w > 2 * kClassesWidth;
  Box area = rest;
  if (listed) area.w -= kClassesWidth + 12;
  area.h -= kEmbeddingHead;
  if (area.w < 60 || area.h < 40) return;
  scene.outline(area, Ink::line, 1, 3);
  draw_points(scene, area);
  scene.target(area, {embedded, 0}, Cursor::cross);
  if (listed) draw_classes(scene, {rest.right() - kClassesWidth, area.y, kClassesWidth, rest.h});
  const int64_t told = under_ >= 0 ? under_ : row_;
  scene.text({area.x, area.bottom() + 2, area.w, kEmbeddingHead - 4},
             told >= 0 ? words_of(told) : tr("A point is a sample."), Ink::secondary, Face::small);
}

bool ResultsModel::pointer_on_embedding(const PointerEvent& e) {
  const Scene::Target* at = last().target_at(e.x, e.y);
  const Hit hit = at ? at->hit : Hit{};
  const int64_t before = under_;
  under_ = -1;
  if (e.type != PointerEvent::Type::leave && hit.kind == embedded) {
    const Places& points = places();
    const PlaneFrame frame(points);
    float nearest = kReach;
    for (size_t i = 0; i < points.size(); ++i) {
      if (std::isnan(points[i][0])) continue;
      const Point c = frame.place(points[i], at->box);
      if (const float away = std::hypot(c.x - e.x, c.y - e.y); away < nearest)
        nearest = away, under_ = static_cast<int64_t>(i);
    }
  }
  if (e.type == PointerEvent::Type::press && e.button == Button::left) {
    if (hit.kind == ranked) return choose_ranked(static_cast<size_t>(hit.id)), true;
    if (under_ >= 0) return select(Selection::sample(under_, "results")), true;
  }
  return under_ != before;
}

/// Left and Right go along the first direction, Up and Down from class to class where one stands out.
bool ResultsModel::key_of_embedding(const KeyEvent& e) {
  if (!results_ || results_->embedding.module.empty()) return false;
  if (e.key == "Up" || e.key == "Down") return results_->classes.size() > kInkedClasses && key_of_curves(e);
  if (e.key != "Left" && e.key != "Right") return false;
  const Places& points = places();
  std::vector<int64_t> order;
  for (size_t i = 0; i < points.size(); ++i)
    if (!std::isnan(points[i][0])) order.push_back(static_cast<int64_t>(i));
  if (order.empty()) return true;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return points[static_cast<size_t>(a)][0] < points[static_cast<size_t>(b)][0];
  });
  auto at = std::find(order.begin(), order.end(), row_);
  if (at == order.end())
    at = order.begin();
  else if (e.key == "Left" && at != order.begin())
    --at;
  else if (e.key == "Right" && at + 1 != order.end())
    ++at;
  select(Selection::sample(*at, "results"));
  return true;
}

}  // namespace tenon::views
