// The picture of a sweep; state and intents are in sweeps_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number.h"
#include "engine/train/metric.h"
#include "projects/sweep.h"
#include "views/shared/axis.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"
#include "views/sweeps/sweeps_model.h"

namespace tenon::views {

using projects::SearchKey;
using projects::TrialInfo;

namespace {
constexpr float kEdge = 12, kTitle = 24, kLeft = 58, kBottom = 20;

bool ended(const TrialInfo& t) { return t.state != "open" && std::isfinite(t.value); }
/// Where a value stands on its key's axis: the ends of the axis are the first and the last value.
float axis_place(const SearchKey& k, const std::string& value) {
  const auto share = [](double at, double all) { return static_cast<float>(all > 0 ? at / all : 0.5); };
  if (k.kind == SearchKey::Kind::values) {
    const auto at = std::find(k.values.begin(), k.values.end(), value) - k.values.begin();
    return share(static_cast<double>(at), static_cast<double>(k.values.size()) - 1);
  }
  if (k.rounds && k.kind != SearchKey::Kind::log) return share(number_of(value).value_or(k.lo) - k.lo, k.hi - k.lo);
  return static_cast<float>(k.place_of(value));
}
}  // namespace

SweepsModel::Range SweepsModel::range() const {
  std::vector<double> values;
  for (const TrialInfo& t : sweep_->trials)
    if (ended(t)) values.push_back(t.value);
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  // Behind Tukey's far fence, three times the middle half's width beyond it, on the side that is worse. Few values have
  // no middle half to speak of.
  double lo = values.front(), hi = values.back();
  if (values.size() >= 8) {
    const double q1 = values[values.size() / 4], q3 = values[values.size() * 3 / 4], width = 3 * (q3 - q1);
    if (plan_->direction > 0)
      lo = *std::find_if(values.begin(), values.end(), [&](double v) { return v >= q1 - width; });
    else
      hi = *std::find_if(values.rbegin(), values.rend(), [&](double v) { return v <= q3 + width; });
  }
  return {lo, hi};
}

void SweepsModel::draw(Scene& scene) {
  if (!sweep_ || !plan_) return;
  const Size size = scene.size();
  const float w = std::max(size.w - 2 * kEdge, 60.f), h = std::max(size.h - 2 * kEdge, 60.f);
  const bool tall = h > 260;
  const float top = tall ? std::floor(h * 0.46f) : h, bars = w > 480 ? std::floor(w * 0.34f) : 0;
  draw_progress(scene, {kEdge, kEdge, w - bars - (bars > 0 ? 20 : 0), top});
  if (bars > 0) draw_importance(scene, {kEdge + w - bars, kEdge, bars, top});
  if (tall) draw_keys(scene, {kEdge, kEdge + top + 14, w, h - top - 14});
}

void SweepsModel::draw_progress(Scene& scene, Box box) {
  const Box area{box.x + kLeft, box.y + kTitle, std::max(box.w - kLeft - 8, 20.f),
                 std::max(box.h - kTitle - kBottom, 20.f)};
  const double margin =
      range_.hi > range_.lo ? 0.08 * (range_.hi - range_.lo) : std::max(std::fabs(range_.hi) * 0.1, 1e-3);
  const Range r{range_.lo - margin, range_.hi + margin};
  const TrialInfo* first = best();
  const std::string title = tr("Best {} so far", metric_words(plan_->metric));
  const float wide = std::min(text_width(title) + 8, box.w * 0.5f), room = box.w * 0.5f - wide - 12;
  scene.text({box.x + 2, box.y, wide, kTitle - 4}, title);
  const bool pruned =
      std::any_of(sweep_->trials.begin(), sweep_->trials.end(), [](const TrialInfo& t) { return t.state == "pruned"; });
  if (const std::string sign = tr("hollow: pruned"); pruned && room > text_width(sign, Face::small) + 4)
    scene.text({box.x + wide + 12, box.y, room, kTitle - 4}, sign, Ink::secondary, Face::small);
  if (first)
    scene.text({box.x + box.w * 0.5f, box.y, box.w * 0.5f - 8, kTitle - 4},
               format_metric(plan_->metric, first->value) + "  " + tr("trial {}", first->number), Ink::good_text,
               Face::mono_small, Align::right);
  const Ticks t = nice_ticks(r.lo, r.hi, std::max(2, static_cast<int>(area.h / 36)));
  for (int i = 0; first && i < t.count; ++i) {
    const float y = area.bottom() - r.at(t.at(i)) * area.h;
    if (y < area.y + 3 || y > area.bottom() - 1) continue;
    scene.line({area.x, y}, {area.right(), y}, Ink::line, 1, 0.8f);
    // An accuracy has no more than all.
    if (plan_->metric.find("accuracy") != std::string::npos && t.at(i) > 1 + 1e-9) continue;
    scene.text({box.x, y - 8, kLeft - 6, 16}, without_zeros(format_metric(plan_->metric, t.at(i))), Ink::secondary,
               Face::mono_small, Align::right);
  }
  scene.line({area.x, area.bottom()}, {area.right(), area.bottom()}, Ink::secondary);
  // Of many trials those that there are, with room for some more.
  const auto begun = static_cast<int64_t>(sweep_->trials.size());
  const int64_t shown = std::max<int64_t>(std::min(plan_->runs, std::max<int64_t>(20, begun + begun / 4)), 1);
  const auto x_of = [&](double number) {
    return area.x + area.w * static_cast<float>((number - 0.5) / static_cast<double>(shown));
  };
  // Under the first and the last, as far as there is room.
  for (const int64_t at : {int64_t{1}, shown}) {
    const std::string said = tr("trial {}", format_grouped(at));
    const float wide = text_width(said, Face::mono_small) + 2, x = x_of(static_cast<double>(at)) - wide / 2;
    scene.text({std::clamp(x, area.x, std::max(area.x, area.right() - wide)), area.bottom() + 3, wide, 16}, said,
               Ink::secondary, Face::mono_small);
    if (shown == 1) break;
  }
  if (!first) {
    scene.text({area.x, area.y, area.w, area.h},
               sweep_->trials.empty() ? tr("No trial has begun yet") : tr("No trial has a result yet"), Ink::secondary,
               Face::small, Align::center);
  }
  std::vector<Point> line;
  const TrialInfo* so_far = nullptr;
  for (const TrialInfo& trial : sweep_->trials) {
    if (!ended(trial)) continue;
    const float x = x_of(static_cast<double>(trial.number));
    const auto y = [&](double v) { return area.bottom() - std::clamp(r.at(v), 0.f, 1.f) * area.h; };
    if (so_far && !plan_->is_better(trial.value, so_far->value)) continue;
    if (so_far) line.push_back({x, y(so_far->value)});
    so_far = &trial;
    line.push_back({x, y(trial.value)});
  }
  for (auto last = sweep_->trials.rbegin(); so_far && last != sweep_->trials.rend(); ++last)
    if (ended(*last)) {
      if (last->number != so_far->number) line.push_back({x_of(static_cast<double>(last->number)), line.back().y});
      break;
    }
  scene.polyline(line, Ink::good, 2);
  for (const TrialInfo& trial : sweep_->trials) {
    const float x = x_of(static_cast<double>(trial.number));
    const Run* run = run_of(trial);
    const std::string name = tr("trial {}", trial.number) + (run ? " · " + run->name : std::string());
    if (trial.state == "failed") {
      scene.rect({x - 1, area.bottom() - 10, 2, 10}, Ink::bad);
      scene.target({x - 5, area.bottom() - 14, 10, 14}, {SweepsModel::trial, trial.number},
                   run ? Cursor::hand : Cursor::arrow, tr("{} failed: {}", name, trial.error));
      continue;
    }
    if (!ended(trial)) continue;
    const float share = r.at(trial.value), y = area.bottom() - std::clamp(share, 0.f, 1.f) * area.h;
    const bool chosen = trial.run && trial.run == selected_;
    if (chosen) scene.outline({x - 7, y - 7, 14, 14}, Ink::accent, 2, 7);
    if (trial.state == "pruned")
      scene.outline({x - 4, y - 4, 8, 8}, Ink::secondary, 1.5f, 4);
    else
      scene.rect({x - 4, y - 4, 8, 8}, Ink::series0, 1, 4);
    scene.target(
        {x - 7, y - 7, 14, 14}, {SweepsModel::trial, trial.number}, run ? Cursor::hand : Cursor::arrow,
        fmt::format("{} {}: {} = {}{}", name, state_word(trial.state), plan_->metric, format_exact(trial.value),
                    share < 0 || share > 1 ? ", " + tr("beyond the edge") : std::string()));
  }
}

void SweepsModel::draw_importance(Scene& scene, Box box) {
  scene.text({box.x, box.y, box.w, kTitle - 4}, tr("Importance of keys"));
  if (importance_.shares.empty()) {
    const std::string why = importance_.too_few.empty() ? tr("no trial has finished yet") : importance_.too_few;
    scene.text({box.x, box.y + kTitle, box.w, 20}, why.substr(0, why.find(':')), Ink::secondary, Face::small);
    if (const size_t colon = why.find(':'); colon != why.npos)
      scene.text({box.x, box.y + kTitle + 20, box.w, 20}, why.substr(colon + 2), Ink::secondary, Face::small);
    return;
  }
  auto shares = importance_.shares;
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  shares.push_back({tr("several together"), importance_.together});
  const float row = 22, names = std::floor(box.w * 0.46f), values = 44;
  const float room = std::max(box.w - names - values - 12, 10.f);
  float y = box.y + kTitle;
  for (const auto& s : shares) {
    if (y + row > box.bottom()) break;
    const bool rest = &s == &shares.back();
    scene.text({box.x, y, names, row}, s.key, rest ? Ink::secondary : Ink::text, Face::small);
    scene.rect({box.x + names + 6, y + 6, room, row - 12}, Ink::raised, 1, 2);
    scene.rect(
        {box.x + names + 6, y + 6, std::max(room * static_cast<float>(std::clamp(s.share, 0.0, 1.0)), 1.f), row - 12},
        rest ? Ink::baseline : Ink::series0, 1, 2);
    scene.text({box.right() - values, y, values, row}, format_percent(s.share), Ink::text, Face::mono_small,
               Align::right);
    scene.target({box.x, y, box.w, row}, {}, Cursor::arrow,
                 rest ? tr("What only several keys together account for")
                      : tr("{} by itself accounts for {} of the variance between finished trials", s.key,
                           format_percent(s.share)));
    y += row;
  }
}

void SweepsModel::draw_axis(Scene& scene, float x, Box area, const std::string& title, const std::string& low,
                            const std::string& high, float width) {
  scene.line({x, area.y}, {x, area.bottom()}, Ink::secondary);
  const float left = std::clamp(x - width / 2, kEdge, std::max(kEdge, scene.size().w - kEdge - width));
  scene.text({left, area.y - 36, width, 18}, title, Ink::text, Face::small, Align::center);
  scene.text({left, area.y - 18, width, 16}, high, Ink::secondary, Face::mono_small, Align::center);
  scene.text({left, area.bottom() + 2, width, 16}, low, Ink::secondary, Face::mono_small, Align::center);
}

void SweepsModel::draw_keys(Scene& scene, Box box) {
  const auto& keys = plan_->space.keys();
  const auto columns = static_cast<float>(keys.size());
  const float inset = std::min(70.f, box.w / (2 * columns + 2));
  const Box area{box.x + inset, box.y + 40, std::max(box.w - 2 * inset, 20.f), std::max(box.h - 60, 20.f)};
  const float gap = area.w / columns, width = std::min(gap - 8, 150.f);
  std::vector<float> xs;
  std::vector<std::pair<size_t, size_t>> values;  // of lists, between their ends
  for (size_t i = 0; i < keys.size(); ++i) {
    const SearchKey& k = keys[i];
    xs.push_back(area.x + gap * static_cast<float>(i));
    const bool list = k.kind == SearchKey::Kind::values;
    draw_axis(scene, xs[i], area, k.key, list ? k.values.front() : attr_text(k.lo),
              list ? (k.values.size() > 1 ? k.values.back() : "") : attr_text(k.hi), width);
    if (!list || area.h < 18 * static_cast<float>(k.values.size())) continue;
    for (size_t v = 1; v + 1 < k.values.size(); ++v) values.emplace_back(i, v);
  }
  const Range& r = range_;
  xs.push_back(area.right());
  const bool any = best_ != 0;
  draw_axis(scene, xs.back(), area, metric_words(plan_->metric), any ? format_metric(plan_->metric, r.lo) : "",
            any ? format_metric(plan_->metric, r.hi) : "", width);
  // Those behind first: the best, and what is selected, lie on top.
  std::vector<const TrialInfo*> order;
  for (const TrialInfo& t : sweep_->trials)
    if (ended(t)) order.push_back(&t);
  std::stable_sort(order.begin(), order.end(), [&](const TrialInfo* a, const TrialInfo* b) {
    const bool first = a->run && a->run == selected_, second = b->run && b->run == selected_;
    return first != second ? second : plan_->is_better(b->value, a->value);
  });
  for (const TrialInfo* t : order) draw_trial(scene, *t, xs, area);
  for (const auto& [i, v] : values) {
    const std::string& text = keys[i].values[v];
    const float y = area.bottom() - axis_place(keys[i], text) * area.h;
    const float w = std::min(text_width(text, Face::mono_small) + 6, std::max(gap - 20, 10.f));
    scene.rect({xs[i] + 8, y - 8, w, 16}, Ink::panel, 0.85f, 2);
    scene.text({xs[i] + 11, y - 8, w - 3, 16}, text, Ink::secondary, Face::mono_small);
  }
}

void SweepsModel::draw_trial(Scene& scene, const TrialInfo& t, const std::vector<float>& xs, Box area) {
  const projects::Settings settings = projects::settings_of(t);
  const Range& r = range_;
  std::vector<Point> line;
  for (size_t i = 0; i + 1 < xs.size(); ++i) {
    const SearchKey& k = plan_->space.keys()[i];
    for (const auto& [key, value] : settings)
      if (key == k.key) line.push_back({xs[i], area.bottom() - axis_place(k, value) * area.h});
  }
  line.push_back({xs.back(), area.bottom() - std::clamp(r.at(t.value), 0.f, 1.f) * area.h});
  const bool chosen = t.run && t.run == selected_, first = best_ == t.number;
  if (chosen)
    scene.polyline(line, Ink::accent, 2.5f);
  else if (first)
    scene.polyline(line, Ink::good, 2.5f);
  else
    scene.polyline(line, t.state == "pruned" ? Ink::baseline : Ink::series0, 1.2f, 0.55f);
  const Run* run = run_of(t);
  std::string tip = tr("trial {}", t.number) + fmt::format("{} {}: {} = {}", run ? " · " + run->name : std::string(),
                                                           t.state, plan_->metric, format_exact(t.value));
  for (const auto& [key, value] : settings) tip += "\n" + key + " = " + value;
  for (const Point& p : line) {
    scene.rect({p.x - 2.5f, p.y - 2.5f, 5, 5},
               chosen                ? Ink::accent
               : first               ? Ink::good
               : t.state == "pruned" ? Ink::baseline
                                     : Ink::series0,
               1, 2.5f);
    scene.target({p.x - 6, p.y - 6, 12, 12}, {trial, t.number}, run ? Cursor::hand : Cursor::arrow, tip);
  }
}

}  // namespace tenon::views
