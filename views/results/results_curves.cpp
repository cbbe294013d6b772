// The ROC and precision-recall curves of the results, a class against the rest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "views/results/results_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

namespace {
constexpr float kCurveHead = 26, kCurveRow = 20, kAreasWidth = 236, kCurveTicks = 44, kUnderCurve = 40;
constexpr size_t kColouredCurves = 8;  ///< more curves are told apart by nothing but the one that stands out

Box curve_area(Box box) {
  return {box.x + kCurveTicks, box.y + 2 * kCurveHead, box.w - kCurveTicks - 20, box.h - 2 * kCurveHead - kUnderCurve};
}

/// Both axes from 0 to 100 %; the title, or where there is no room for it its short form, under them.
void draw_unit_axes(Scene& scene, Box area, const std::string& title, const std::string& brief) {
  for (int k = 0; k <= 4; ++k) {
    const float y = area.bottom() - area.h * static_cast<float>(k) / 4, x = area.x + area.w * static_cast<float>(k) / 4;
    scene.line({area.x, y}, {area.right(), y}, k ? Ink::grid : Ink::line);
    scene.line({x, area.y}, {x, area.bottom()}, k ? Ink::grid : Ink::line);
    if (k % 2 && area.h < 120) continue;
    scene.text({area.x - kCurveTicks, y - 8, kCurveTicks - 6, 16}, fmt::format("{} %", k * 25), Ink::secondary,
               Face::mono_small, Align::right);
    if (k % 2 == 0 || area.w > 230)
      scene.text({x - 24, area.bottom() + 3, 48, 16}, fmt::format("{} %", k * 25), Ink::secondary, Face::mono_small,
                 Align::center);
  }
  scene.text({area.x, area.bottom() + 20, area.w, 18}, text_width(title, Face::small) <= area.w ? title : brief,
             Ink::secondary, Face::small, Align::center);
}

Point in_plot(Box area, double x, double y) {
  return {area.x + area.w * static_cast<float>(x), area.bottom() - area.h * static_cast<float>(y)};
}

/// Leaves out points that lie within a pixel of the one before: a thick line of such zigzags would be a thicker one.
class PixelLine {
 public:
  void add(Point p) {
    if (points_.empty() || std::hypot(p.x - points_.back().x, p.y - points_.back().y) >= 1) points_.push_back(p);
    end_ = p;
  }
  std::vector<Point> take() {
    if (!points_.empty()) points_.push_back(end_);
    return std::move(points_);
  }

 private:
  std::vector<Point> points_;
  Point end_;
};

std::vector<Point> roc_line(const Ranking& r, Box area) {
  PixelLine line;
  line.add(in_plot(area, 0, 0));
  for (const Ranking::Point& p : r.points) line.add(in_plot(area, r.false_positive_rate(p), r.true_positive_rate(p)));
  return line.take();
}

/// Steps, as average precision adds them up: what recall a threshold adds is had at its precision.
std::vector<Point> precision_line(const Ranking& r, Box area) {
  PixelLine line;
  double recall = 0;
  for (const Ranking::Point& p : r.points) {
    line.add(in_plot(area, recall, p.precision()));
    recall = r.true_positive_rate(p);
    line.add(in_plot(area, recall, p.precision()));
  }
  return line.take();
}

/// "mean AUROC 0.9769", of one curve without the mean.
std::string area_text(const ResultsModel& model, const char* name, double area) {
  return model.ranked_classes().size() > 1 ? tr("mean {} {}", name, format_area(area))
                                           : fmt::format("{} {}", name, format_area(area));
}

void draw_curve_title(Scene& scene, Box box, const std::string& title, const std::string& figure) {
  const float w = text_width(title) + 12, room = box.w - w - 20;
  scene.text({box.x, box.y, w, kCurveHead}, title);
  if (text_width(figure, Face::small) <= room)
    scene.text({box.x + w, box.y, room, kCurveHead}, figure, Ink::secondary, Face::small, Align::right);
}

/// Every class's curve, the one that stands out last.
template <class Line>
void draw_ranked_lines(Scene& scene, const ResultsModel& model, Box area, bool whole, Line line) {
  const auto& rankings = model.results()->rankings;
  const std::vector<size_t> all = model.ranked_classes();
  const size_t out = model.ranked_class();
  auto draw = [&](size_t c) {
    const Ranking& r = rankings[c];
    if (!r.positives || (whole && !r.negatives)) return;
    const bool loud = c == out;
    const Ink ink = all.size() <= kColouredCurves ? series_ink(static_cast<int>(c - all[0]))
                    : loud                        ? Ink::series0
                                                  : Ink::baseline;
    scene.polyline(line(r, area), ink, loud ? 2.5f : 1, loud ? 1 : all.size() <= kColouredCurves ? 0.85f : 0.45f);
  };
  for (size_t c : all)
    if (c != out) draw(c);
  draw(out);
}
}  // namespace

