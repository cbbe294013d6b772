#include "views/numbers/numbers_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using tracing::OpDifference;

namespace {

constexpr float kLeft = 66, kRight = 14, kTop = 12, kBottom = 26;

std::string label_of(const OpDifference& op) { return op.a ? fmt::format("{} #{}", op.op, op.a) : op.op; }

Phase phase_of(const OpDifference& op) {
  for (const Phase p : {Phase::data, Phase::forward, Phase::backward, Phase::optimizer})
    if (op.phase == name(p)) return p;
  return Phase::none;
}

/// What its place in the picture says of an op: the worse of what it does alone and of what is carried to it.
double height_of(const OpDifference& op) {
  const double infinite = std::numeric_limits<double>::infinity();
  if (!op.why.empty() || std::isinf(op.largest)) return infinite;
  return op.relative;
}

std::string power(int p) { return p == 0 ? "1" : fmt::format("1e{}", p); }

Table::Cell figure(double v) {
  Table::Cell c = Table::Cell::number(std::isfinite(v) ? v : 1e308, format_value(v));
  c.tip = format_exact(v);
  return c;
}

}  // namespace

const std::vector<OpDifference>& NumbersModel::ops() const {
  static const std::vector<OpDifference> none;
  return audit_ ? audit_->difference.ops : none;
}

void NumbersModel::set_audit(Shared audit) {
  audit_ = std::move(audit);
  chosen_ = audit_ ? audit_->difference.first : -1;
  changed();
}

void NumbersModel::choose(int64_t at) {
  if (at < -1 || at >= static_cast<int64_t>(ops().size()) || at == chosen_) return;
  chosen_ = at;
  changed();
}

void NumbersModel::choose_here(int64_t at) {
  choose(at);
  if (on_choose) on_choose();
}

Table NumbersModel::table() const {
  Table t;
  t.columns = {
      {tr("Op")},
      {tr("Relative"), true, tr("norm of the difference over the norm of the values")},
      {tr("Differ"), true, tr("elements that are not the same")},
      {tr("Largest"), true, tr("of the differences of single elements")},
      {tr("Carried"), true, tr("the same where all before it was computed elsewhere, too: how the difference grows")},
      {tr("Module")},
      {tr("Phase")}};
  const bool carried = std::any_of(ops().begin(), ops().end(), [](const auto& op) { return op.carried >= 0; });
  for (size_t i = 0; i < ops().size(); ++i) {
    const OpDifference& op = ops()[i];
    const bool beyond = op.beyond(audit_->tolerance);
    const bool none = !op.why.empty();
    const auto dash = [](double key) { return Table::Cell::number(key, "–"); };
    Table::Row row;
    row.selection = row_of(static_cast<int64_t>(i));
    row.cells = {{label_of(op), static_cast<double>(i), none ? op.why : tip(op), beyond ? Ink::bad : Ink::none},
                 none ? dash(HUGE_VAL) : figure(op.relative),
                 none ? dash(HUGE_VAL)
                      : Table::Cell::number(
                            static_cast<double>(op.differs),
                            op.differs ? tr("{} of {}", format_grouped(op.differs), format_grouped(op.total)) : "0"),
                 none ? dash(HUGE_VAL) : figure(op.largest),
                 op.carried < 0 ? dash(-1) : figure(op.carried),
                 {op.module.empty() ? "–" : op.module, 0, {}, Ink::none},
                 {word(phase_of(op)), 0, {}, ink_of(phase_of(op))}};
    if (!carried) row.cells.erase(row.cells.begin() + 4);
    t.rows.push_back(std::move(row));
  }
  if (!carried) t.columns.erase(t.columns.begin() + 4);
  return t;
}

std::string NumbersModel::tip(const OpDifference& op) const {
  std::string text = label_of(op) + (op.module.empty() ? "" : " · " + op.module);
  if (!op.why.empty()) return text + "\n" + op.why;
  if (op.differs == 0) return text + "\n" + tr("the same bits");
  text += "\n" + tr("relative {}", format_value(op.relative));
  text += "\n" + tr("element {}: {} ({}) and {} ({})", to_string(op.index), format_exact(op.value_a), audit_->a,
                    format_exact(op.value_b), audit_->b);
  if (op.carried >= 0) text += "\n" + tr("carried to it {}", format_value(op.carried));
  return text;
}

bool NumbersModel::pointer(const PointerEvent& e) {
  if (e.type != PointerEvent::Type::release || e.button != Button::left) return false;
  const Hit hit = last_.hit_at(e.x, e.y);
  if (hit.kind != plot) return false;
  choose_here(hit.id);
  return true;
}

bool NumbersModel::key(const KeyEvent& e) {
  const auto n = static_cast<int64_t>(ops().size());
  if (n == 0) return false;
  if (e.key == "Left" || e.key == "Right")
    choose_here(std::clamp<int64_t>(chosen_ + (e.key == "Right" ? 1 : -1), 0, n - 1));
  else if (e.key == "Home" || e.key == "End")
    choose_here(e.key == "Home" ? 0 : n - 1);
  else if (e.key == "F" && audit_->difference.first >= 0)
    choose_here(audit_->difference.first);
  else
    return false;
  return true;
}

std::string NumbersModel::summary() const {
  if (!audit_) return tr("How far numbers are from a reference: nothing was compared yet");
  if (chosen_ < 0) return audit_->sentence;
  const OpDifference& op = ops()[static_cast<size_t>(chosen_)];
  const std::string figure = !op.why.empty() ? op.why : tr("relative {}", format_value(op.relative));
  return audit_->sentence + " " + tr("Chosen: {}, {}", label_of(op), figure);
}

