#include "views/runs/runs_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "views/shared/axis.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

namespace {
constexpr int kMostColours = 8;
constexpr float kLeftOfChart = 74, kUnderChart = 42, kOverChart = 28;

std::string written(const RunValue& v) { return v.text.empty() && v.number ? format_exact(v.x) : v.text; }
}  // namespace

void RunsChart::set_rows(RunRows rows) {
  rows_ = std::move(rows);
  place();
}

void RunsChart::set_fields(const RunField& x, const RunField& y) {
  if (x_ == x && y_ == y) return;
  x_ = x;
  y_ = y;
  place();
}

void RunsChart::set_axes(const std::vector<RunField>& axes) {
  if (axes_ == axes) return;
  axes_ = axes;
  place();
}

void RunsChart::set_group(const std::optional<RunField>& group) {
  if (group_ == group) return;
  group_ = group;
  place();
}

void RunsChart::set_picked(const std::vector<int64_t>& runs) {
  if (picked_ == runs) return;
  picked_ = runs;
  changed();
}

void RunsChart::set_selected(int64_t run) {
  if (selected_ == run) return;
  selected_ = run;
  changed();
}

RunsChart::Scale RunsChart::scale_of(const RunField& field) const {
  Scale s;
  s.metric = field.metric();
  bool words = false, any = false;
  double least = 0, most = 0;
  for (const auto& r : rows_) {
    const auto v = value_of(field, *r);
    if (!v) continue;
    if (!v->number) words = true;
    if (!v->number || !std::isfinite(v->x)) continue;
    least = any ? std::min(least, v->x) : v->x;
    most = any ? std::max(most, v->x) : v->x;
    any = true;
  }
  if (words) {
    for (const RunGroup& g : groups_of(rows_, field))
      if (value_of(field, *g.runs.front())) s.names.push_back(g.value);
    return s;
  }
  s.log = any && least > 0 && most > 100 * least;
  s.lo = s.log ? std::log10(least) : least;
  s.hi = s.log ? std::log10(most) : most;
  const double margin = s.hi > s.lo ? 0.05 * (s.hi - s.lo) : std::max(std::fabs(s.hi) * 0.1, 1e-6);
  s.lo -= margin;
  s.hi += margin;
  return s;
}

std::optional<float> RunsChart::Scale::place(const RunValue& v) const {
  if (!names.empty()) {
    const auto at = std::find(names.begin(), names.end(), written(v));
    return at == names.end()
               ? std::nullopt
               : std::optional((static_cast<float>(at - names.begin()) + 0.5f) / static_cast<float>(names.size()));
  }
  if (!v.number || !std::isfinite(v.x)) return {};
  return static_cast<float>(((log ? std::log10(v.x) : v.x) - lo) / (hi - lo));
}

std::vector<std::pair<float, std::string>> RunsChart::Scale::marks(int most) const {
  std::vector<std::pair<float, std::string>> out;
  auto add = [&](double v) {
    const auto at = static_cast<float>(((log ? std::log10(v) : v) - lo) / (hi - lo));
    if (at >= 0 && at <= 1)
      out.emplace_back(at, metric.empty() ? format_exact(v) : without_zeros(format_metric(metric, v)));
  };
  if (!names.empty()) {
    for (size_t i = 0; i < names.size(); ++i)
      out.emplace_back((static_cast<float>(i) + 0.5f) / static_cast<float>(names.size()), names[i]);
  } else if (log) {
    const int step = std::max(1, static_cast<int>(std::ceil((hi - lo) / std::max(most, 1))));
    for (int e = static_cast<int>(std::ceil(lo)); e <= hi; e += step) add(std::pow(10.0, e));
  } else {
    const Ticks t = nice_ticks(lo, hi, std::max(2, most));
    for (int i = 0; i < t.count; ++i) add(std::fabs(t.at(i)) < 1e-9 * t.step ? 0 : t.at(i));
  }
  return out;
}

void RunsChart::place() {
  along_ = scale_of(axes_.empty() ? x_ : y_);
  up_ = scale_of(y_);
  scales_.clear();
  for (const RunField& f : axes_) scales_.push_back(scale_of(f));
  spots_.clear();
  group_names_.clear();
  std::map<const RunRow*, int> group_of;
  if (group_)
    for (const RunGroup& g : groups_of(rows_, *group_)) {
      for (const RunRow* r : g.runs) group_of[r] = static_cast<int>(group_names_.size());
      group_names_.push_back(g.value);
    }
  for (const auto& r : rows_) {
    const auto y = value_of(y_, *r), x = axes_.empty() ? value_of(x_, *r) : y;
    if (!x || !y) continue;
    const auto px = along_.place(*x), py = up_.place(*y);
    if (px && py) spots_.push_back({r.get(), *px, *py, group_ ? group_of[r.get()] : -1});
  }
  std::stable_sort(spots_.begin(), spots_.end(), [](const Spot& a, const Spot& b) {
    return a.x != b.x ? a.x < b.x : a.y != b.y ? a.y < b.y : a.row->info.id < b.row->info.id;
  });
  changed();
}

