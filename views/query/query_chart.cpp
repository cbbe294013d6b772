#include "views/query/query_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/axis.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using projects::QueryResult;
using projects::QueryValue;
using tracing::Unit;

namespace {
constexpr float kBarHeight = 22, kTopOfChart = 30, kLeftOfLine = 78, kUnderLine = 44, kRightOfLine = 22;

std::optional<double> number_in(const QueryValue& v) {
  if (const auto* n = std::get_if<int64_t>(&v)) return static_cast<double>(*n);
  if (const auto* x = std::get_if<double>(&v); x && std::isfinite(*x)) return *x;
  return {};
}

/// How much a column of numbers is worth drawing: 3 with a unit, 2 counts, 1 names a thing, 0 is no number.
int worth(const QueryResult::Column& c) {
  if (!c.number) return 0;
  if (c.leads != projects::QueryColumn::Leads::nowhere) return 1;
  return c.unit && *c.unit != Unit::count && *c.unit != Unit::text ? 3 : 2;
}

/// The column of the highest worth, the first of several; nothing where none is a number.
std::optional<size_t> best_column(const QueryResult& r, std::optional<size_t> but = {}) {
  std::optional<size_t> best;
  for (size_t c = 0; c < r.columns.size(); ++c)
    if (c != but && worth(r.columns[c]) > (best ? worth(r.columns[*best]) : 0)) best = c;
  return best;
}
}  // namespace

void QueryChart::set_result(std::shared_ptr<const QueryResult> result, const Table& shown) {
  const bool same = result == result_;
  result_ = std::move(result);
  leads_.clear();
  for (const Table::Row& r : shown.rows) leads_.push_back(r.selection);
  if (same) return changed();
  marks_.clear();
  at_.reset();
  first_ = 0;
  if (!result_) return changed();
  const auto& columns = result_->columns;
  const auto text = std::find_if(columns.begin(), columns.end(), [](const auto& c) { return !c.number; });
  bars_ = text != columns.end();
  std::optional<size_t> along, up;
  if (bars_) {
    along = static_cast<size_t>(text - columns.begin());
    up = best_column(*result_);
  } else if (!columns.empty()) {
    along = 0;
    up = best_column(*result_, 0);
  }
  if (!along || !up) return changed();
  along_ = *along, up_ = *up;
  for (size_t r = 0; r < result_->rows.size(); ++r) {
    const auto& row = result_->rows[r];
    const auto y = number_in(row[up_]);
    const auto x = bars_ ? std::optional(0.0) : number_in(row[along_]);
    if (x && y) marks_.push_back({r, *x, *y, bars_ ? QueryResult::text_of(row[along_]) : std::string()});
  }
  if (!bars_) std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) { return a.x < b.x; });
  for (size_t i = 0; i < marks_.size(); ++i) {
    const Mark& m = marks_[i];
    low_x_ = i ? std::min(low_x_, m.x) : m.x;
    high_x_ = i ? std::max(high_x_, m.x) : m.x;
    low_y_ = i ? std::min(low_y_, m.y) : m.y;
    high_y_ = i ? std::max(high_y_, m.y) : m.y;
  }
  if (!bars_ && !(high_x_ > low_x_)) low_x_ -= 0.5, high_x_ += 0.5;
  if (!bars_ && !(high_y_ > low_y_)) low_y_ -= 0.5, high_y_ += 0.5;
  changed();
}

void QueryChart::set_selection(const Selection& s) {
  if (!s || s.source == "query") return;
  for (size_t i = 0; i < marks_.size(); ++i)
    if (marks_[i].row < leads_.size() && leads_[marks_[i].row].same(s)) return go_to(i);
}

std::string QueryChart::why_none() const {
  if (!result_) return tr("There is no answer to draw yet");
  if (result_->rows.empty()) return tr("The answer has no rows");
  return tr("A chart wants a column of texts and one of numbers, or two of numbers");
}

/// As the axis writes it: with its unit, where it has one.
std::string QueryChart::text_of(size_t column, double v) const {
  const auto& unit = result_->columns[column].unit;
  if (unit && *unit != Unit::text && *unit != Unit::number && *unit != Unit::count) return tracing::cell_text(v, *unit);
  return std::floor(v) == v && std::fabs(v) < 1e15 ? format_grouped(static_cast<int64_t>(v)) : fmt::format("{:.4g}", v);
}

std::string QueryChart::said_of(const Mark& m) const {
  const auto& columns = result_->columns;
  return fmt::format("{}: {}, {}: {}", columns[along_].name, bars_ ? m.label : text_of(along_, m.x), columns[up_].name,
                     text_of(up_, m.y));
}