void ResultsModel::draw_read_out(Scene& scene, Box box, Box area, HitKind plot) const {
  const size_t c = ranked_class();
  const Ranking& r = results_->rankings[c];
  std::string text = results_->classes[c];
  if (hovered_ == plot && !r.points.empty() && r.positives && (plot == precision_recall || r.negatives)) {
    auto x = [&](const Ranking::Point& p) { return plot == roc ? r.false_positive_rate(p) : r.true_positive_rate(p); };
    auto y_of = [&](const Ranking::Point& p) { return plot == roc ? r.true_positive_rate(p) : p.precision(); };
    auto away = [&](const Ranking::Point& p) { return std::hypot(x(p) - hover_.x, y_of(p) - hover_.y); };
    const Ranking::Point& p =
        *std::min_element(r.points.begin(), r.points.end(),
                          [&](const Ranking::Point& a, const Ranking::Point& b) { return away(a) < away(b); });
    const Point at = in_plot(area, x(p), y_of(p));
    scene.line({at.x, area.y}, {at.x, area.bottom()}, Ink::secondary);
    scene.rect({at.x - 4, at.y - 4, 8, 8}, Ink::panel, 1, 4);
    scene.rect({at.x - 3, at.y - 3, 6, 6}, Ink::text, 1, 3);
    const std::string up = plot == roc ? "TPR" : tr("precision"), along = plot == roc ? "FPR" : tr("recall");
    const std::string at_least = format_value(p.threshold);
    text += fmt::format(" ≥ {}: {} {:.1f} %, {} {:.1f} %", at_least, up, 100 * y_of(p), along, 100 * x(p));
  }
  scene.text({box.x, box.y + kCurveHead - 4, box.w, kCurveHead - 4}, text, Ink::secondary, Face::small);
  scene.target(area, {plot, 0}, Cursor::cross);
}

void ResultsModel::draw_roc(Scene& scene, Box box) const {
  const Box area = curve_area(box);
  if (area.w < 60 || area.h < 40) return;
  draw_curve_title(scene, box, "ROC", area_text(*this, "AUROC", results_->auroc()));
  draw_unit_axes(scene, area, tr("true positive rate over false positive rate"), tr("TPR over FPR"));
  scene.line({area.x, area.bottom()}, {area.right(), area.y}, Ink::secondary, 1, 0.5f);  // chance
  draw_ranked_lines(scene, *this, area, true, roc_line);
  draw_read_out(scene, box, area, roc);
}

void ResultsModel::draw_precision_recall(Scene& scene, Box box) const {
  const Box area = curve_area(box);
  if (area.w < 60 || area.h < 40) return;
  draw_curve_title(scene, box, tr("Precision–recall"), area_text(*this, "AP", results_->average_precision()));
  draw_unit_axes(scene, area, tr("precision over recall"), tr("precision / recall"));
  draw_ranked_lines(scene, *this, area, false, precision_line);
  draw_read_out(scene, box, area, precision_recall);
}

