#include "views/quantization/quantization_plan_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "views/quantization/quantization_table.h"
#include "views/shared/axis.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

constexpr int kPlanPoint = 1;
constexpr float kEdge = 12, kPlotLeft = 58, kTitle = 24, kPlotBottom = 22;

struct PlanRange {
  double lo = 0, hi = 1;
  void take(double v, bool first) { lo = first ? v : std::min(lo, v), hi = first ? v : std::max(hi, v); }
  void widen(double share) {
    const double margin = hi > lo ? share * (hi - lo) : std::max(std::fabs(hi) * share, 1e-6);
    lo -= margin, hi += margin;
  }
  float at(double v) const { return static_cast<float>((v - lo) / (hi - lo)); }
};

Ink precision_ink(formats::Precision p) {
  return static_cast<Ink>(static_cast<int>(Ink::series0) + static_cast<int>(p) % 8);
}

std::string point_text(const projects::QuantizePlan& plan, const projects::PlanPoint& p) {
  return fmt::format("{}: {} {}, {}, {}, {} ({:.2f} x)", p.title(), plan.metric, format_value(p.metric.value),
                     projects::lost_text(p.lost, plan.in_points), format_bytes(static_cast<double>(p.bytes)),
                     sample_time_text(plan.ms(p)), 1 / p.time);
}

}  // namespace

void QuantizationPlanModel::set_plan(std::shared_ptr<const projects::QuantizePlan> plan) {
  const bool same = plan && plan_ && plan->run_id == plan_->run_id && plan->step == plan_->step;
  plan_ = std::move(plan);
  if (!same || (chosen_ && *chosen_ >= plan_->points.size())) chosen_.reset();
  changed();
  if (on_choose) on_choose();
}

const projects::PlanPoint* QuantizationPlanModel::chosen() const {
  return plan_ && chosen_ ? &plan_->points[*chosen_] : nullptr;
}

void QuantizationPlanModel::choose(std::optional<size_t> point) {
  if (point == chosen_ || !plan_ || (point && *point >= plan_->points.size())) return;
  chosen_ = point;
  changed();
  if (on_choose) on_choose();
}

std::vector<size_t> QuantizationPlanModel::by_size() const {
  std::vector<size_t> order(plan_ ? plan_->points.size() : 0);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return plan_->points[a].bytes < plan_->points[b].bytes; });
  return order;
}

void QuantizationPlanModel::step(int by) {
  const std::vector<size_t> order = by_size();
  if (order.empty()) return;
  int64_t at = by > 0 ? -1 : static_cast<int64_t>(order.size());
  if (chosen_) at = std::find(order.begin(), order.end(), *chosen_) - order.begin();
  choose(order[static_cast<size_t>(std::clamp<int64_t>(at + by, 0, static_cast<int64_t>(order.size()) - 1))]);
}

bool QuantizationPlanModel::pointer(const PointerEvent& e) {
  const bool press = e.type == PointerEvent::Type::press, twice = e.type == PointerEvent::Type::double_click;
  if (e.button != Button::left || !(press || twice)) return false;
  const Hit hit = last_.hit_at(e.x, e.y);
  choose(hit.kind == kPlanPoint ? std::optional(static_cast<size_t>(hit.id)) : std::nullopt);
  if (twice && chosen_ && on_export) on_export();
  return true;
}

bool QuantizationPlanModel::key(const KeyEvent& e) {
  if (e.key == "Right" || e.key == "Left") {
    step(e.key == "Right" ? 1 : -1);
    return true;
  }
  if (e.key == "Esc" && chosen_) {
    choose({});
    return true;
  }
  if ((e.key != "Return" && e.key != "Enter") || !chosen_) return false;
  if (on_export) on_export();
  return true;
}

std::string QuantizationPlanModel::chosen_text() const { return chosen() ? point_text(*plan_, *chosen()) : ""; }