void RunsChart::draw_axes(Scene& scene, Box area) const {
  for (const auto& [at, text] : up_.marks(static_cast<int>(area.h / 40))) {
    const float y = area.bottom() - at * area.h;
    scene.line({area.x, y}, {area.right(), y}, Ink::line, 1, 0.8f);
    scene.text({4, y - 8, area.x - 10, 16}, text, Ink::secondary, Face::mono_small, Align::right);
  }
  const auto marks = along_.marks(static_cast<int>(area.w / 90));
  const float room = area.w / static_cast<float>(std::max<size_t>(marks.size(), 1));
  for (const auto& [at, text] : marks) {
    const float x = area.x + at * area.w, w = std::min(room - 6, 140.f);
    scene.line({x, area.y}, {x, area.bottom()}, Ink::line, 1, 0.5f);
    const float left = std::clamp(x - w / 2, 0.f, std::max(scene.size().w - w - 2, 0.f));
    if (w > 16) scene.text({left, area.bottom() + 3, w, 16}, text, Ink::secondary, Face::mono_small, Align::center);
  }
  scene.line({area.x, area.bottom()}, {area.right(), area.bottom()}, Ink::secondary);
  scene.line({area.x, area.y}, {area.x, area.bottom()}, Ink::secondary);
  const auto title = [](const RunField& f, const Scale& s) {
    return s.log ? tr("{} (logarithmic)", f.text()) : f.text();
  };
  scene.text({area.x, area.bottom() + 20, area.w, 18}, title(x_, along_), Ink::text, Face::small, Align::center);
  scene.text({8, 4, std::max(scene.size().w * 0.5f - 8, 10.f), 18}, title(y_, up_), Ink::text, Face::small);
}

/// Where several runs share a place on the axis: their mean.
void RunsChart::draw_means(Scene& scene, Box area) const {
  if (!up_.names.empty()) return;
  std::map<float, std::pair<double, int>> sums;
  for (const Spot& s : spots_) {
    sums[s.x].first += s.y;
    ++sums[s.x].second;
  }
  if (sums.size() > 24 || sums.size() * 2 > spots_.size()) return;
  const float half = std::min(area.w / static_cast<float>(sums.size()) * 0.35f, 28.f);
  for (const auto& [at, sum] : sums) {
    if (sum.second < 2) continue;
    const float x = area.x + at * area.w;
    const float y = area.bottom() - static_cast<float>(sum.first / sum.second) * area.h;
    scene.line({x - half, y}, {x + half, y}, Ink::secondary, 2);
    scene.target({x - half, y - 4, 2 * half, 8}, {}, Cursor::arrow,
                 up_.log ? tr("the mean of {} runs, on the logarithmic axis", sum.second)
                         : tr("the mean of {} runs", sum.second));
  }
}

void RunsChart::draw_legend(Scene& scene, Box box) const {
  if (!group_) return;
  const int shown = std::min(static_cast<int>(group_names_.size()), kMostColours);
  std::string title = group_->text() + ":";
  float x = box.x;
  const float w = text_width(title, Face::small) + 8;
  scene.text({x, box.y, std::min(w, box.w), box.h}, title, Ink::secondary, Face::small);
  x += w;
  for (int i = 0; i < shown; ++i) {
    const bool rest = i == kMostColours - 1 && static_cast<int>(group_names_.size()) > kMostColours;
    const std::string name = rest ? tr("others") : group_names_[static_cast<size_t>(i)];
    const float wide = std::min(text_width(name, Face::small) + 6, 160.f);
    if (x + 14 + wide > box.right()) break;
    scene.rect({x, box.y + box.h / 2 - 4, 8, 8}, rest ? Ink::baseline : series_ink(i), 1, 4);
    scene.text({x + 12, box.y, wide, box.h}, name, Ink::text, Face::small);
    x += 20 + wide;
  }
}

std::string RunsChart::none_said() const {
  return axes_.empty() ? tr("No run here has both {} and {}", x_.text(), y_.text())
                       : tr("No run here has {}", y_.text());
}

