// Mouse, wheel and keys of the curves.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "views/training/training_model.h"

namespace tenon::views {

bool TrainingModel::pointer(const PointerEvent& e) {
  auto over = [&](float x, float y) {
    return std::find_if(areas_.begin(), areas_.end(), [&](const auto& a) { return a.first.contains(x, y); });
  };
  auto at = over(e.x, e.y);
  if (e.type == PointerEvent::Type::leave) {
    bool was = hover_ >= 0;
    hover_ = -1;
    return was;
  }
  if (at != areas_.end()) {
    axis_.x = at->first.x;
    axis_.w = at->first.w;
  }
  auto step_under = [&](float x) {
    return std::clamp<int64_t>(step_at(axis_.to_value(x)), 0, std::max<int64_t>(last_step_, 0));
  };
  switch (e.type) {
    case PointerEvent::Type::press: {
      if (e.button != Button::left) return false;
      const Hit hit = last_.hit_at(e.x, e.y);
      if (hit.kind == watch_mark) return select(Selection::step(hit.id, "training")), true;
      if (hit.kind == log_toggle || hit.kind == hide_button) {
        if (hit.id >= static_cast<int64_t>(areas_.size())) return true;
        const std::string chart = areas_[static_cast<size_t>(hit.id)].second;
        if (hit.kind == log_toggle) {
          set_log(chart, !log(chart));
        } else {
          charts_.hide(chart, true);
          focus_ = -1;
          told();
        }
        return true;
      }
      dragging_ = at != areas_.end();
      moved_ = false;
      press_x_ = drag_x_ = e.x;
      return dragging_;
    }
    case PointerEvent::Type::move: {
      int64_t before = hover_;
      hover_ = at != areas_.end() ? step_under(e.x) : -1;
      if (dragging_) {
        drag_x_ = e.x;
        if (std::fabs(e.x - press_x_) > 5) moved_ = true;
        return true;
      }
      return hover_ != before;
    }
    case PointerEvent::Type::release: {
      if (!dragging_) return false;
      dragging_ = false;
      if (moved_)
        show(axis_.to_value(std::min(press_x_, e.x)), axis_.to_value(std::max(press_x_, e.x)));
      else if (last_step_ > 0)
        select(Selection::step(std::max<int64_t>(step_under(e.x), 1), "training"));
      return true;
    }
    case PointerEvent::Type::double_click:
      if (last_.hit_at(e.x, e.y).kind > plot) {  // two quick clicks on a button are two clicks
        PointerEvent again = e;
        again.type = PointerEvent::Type::press;
        return pointer(again);
      }
      fit();
      return true;
    default:
      return false;
  }
}

int64_t TrainingModel::step_of(float x, float y) const {
  for (const auto& [area, name] : areas_)
    if (area.contains(x, y) && last_step_ > 0) {
      Axis axis = axis_;
      axis.x = area.x;
      axis.w = area.w;
      return std::clamp<int64_t>(step_at(axis.to_value(x)), 1, last_step_);
    }
  return -1;
}

bool TrainingModel::wheel(const WheelEvent& e) {
  for (const auto& [area, name] : areas_)
    if (area.contains(e.x, e.y)) {
      axis_.x = area.x;
      axis_.w = area.w;
      return axis_.wheel(e);
    }
  return false;
}

bool TrainingModel::key(const KeyEvent& e) {
  if (axis_.key(e)) return true;
  const std::vector<std::string> charts = groups();
  const auto plots = static_cast<int>(charts.size());
  if ((e.key == "Up" || e.key == "Down") && plots > 0) {
    focus_ = std::clamp(focus_ + (e.key == "Down" ? 1 : -1), 0, plots - 1);
    return true;
  }
  const bool on_plot = focus_ >= 0 && focus_ < plots && !e.mods.ctrl && !e.mods.alt;
  if (e.key == "L" && on_plot) {
    const std::string& chart = charts[static_cast<size_t>(focus_)];
    set_log(chart, !log(chart));
    return true;
  }
  if (e.key == "H" && on_plot) {
    charts_.hide(charts[static_cast<size_t>(focus_)], true);
    focus_ = std::min(focus_, plots - 2);
    told();
    return true;
  }
  if (e.key == "X" && !e.mods.ctrl && !e.mods.alt) {
    set_over(kOvers[(static_cast<size_t>(over_) + 1) % std::size(kOvers)]);
    return true;
  }
  if ((e.key == "Return" || e.key == "Enter" || e.key == "Home" || e.key == "End") && last_step_ > 0) {
    const bool here = selected_ >= 1 && (e.key == "Return" || e.key == "Enter");
    select(Selection::step(e.key == "Home" ? 1 : here ? selected_ : last_step_, "training"));
    return true;
  }
  if ((e.key == "Left" || e.key == "Right") && last_step_ > 0) {
    int64_t from = selected_ < 0 ? last_step_ : selected_;
    select(Selection::step(
        std::clamp<int64_t>(from + (e.key == "Right" ? 1 : -1) * (e.mods.shift ? 10 : 1), 1, last_step_), "training"));
    return true;
  }
  return false;
}

}  // namespace tenon::views