float NumbersModel::x_of(int64_t at, Box plot) const {
  const auto n = static_cast<float>(std::max<size_t>(1, ops().size()));
  return plot.x + (static_cast<float>(at) + 0.5f) / n * plot.w;
}

float NumbersModel::Upright::to_px(double relative) const {
  if (!(relative > 0)) return box.bottom();
  const double at =
      std::clamp(std::isinf(relative) ? hi : std::log10(relative), static_cast<double>(lo), static_cast<double>(hi));
  // The lowest tenth is for what is 0: it is no power of ten.
  const auto part = static_cast<float>((at - lo) / (hi - lo));
  return box.bottom() - box.h * (0.1f + 0.9f * part);
}

NumbersModel::Upright NumbersModel::upright(Box plot) const {
  double least = 1e-8, most = 1e-4;
  const auto take = [&](double v) {
    if (!(v > 0) || !std::isfinite(v)) return;
    least = std::min(least, std::max(v, 1e-17));
    most = std::max(most, std::min(v, 1e6));
  };
  for (const OpDifference& op : ops()) take(op.relative), take(op.carried);
  take(audit_->tolerance);
  return {static_cast<int>(std::floor(std::log10(least))), static_cast<int>(std::ceil(std::log10(most))), plot};
}

void NumbersModel::draw_scale(Scene& scene, const Upright& y) const {
  const Box& b = y.box;
  const int every = std::max(1, static_cast<int>(std::ceil(static_cast<float>(y.hi - y.lo) * 20 / (0.9f * b.h))));
  for (int p = y.hi; p >= y.lo; p -= every) {
    const float at = y.to_px(std::pow(10.0, p));
    scene.line({b.x, at}, {b.right(), at}, Ink::grid);
    scene.text({0, at - 8, kLeft - 8, 16}, power(p), Ink::secondary, Face::small, Align::right);
  }
  scene.line({b.x, b.bottom()}, {b.right(), b.bottom()}, Ink::line);
  scene.text({0, b.bottom() - 8, kLeft - 8, 16}, "0", Ink::secondary, Face::small, Align::right);
  if (!(audit_->tolerance > 0)) return;
  const float at = y.to_px(audit_->tolerance);
  scene.line({b.x, at}, {b.right(), at}, Ink::warning, 1.5f);
  const float text_at = at - 17 < b.y ? at + 2 : at - 17;
  scene.text({b.right() - 260, text_at, 256, 16}, tr("at most {}", format_exact(audit_->tolerance)), Ink::warning_text,
             Face::small, Align::right);
}

/// Under the ops of each phase its name, where there is room for it.
void NumbersModel::draw_phases(Scene& scene, Box plot) const {
  const auto n = static_cast<int64_t>(ops().size());
  for (int64_t from = 0, to = 0; from < n; from = to) {
    const Phase phase = phase_of(ops()[static_cast<size_t>(from)]);
    for (to = from; to < n && phase_of(ops()[static_cast<size_t>(to)]) == phase;) ++to;
    const float half = plot.w / static_cast<float>(2 * n), a = x_of(from, plot) - half, b = x_of(to - 1, plot) + half;
    scene.rect({a, plot.bottom() + 3, std::max(1.f, b - a - 1), 3}, ink_of(phase));
    const std::string text = word(phase);
    if (text_width(text, Face::small) < b - a - 4)
      scene.text({a, plot.bottom() + 8, b - a, 16}, text, Ink::secondary, Face::small, Align::left);
  }
}

void NumbersModel::draw_points(Scene& scene, const Upright& y) {
  const Box& b = y.box;
  const auto n = static_cast<int64_t>(ops().size());
  const float step = b.w / static_cast<float>(n);
  std::vector<Point> carried;
  for (int64_t i = 0; i < n; ++i)
    if (const double c = ops()[static_cast<size_t>(i)].carried; c >= 0) carried.push_back({x_of(i, b), y.to_px(c)});
  if (carried.size() > 1) scene.polyline(carried, Ink::secondary, 1.5f);
  if (chosen_ >= 0) {
    const float x = x_of(chosen_, b), w = std::max(step, 6.f);
    scene.rect({x - w / 2, b.y - 6, w, b.h + 6}, Ink::accent, 0.18f);
    scene.rect({x - w / 2, b.y - 6, w, 2}, Ink::accent);
  }
  const float radius = std::clamp(step / 3, 1.5f, 4.f);
  for (int64_t i = 0; i < n; ++i) {
    const OpDifference& op = ops()[static_cast<size_t>(i)];
    const float x = x_of(i, b), at = y.to_px(height_of(op));
    const bool beyond = op.beyond(audit_->tolerance);
    scene.line({x, b.bottom()}, {x, at}, ink_of(phase_of(op)), std::clamp(step / 4, 1.f, 3.f), 0.6f);
    const float r = beyond ? radius + 1.5f : radius;
    scene.rect({x - r, at - r, 2 * r, 2 * r}, beyond ? Ink::bad : ink_of(phase_of(op)), 1, beyond ? 0 : r);
    scene.target({x - step / 2, b.y, step, b.h}, {plot, i}, Cursor::hand, tip(op));
  }
}

void NumbersModel::draw(Scene& scene) {
  const Size size = scene.size();
  const Box box{kLeft, kTop, size.w - kLeft - kRight, size.h - kTop - kBottom};
  if (ops().empty() || box.w < 60 || box.h < 50) return;
  const Upright y = upright(box);
  draw_scale(scene, y);
  draw_phases(scene, box);
  draw_points(scene, y);
}

}  // namespace tenon::views