std::string QuantizationPlanModel::summary() const {
  if (!plan_) return {};
  const auto front = std::count_if(plan_->points.begin(), plan_->points.end(), [](const auto& p) { return p.front; });
  const std::string text = tr("{} exports of {} at step {}, {} of them on the front",
                              static_cast<int64_t>(plan_->points.size()), plan_->run, plan_->step, front);
  return chosen() ? text + "; " + chosen_text() : text;
}

void QuantizationPlanModel::draw(Scene& scene) {
  if (!plan_ || plan_->points.empty()) return;
  const Size size = scene.size();
  const Box area{kEdge + kPlotLeft, kEdge + kTitle, std::max(size.w - 2 * kEdge - kPlotLeft, 40.f),
                 std::max(size.h - 2 * kEdge - kTitle - kPlotBottom, 40.f)};
  PlanRange bytes, metric;
  double longest = 0;
  for (size_t i = 0; i < plan_->points.size(); ++i) {
    const projects::PlanPoint& p = plan_->points[i];
    bytes.take(static_cast<double>(p.bytes), i == 0), metric.take(p.metric.value, i == 0);
    longest = std::max(longest, p.time);
  }
  bytes.lo = 0;
  bytes.hi *= 1.08;
  metric.widen(0.12);
  scene.text({kEdge, kEdge, area.w * 0.5f, kTitle - 4}, plan_->metric, Ink::text);
  scene.text({area.x + area.w * 0.5f, kEdge, area.w * 0.5f, kTitle - 4},
             tr("the smaller a mark, the faster; joined: the front"), Ink::secondary, Face::small, Align::right);
  const Ticks up = nice_ticks(metric.lo, metric.hi, std::max(2, static_cast<int>(area.h / 36)));
  for (int i = 0; i < up.count; ++i) {
    const float y = area.bottom() - metric.at(up.at(i)) * area.h;
    if (y < area.y || y > area.bottom() - 1) continue;
    scene.line({area.x, y}, {area.right(), y}, Ink::grid);
    scene.text({kEdge, y - 8, kPlotLeft - 6, 16}, without_zeros(format_value(up.at(i))), Ink::secondary,
               Face::mono_small, Align::right);
  }
  scene.line({area.x, area.bottom()}, {area.right(), area.bottom()}, Ink::secondary);
  const Ticks along = byte_ticks(0, bytes.hi, std::max(2, static_cast<int>(area.w / 110)));
  for (int i = 0; i < along.count; ++i) {
    const float x = area.x + bytes.at(along.at(i)) * area.w;
    if (x < area.x - 1 || x > area.right() - 30) continue;
    scene.text({x - 45, area.bottom() + 3, 90, 16}, without_zeros(format_bytes(along.at(i))), Ink::secondary,
               Face::mono_small, Align::center);
  }
  const auto place = [&](const projects::PlanPoint& p) {
    return Point{area.x + bytes.at(static_cast<double>(p.bytes)) * area.w,
                 area.bottom() - metric.at(p.metric.value) * area.h};
  };
  std::vector<Point> front;
  for (const size_t i : by_size())
    if (plan_->points[i].front) front.push_back(place(plan_->points[i]));
  scene.polyline(front, Ink::accent, 1.5f, 0.7f);
  for (size_t i = 0; i < plan_->points.size(); ++i) {
    const projects::PlanPoint& p = plan_->points[i];
    const Point at = place(p);
    const float r = 4 + 6 * static_cast<float>(p.time / longest);
    const Box mark{at.x - r, at.y - r, 2 * r, 2 * r};
    scene.rect(mark, precision_ink(p.precision), p.front ? 0.9f : 0.35f, r);
    if (chosen_ == i) scene.outline({mark.x - 3, mark.y - 3, mark.w + 6, mark.h + 6}, Ink::text, 2, r + 3);
    scene.target(mark, {kPlanPoint, static_cast<int64_t>(i)}, Cursor::hand, point_text(*plan_, p));
  }
}

}  // namespace tenon::views
