// What the roofline shows: its rows, what is selected among them, and its intents. The picture is in roofline_draw.cpp.
#include "views/roofline/roofline_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "tracing/record/step_record.h"
#include "views/shared/finding_page.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using tracing::RoofRow;

void RooflineModel::set_step(const Links& links) {
  links_ = links;
  work_out();
}

void RooflineModel::set_ceilings(std::optional<kernels::Ceilings> ceilings) {
  ceilings_ = std::move(ceilings);
  work_out();
}

void RooflineModel::work_out() {
  roofline_.reset();
  page_ = {};
  row_of_.clear();
  hover_ = pressed_ = {};
  if (links_ && ceilings_) {
    roofline_ = tracing::roofline({links_.record()}, *ceilings_);
    page_ = tracing::roofline_page(*roofline_, *links_.record());
    row_of_.assign(links_.record()->ops.size() + 1, -1);
    for (size_t i = 0; i < roofline_->rows.size(); ++i)
      for (const uint32_t seq : roofline_->rows[i].calls) row_of_[seq] = static_cast<int>(i);
  }
  set_selection(selection_);
  changed();
}

void RooflineModel::set_selection(const Selection& s) {
  selection_ = s;
  marked_.clear();
  if (!roofline_) return;
  for (const uint32_t seq : links_.ops_of(s))
    if (seq < row_of_.size() && row_of_[seq] >= 0) marked_.push_back(static_cast<size_t>(row_of_[seq]));
  std::sort(marked_.begin(), marked_.end());
  marked_.erase(std::unique(marked_.begin(), marked_.end()), marked_.end());
  changed();
}

Selection RooflineModel::selection_of(size_t row) const {
  return Selection::op(roofline_->rows[row].calls.front(), "roofline");
}

Table RooflineModel::table() const {
  if (!roofline_ || page_.tables.empty()) return {};
  tracing::Finding shown = page_;
  tracing::Table& from = shown.tables.front();
  while (from.columns.back().wide) {  // for programs: the rates say the same
    from.columns.pop_back();
    for (auto& row : from.rows) row.pop_back();
  }
  Table t = make_page(shown, Subject{.step = links_.record(), .source = "roofline"}).tables.front().table;
  for (size_t i = 0; i < t.rows.size(); ++i) t.rows[i].selection = selection_of(i);
  return t;
}

bool RooflineModel::pointer(const PointerEvent& e) {
  if (!roofline_) return false;
  const Hit under = e.type == PointerEvent::Type::leave ? Hit{} : last_.hit_at(e.x, e.y);
  switch (e.type) {
    case PointerEvent::Type::press:
      if (e.button == Button::left) pressed_ = under;
      return false;
    case PointerEvent::Type::release: {
      const bool clicked = e.button == Button::left && pressed_ && pressed_ == under;
      pressed_ = {};
      if (clicked) select(selection_of(static_cast<size_t>(under.id)));
      return clicked;
    }
    case PointerEvent::Type::move:
    case PointerEvent::Type::leave: {
      const bool other = !(hover_ == under);
      hover_ = under;
      return other;
    }
    default:
      return false;
  }
}

/// In the order of the table: those with the most to win first.
bool RooflineModel::key(const KeyEvent& e) {
  if (!roofline_ || roofline_->rows.empty()) return false;
  const size_t last = roofline_->rows.size() - 1;
  const bool some = !marked_.empty();
  size_t row = some ? marked_.front() : 0;
  if (e.key == "Right" || e.key == "Down")
    row = some ? std::min(row + 1, last) : 0;
  else if (e.key == "Left" || e.key == "Up")
    row = row > 0 ? row - 1 : 0;
  else if (e.key == "Home")
    row = 0;
  else if (e.key == "End")
    row = last;
  else
    return false;
  select(selection_of(row));
  return true;
}

std::string RooflineModel::told_of(const RoofRow& row) const {
  std::string s = row.sizes.empty() ? row.op : row.op + " " + elide_middle(row.sizes, 80);
  const std::string time = format_ns(static_cast<double>(row.ns)),
                    part = format_percent(tracing::share(row.ns, roofline_->step_ns));
  s += "\n" + (row.count == 1 ? tr("one call, {} ({} of the step)", time, part)
                              : tr("{} calls, {} ({} of the step)", format_grouped(row.count), time, part));
  if (row.flops > 0)
    s += "\n" + tr("{:.3g} of {:.3g} GFLOP/s at {:.3g} FLOP per byte: {}", row.gflops(), row.ceiling(), row.intensity(),
                   format_percent(row.reached()));
  if (row.bytes > 0)
    s += "\n" + tr("{:.3g} of {:.3g} GB/s", row.gbytes(), roofline_->ceilings.bytes / 1e9) +
         (row.flops > 0 ? "" : ": " + format_percent(row.reached()));
  switch (row.limit) {
    case tracing::Limit::memory:
      s += "\n" + tr("Its limit is the memory: {} to win", format_ns(row.to_win()));
      break;
    case tracing::Limit::arithmetic:
      s += "\n" + tr("Its limit is the arithmetic: {} to win", format_ns(row.to_win()));
      break;
    case tracing::Limit::size:
      s += "\n" + tr("Too small to fill the machine: {} to win with fewer calls", format_ns(row.to_win()));
      break;
    default:
      break;
  }
  return s;
}

std::string RooflineModel::summary() const {
  if (!roofline_) return tr("Roofline: nothing to show yet");
  if (marked_.size() == 1) {
    std::string told = told_of(roofline_->rows[marked_.front()]);
    std::replace(told.begin(), told.end(), '\n', ';');
    return told;
  }
  return headline();
}

}  // namespace tenon::views