/// A bar's label, its length, its number. Numbers below zero go to the left of the line at zero.
void QueryChart::draw_bars(Scene& scene) const {
  const Size size = scene.size();
  float labels = 60, numbers = 40;
  for (const Mark& m : marks_) {
    labels = std::max(labels, text_width(m.label, Face::small) + 8);
    numbers = std::max(numbers, text_width(text_of(up_, m.y), Face::mono_small) + 8);
  }
  labels = std::min(labels, std::max(size.w * 0.4f, 40.f));
  const Box area{8 + labels, kTopOfChart, std::max(size.w - labels - numbers - 24, 10.f),
                 std::max(size.h - kTopOfChart - 6, kBarHeight)};
  seen_ = std::max<size_t>(1, static_cast<size_t>(area.h / kBarHeight));
  const double low = std::min(low_y_, 0.0), high = std::max(high_y_, 0.0), span = high > low ? high - low : 1;
  const auto place = [&](double v) { return area.x + static_cast<float>((v - low) / span) * area.w; };
  const size_t last = std::min(marks_.size(), first_ + seen_);
  for (size_t i = first_; i < last; ++i) {
    const Mark& m = marks_[i];
    const float y = area.y + static_cast<float>(i - first_) * kBarHeight;
    const Box line{4, y, size.w - 8, kBarHeight - 2};
    if (at_ == i) scene.rect(line, Ink::raised, 1, 3);
    scene.text({8, y, labels - 6, kBarHeight - 2}, m.label, Ink::text, Face::small, Align::right);
    const float from = place(std::min(m.y, 0.0)), to = place(std::max(m.y, 0.0));
    scene.rect({from, y + 3, std::max(to - from, 1.f), kBarHeight - 8}, Ink::series0, 0.9f, 2);
    scene.text({to + 5, y, numbers, kBarHeight - 2}, text_of(up_, m.y), Ink::secondary, Face::mono_small);
    if (at_ == i) scene.outline(line, Ink::accent, 1, 3);
    scene.target(line, {row, static_cast<int64_t>(m.row)}, Cursor::hand, said_of(m));
  }
  scene.line({place(0), area.y}, {place(0), area.y + static_cast<float>(last - first_) * kBarHeight}, Ink::line);
  const std::string& title = result_->columns[up_].name;
  scene.text({8, 4, size.w * 0.6f, 20}, title, Ink::text, Face::small);
  if (last - first_ < marks_.size())
    scene.text({size.w * 0.6f, 4, size.w * 0.4f - 8, 20},
               tr("{} to {} of {} rows", first_ + 1, last, format_grouped(static_cast<int64_t>(marks_.size()))),
               Ink::secondary, Face::small, Align::right);
}

void QueryChart::draw_axes(Scene& scene, Box area) const {
  const Size size = scene.size();
  const auto ticks = [&](size_t column, double lo, double hi, int most) {
    const bool bytes = result_->columns[column].unit == Unit::bytes;
    return bytes ? byte_ticks(lo, hi, most) : nice_ticks(lo, hi, most);
  };
  const Ticks up = ticks(up_, low_y_, high_y_, std::max(2, static_cast<int>(area.h / 40)));
  for (int i = 0; i < up.count; ++i) {
    const double v = std::fabs(up.at(i)) < 1e-9 * up.step ? 0 : up.at(i);
    const auto y = area.bottom() - static_cast<float>((v - low_y_) / (high_y_ - low_y_)) * area.h;
    if (y < area.y - 1 || y > area.bottom() + 1) continue;
    scene.line({area.x, y}, {area.right(), y}, Ink::grid);
    scene.text({2, y - 8, area.x - 8, 16}, text_of(up_, v), Ink::secondary, Face::mono_small, Align::right);
  }
  const Ticks along = ticks(along_, low_x_, high_x_, std::max(2, static_cast<int>(area.w / 110)));
  for (int i = 0; i < along.count; ++i) {
    const double v = std::fabs(along.at(i)) < 1e-9 * along.step ? 0 : along.at(i);
    const auto x = area.x + static_cast<float>((v - low_x_) / (high_x_ - low_x_)) * area.w;
    if (x < area.x - 1 || x > area.right() + 1) continue;
    scene.line({x, area.y}, {x, area.bottom()}, Ink::grid);
    const float left = std::clamp(x - 50, 0.f, std::max(size.w - 102, 0.f));
    scene.text({left, area.bottom() + 3, 100, 16}, text_of(along_, v), Ink::secondary, Face::mono_small, Align::center);
  }
  scene.line({area.x, area.bottom()}, {area.right(), area.bottom()}, Ink::secondary);
  scene.line({area.x, area.y}, {area.x, area.bottom()}, Ink::secondary);
  scene.text({area.x, area.bottom() + 20, area.w, 18}, result_->columns[along_].name, Ink::text, Face::small,
             Align::center);
  scene.text({8, 4, std::max(size.w * 0.4f - 8, 10.f), 20}, result_->columns[up_].name, Ink::text, Face::small);
}