void RunsChart::draw(Scene& scene) {
  const Size size = scene.size();
  const Box area{kLeftOfChart, kOverChart, std::max(size.w - kLeftOfChart - 20, 20.f),
                 std::max(size.h - kOverChart - kUnderChart, 20.f)};
  if (spots_.empty()) {
    scene.text({8, 0, std::max(size.w - 16, 20.f), size.h}, none_said(), Ink::secondary, Face::small, Align::center);
    return;
  }
  draw_legend(scene, {size.w * 0.5f, 4, std::max(size.w * 0.5f - 8, 10.f), 18});
  if (axes_.empty())
    draw_points(scene, area);
  else
    draw_lines(scene);
  if (const size_t left = rows_.size() - spots_.size(); left > 0)
    scene.text({8, size.h - 18, kLeftOfChart + 60, 16}, tr("{} left out", format_grouped(static_cast<int64_t>(left))),
               Ink::secondary, Face::small);
}

Ink RunsChart::ink_of(const Spot& s) const {
  const bool rest = s.group >= kMostColours - 1 && static_cast<int>(group_names_.size()) > kMostColours;
  return rest ? Ink::baseline : series_ink(std::max(s.group, 0));
}

std::string RunsChart::tip_of(const Spot& s) const {
  std::string tip = s.row->info.name;
  std::vector<RunField> told = axes_;
  if (told.empty()) told.push_back(x_);
  told.push_back(y_);
  for (const RunField& f : told)
    if (const auto v = value_of(f, *s.row)) tip += fmt::format("\n{} = {}", f.text(), written(*v));
  if (group_) tip += "\n" + group_->text() + " = " + group_names_[static_cast<size_t>(s.group)];
  return tip;
}

void RunsChart::draw_points(Scene& scene, Box area) const {
  draw_axes(scene, area);
  draw_means(scene, area);
  for (const Spot& s : spots_) {
    const int64_t id = s.row->info.id;
    const float x = area.x + s.x * area.w, y = area.bottom() - s.y * area.h;
    scene.rect({x - 4, y - 4, 8, 8}, ink_of(s), 0.9f, 4);
    if (const auto at = std::find(picked_.begin(), picked_.end(), id); at != picked_.end())
      scene.outline({x - 6, y - 6, 12, 12}, compared_ink(static_cast<int>(at - picked_.begin())), 2, 6);
    if (id == selected_) scene.outline({x - 8, y - 8, 16, 16}, Ink::accent, 2, 8);
    scene.target({x - 7, y - 7, 14, 14}, {run, id}, Cursor::hand, tip_of(s));
  }
}

void RunsChart::choose(const RunRow& row) {
  selected_ = row.info.id;
  select(Selection::run(row.info.id, "runs"));
  changed();
}

bool RunsChart::pointer(const PointerEvent& e) {
  if (e.type != PointerEvent::Type::press || e.button != Button::left) return false;
  const Hit hit = last_.hit_at(e.x, e.y);
  if (hit.kind != run) return false;
  for (const Spot& s : spots_)
    if (s.row->info.id == hit.id) {
      choose(*s.row);
      return true;
    }
  return false;
}

bool RunsChart::key(const KeyEvent& e) {
  if (spots_.empty()) return false;
  const auto at =
      std::find_if(spots_.begin(), spots_.end(), [this](const Spot& s) { return s.row->info.id == selected_; });
  const auto last = spots_.end() - 1;
  auto to = at;
  if (e.key == "Right")
    to = at == spots_.end() ? spots_.begin() : at == last ? last : at + 1;
  else if (e.key == "Left")
    to = at == spots_.end() ? last : at == spots_.begin() ? at : at - 1;
  else if (e.key == "Home")
    to = spots_.begin();
  else if (e.key == "End")
    to = last;
  else
    return false;
  if (to != at) choose(*to->row);
  return true;
}

std::string RunsChart::summary() const {
  if (spots_.empty()) return none_said();
  const auto best =
      std::max_element(spots_.begin(), spots_.end(), [](const Spot& a, const Spot& b) { return a.y < b.y; });
  const std::string highest = written(*value_of(y_, *best->row));
  std::string said = axes_.empty() ? tr("{} runs, {} against {}; highest: {} = {} of {}", spots_.size(), y_.text(),
                                        x_.text(), y_.text(), highest, best->row->info.name)
                                   : tr("{} runs as lines through {} keys to {}; highest: {} of {}", spots_.size(),
                                        axes_.size(), y_.text(), highest, best->row->info.name);
  for (const Spot& s : spots_) {
    if (s.row->info.id != selected_) continue;
    std::string tip = tip_of(s);
    for (size_t at = 0, line = 0; (at = tip.find('\n', at)) != tip.npos; ++line) tip.replace(at, 1, line ? ", " : ": ");
    said += ". " + tip;
  }
  return said;
}

}  // namespace tenon::views