/// The classes with their areas; where there is no room for all, those with the smallest.
void ResultsModel::draw_areas(Scene& scene, Box box) const {
  std::vector<size_t> all = ranked_classes();
  const size_t first = all[0], coloured = all.size(),
               room = static_cast<size_t>(std::max(0.f, (box.h - 2 * kCurveRow) / kCurveRow));
  if (!room) return;
  const bool some = all.size() > room;
  if (some) {
    auto area = [&](size_t c) { return std::isnan(results_->rankings[c].auroc) ? 2 : results_->rankings[c].auroc; };
    std::stable_sort(all.begin(), all.end(), [&](size_t a, size_t b) { return area(a) < area(b); });
    all.resize(room);
  }
  const float name = box.w - 2 * 58 - 22;
  scene.text({box.x, box.y, name + 22, kCurveRow}, some ? tr("The {} smallest areas", room) : tr("Class"),
             Ink::secondary, Face::small);
  scene.text({box.right() - 116, box.y, 54, kCurveRow}, "AUROC", Ink::secondary, Face::small, Align::right);
  scene.text({box.right() - 58, box.y, 54, kCurveRow}, "AP", Ink::secondary, Face::small, Align::right);
  float y = box.y + kCurveRow;
  for (size_t c : all) {
    const Ranking& r = results_->rankings[c];
    const Box row{box.x, y, box.w, kCurveRow};
    const bool out = c == ranked_class();
    if (out) scene.rect(row, Ink::raised, 1, 3);
    const Ink ink = coloured <= kColouredCurves ? series_ink(static_cast<int>(c - first))
                    : out                       ? Ink::series0
                                                : Ink::baseline;
    scene.line({row.x + 4, y + kCurveRow / 2}, {row.x + 16, y + kCurveRow / 2}, ink, out ? 3.f : 1.5f);
    scene.text({row.x + 22, y, name, kCurveRow}, results_->classes[c], Ink::text, Face::small);
    scene.text({row.right() - 116, y, 54, kCurveRow}, format_area(r.auroc), Ink::text, Face::mono_small, Align::right);
    scene.text({row.right() - 58, y, 54, kCurveRow}, format_area(r.average_precision), Ink::text, Face::mono_small,
               Align::right);
    scene.target(row, {ranked, static_cast<int64_t>(c)}, Cursor::hand,
                 tr("{}: {} samples, {} others", results_->classes[c], format_grouped(r.positives),
                    format_grouped(r.negatives)));
    y += kCurveRow;
  }
  if (results_->unranked && y + kCurveRow <= box.bottom())
    scene.text({box.x, y, box.w, kCurveRow}, tr("{} left out: no numbers", format_grouped(results_->unranked)),
               Ink::bad_text, Face::small);
}

void ResultsModel::draw_curves(Scene& scene, Box rest) const {
  if (results_->rankings.empty()) {
    scene.text({rest.x, rest.y, rest.w, kCurveHead}, results_->why_unranked(), Ink::secondary, Face::small);
    return;
  }
  // The list stands beside the plots or under them, the plots beside each other or one over the other: as they are
  // largest.
  const float rows = kCurveRow * static_cast<float>(ranked_classes().size() + 2);
  const float under = rest.h > 300 ? std::min(rest.h * 0.3f, rows) + 8 : 0;
  struct Plots {
    Box room;
    bool stacked;
    Size one() const {
      return stacked ? Size{room.w, (room.h - 8) / 2} : Size{(room.w - 12) / 2, std::min(room.h, room.w / 2 + 54)};
    }
    float side() const { return std::min(one().w, one().h - 60); }
  };
  std::vector<Plots> ways;
  for (const bool stacked : {false, true}) {
    if (rest.w > 2 * kAreasWidth + 200) ways.push_back({{rest.x, rest.y, rest.w - kAreasWidth - 16, rest.h}, stacked});
    ways.push_back({{rest.x, rest.y, rest.w, rest.h - under}, stacked});
  }
  const Plots best =
      *std::max_element(ways.begin(), ways.end(), [](const Plots& a, const Plots& b) { return a.side() < b.side(); });
  const Size one = best.one();
  draw_roc(scene, {rest.x, rest.y, one.w, one.h});
  draw_precision_recall(scene, best.stacked ? Box{rest.x, rest.y + one.h + 8, one.w, one.h}
                                            : Box{rest.x + one.w + 12, rest.y, one.w, one.h});
  const bool beside = best.room.w < rest.w;
  const float below = best.stacked ? best.room.bottom() + 8 : rest.y + one.h + 8;
  const Box list = beside ? Box{rest.right() - kAreasWidth, rest.y + 4, kAreasWidth, rest.h - 4}
                          : Box{rest.x, below, std::min(rest.w, 2 * kAreasWidth), std::max(rest.bottom() - below, 0.f)};
  if (beside || under > 0) draw_areas(scene, list);
}

bool ResultsModel::key_of_curves(const KeyEvent& e) {
  const std::vector<size_t> all = ranked_classes();
  if (all.empty() || (e.key != "Up" && e.key != "Down")) return false;
  const size_t at = ranked_class();
  if (e.key == "Up" && at > all.front()) choose_ranked(at - 1);
  if (e.key == "Down" && at < all.back()) choose_ranked(at + 1);
  return true;
}

}  // namespace tenon::views