/// As many points as fall on a column of pixels are drawn as their range: no spike of them gets lost.
void QueryChart::draw_line(Scene& scene) const {
  const Size size = scene.size();
  const Box area{kLeftOfLine, kTopOfChart, std::max(size.w - kLeftOfLine - kRightOfLine, 20.f),
                 std::max(size.h - kTopOfChart - kUnderLine, 20.f)};
  draw_axes(scene, area);
  const auto point = [&](const Mark& m) {
    return Point{area.x + static_cast<float>((m.x - low_x_) / (high_x_ - low_x_)) * area.w,
                 area.bottom() - static_cast<float>((m.y - low_y_) / (high_y_ - low_y_)) * area.h};
  };
  std::vector<Point> line;
  for (size_t i = 0; i < marks_.size();) {
    const Point first = point(marks_[i]);
    Point low = first, high = first, last = first;
    size_t next = i + 1;
    for (; next < marks_.size() && point(marks_[next]).x < std::floor(first.x) + 1; ++next) {
      last = point(marks_[next]);
      if (last.y > low.y) low = last;
      if (last.y < high.y) high = last;
    }
    line.push_back(first);
    if (next > i + 1) line.insert(line.end(), {low, high, last});
    const float wide = std::max(8.f, area.w / static_cast<float>(marks_.size()));
    scene.target({first.x - wide / 2, area.y, wide, area.h}, {row, static_cast<int64_t>(marks_[i].row)}, Cursor::hand,
                 said_of(marks_[i]));
    i = next;
  }
  scene.polyline(line, Ink::series0, 1.5f);
  constexpr size_t kFewPoints = 60;
  if (marks_.size() <= kFewPoints)
    for (const Mark& m : marks_) scene.rect({point(m).x - 2.5f, point(m).y - 2.5f, 5, 5}, Ink::series0, 1, 2.5f);
  if (!at_) return;
  const Point p = point(marks_[*at_]);
  scene.line({p.x, area.y}, {p.x, area.bottom()}, Ink::accent, 1, 0.6f);
  scene.outline({p.x - 5, p.y - 5, 10, 10}, Ink::accent, 2, 5);
  scene.text({size.w * 0.4f, 4, size.w * 0.6f - 8, 20}, said_of(marks_[*at_]), Ink::secondary, Face::small,
             Align::right);
}

void QueryChart::draw(Scene& scene) {
  if (marks_.empty()) {
    scene.text({8, 0, std::max(scene.size().w - 16, 20.f), scene.size().h}, why_none(), Ink::secondary, Face::small,
               Align::center);
    return;
  }
  bars_ ? draw_bars(scene) : draw_line(scene);
}

void QueryChart::go_to(size_t mark) {
  at_ = mark;
  if (mark < first_) first_ = mark;
  if (mark >= first_ + seen_) first_ = mark + 1 - seen_;
  changed();
}

void QueryChart::choose(size_t mark) {
  go_to(mark);
  if (const size_t r = marks_[mark].row; r < leads_.size() && leads_[r]) select(leads_[r]);
}

bool QueryChart::pointer(const PointerEvent& e) {
  if (e.type != PointerEvent::Type::press || e.button != Button::left) return false;
  const Hit hit = last_.hit_at(e.x, e.y);
  for (size_t i = 0; i < marks_.size() && hit.kind == row; ++i)
    if (static_cast<int64_t>(marks_[i].row) == hit.id) {
      choose(i);
      return true;
    }
  return false;
}

bool QueryChart::wheel(const WheelEvent& e) {
  if (!bars_ || marks_.size() <= seen_ || e.dy == 0) return false;
  const size_t most = marks_.size() - seen_;
  first_ = e.dy > 0 ? first_ - std::min<size_t>(first_, 3) : std::min(first_ + 3, most);
  return true;
}

bool QueryChart::key(const KeyEvent& e) {
  if (marks_.empty() || e.mods.ctrl || e.mods.alt) return false;
  const size_t last = marks_.size() - 1;
  if (e.key == "Right" || e.key == "Down")
    go_to(at_ ? std::min(*at_ + 1, last) : 0);
  else if (e.key == "Left" || e.key == "Up")
    go_to(at_ ? *at_ - std::min<size_t>(*at_, 1) : last);
  else if (e.key == "Home")
    go_to(0);
  else if (e.key == "End")
    go_to(last);
  else if ((e.key == "Return" || e.key == "Enter") && at_)
    choose(*at_);
  else
    return false;
  return true;
}

std::string QueryChart::summary() const {
  if (marks_.empty()) return why_none();
  const auto high =
      std::max_element(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) { return a.y < b.y; });
  const std::string &up = result_->columns[up_].name, &along = result_->columns[along_].name;
  std::string said = bars_ ? tr("{} bars, {} of {}; highest {}", marks_.size(), up, along, said_of(*high))
                           : tr("{} points, {} of {}; highest {}", marks_.size(), up, along, said_of(*high));
  if (at_) said += ". " + said_of(marks_[*at_]);
  return said;
}

}  // namespace tenon::views
