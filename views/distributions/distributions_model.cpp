#include "views/distributions/distributions_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tracing/record/step_record.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using projects::Distributions;
using projects::ParameterSpreads;

namespace {

// Between these an update changes the weights enough to learn, and not so much that they are thrown about.
constexpr const char* kRatioTip = tr_later(
    "log10 of update / weights, by their norms: about -3 is usual. Above -2 the weights are thrown about (a smaller "
    "rate), below -5 they hardly move (a larger one, or the gradient vanishes)");

constexpr const char* kGradientPrefix = "grad of ";

const projects::Spread& side_of(const ParameterSpreads& s, DistributionsModel::Side side) {
  switch (side) {
    case DistributionsModel::Side::gradients:
      return s.gradient;
    case DistributionsModel::Side::updates:
      return s.update;
    default:
      return s.weight;
  }
}

Table::Cell watched_cell(double v) {
  Table::Cell c = Table::Cell::number(std::isfinite(v) ? v : -1e308, std::isnan(v) ? "–" : format_value(v));
  c.tip = std::isnan(v) ? tr("there is none") : format_exact(v);
  return c;
}
Table::Cell value_cell_of(const projects::Spread& s, double v) { return watched_cell(s.any() ? v : NAN); }
Table::Cell share_of_zeros(const projects::Spread& s) {
  if (!s.any()) return watched_cell(NAN);
  Table::Cell c = Table::Cell::number(static_cast<double>(s.zeros), format_grouped(s.zeros));
  c.tip = tr("{} of {}", format_grouped(s.zeros), format_grouped(s.count));
  return c;
}

Ink learning_ink(Learning l) {
  switch (l) {
    case Learning::well:
      return Ink::good;
    case Learning::fast:
    case Learning::hardly:
    case Learning::vanished:
      return Ink::warning;
    case Learning::not_finite:
      return Ink::bad;
    default:
      return Ink::none;
  }
}

/// Log10 of the ratio, with what it means as the dot and the tip.
Table::Cell ratio_cell(double ratio, Learning l) {
  Table::Cell c = watched_cell(NAN);
  if (ratio > 0) c = Table::Cell::number(std::log10(ratio), fmt::format("{:.2f}", std::log10(ratio)));
  if (ratio == 0) c = Table::Cell::number(-1e300, "-inf");
  c.mark = learning_ink(l);
  const std::string said = tr(learning_text(l));
  c.tip = (said.empty() ? "" : said + ": ") +
          (std::isnan(ratio) ? tr("no ratio") : tr("update / weights {}", format_exact(ratio))) + "\n" +
          tr("yellow above 1e-2, below 1e-5 and where the gradient is all 0, red where numbers are not finite");
  return c;
}

}  // namespace

const char* learning_text(Learning l) {
  switch (l) {
    case Learning::fast:
      return tr_later("moves fast");
    case Learning::hardly:
      return tr_later("hardly moves");
    case Learning::vanished:
      return tr_later("gradient all 0");
    case Learning::frozen:
      return tr_later("frozen");
    case Learning::not_finite:
      return tr_later("not finite");
    default:
      return "";
  }
}

void DistributionsModel::set_distributions(Shared d) {
  const bool other = !d || !d_ || d->id != d_->id;
  d_ = std::move(d);
  if (other) hover_ = selected_ = -1, dragging_ = false;
  at_ = 0;
  if (d_ && !d_->parameters.empty()) {
    const auto& all = d_->parameters;
    const auto same = std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == chosen_; });
    at_ = same == all.end() ? 0 : static_cast<size_t>(same - all.begin());
    chosen_ = all[at_].name;
    axis_.set_full(0, static_cast<double>(std::max<int64_t>(d_->steps, 1)));
  }
  if (other) axis_.fit();
  changed();
}

void DistributionsModel::choose(const std::string& parameter) {
  if (!d_ || parameter == chosen_) return;
  const auto& all = d_->parameters;
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == parameter; });
  if (at == all.end()) return;
  at_ = static_cast<size_t>(at - all.begin());
  chosen_ = parameter;
  changed();
  if (on_choose) on_choose();
}

Selection DistributionsModel::selection_of(const std::string& parameter) const {
  if (const auto& r = links_.record())
    for (size_t i = 0; i < r->tensors.size(); ++i)
      if (r->tensors[i].name == parameter) return Selection::tensor(static_cast<int64_t>(i), "distributions");
  const size_t dot = parameter.rfind('.');
  return Selection::module(dot == std::string::npos ? parameter : parameter.substr(0, dot), "distributions");
}

std::string DistributionsModel::parameter_of(const Selection& s) const {
  if (!d_ || s.document) return {};
  const auto is = [&](const std::string& name) {
    return std::any_of(d_->parameters.begin(), d_->parameters.end(), [&](const auto& p) { return p.name == name; });
  };
  if (const auto& r = links_.record()) {
    std::string name;
    if (s.kind == Selection::Kind::tensor && links_.hold(s)) name = r->tensors[static_cast<size_t>(s.id)].name;
    if (s.kind == Selection::Kind::grad_node && links_.hold(s)) name = r->grad_nodes[static_cast<size_t>(s.id)].name;
    if (name.starts_with(kGradientPrefix)) name = name.substr(std::string(kGradientPrefix).size());
    if (is(name)) return name;
  }
  if (s.kind != Selection::Kind::module && s.kind != Selection::Kind::op) return {};
  const std::string module = links_.module_of(s);
  if (module.empty()) return {};
  if (in_module(chosen_, module)) return chosen_;
  for (const auto& p : d_->parameters)
    if (in_module(p.name, module)) return p.name;
  return {};
}

void DistributionsModel::set_selection(const Selection& s) {
  const int64_t step = s.kind == Selection::Kind::step && !s.document ? s.id : -1;
  if (step >= 0 && step != selected_) {
    selected_ = step;
    changed();
  }
  if (const std::string name = parameter_of(s); !name.empty()) choose(name);
}

Table DistributionsModel::parameters() const {
  Table t;
  t.columns = {
      {tr("Parameter")},
      {tr("log10 ratio"), true, tr(kRatioTip)},
      {tr("Gradient norm"), true, tr("2-norm of the gradient in the last step that was looked at")},
      {tr("Deviation"), true, tr("standard deviation of the weights at the end")},
      {tr("Elements"), true},
      {tr("Remark"), false, tr("what the ratio of update and weights says")},
      {tr("Mean"), true, tr("of the weights at the end")},
      {tr("Update norm"), true, tr("2-norm of what the step added to the weights")},
      {tr("Gradient zeros"), true, tr("numbers of the gradient that are exactly 0")},
      {tr("Cosine"), true,
       tr("of the angle between the gradients of two successive steps: near 1 the steps agree, near 0 they are "
          "mostly noise, below 0 they throw the weights to and fro")},
      {tr("Rank"), true,
       tr("effective rank of the weights as a matrix: how many directions they use, at most its smaller side. "
          "Far below that the layer could be narrower")}};
  if (!d_ || d_->points.empty()) return t;
  const Distributions::Point* last = d_->last_replayed();
  for (size_t i = 0; i < d_->parameters.size(); ++i) {
    const ParameterSpreads none, &end = d_->points.back().parameters[i], &moved = last ? last->parameters[i] : none;
    const Learning l = learning_of(*d_, i);
    const auto& [name, size] = d_->parameters[i];
    t.rows.push_back({{{name, 0, {}, Ink::none},
                       ratio_cell(moved.ratio(), l),
                       value_cell_of(moved.gradient, moved.gradient.norm),
                       value_cell_of(end.weight, end.weight.deviation),
                       Table::Cell::number(static_cast<double>(size), format_grouped(size)),
                       {tr(learning_text(l)), 0, {}, Ink::none},
                       value_cell_of(end.weight, end.weight.mean),
                       value_cell_of(moved.update, moved.update.norm),
                       share_of_zeros(moved.gradient),
                       watched_cell(moved.cosine),
                       watched_cell(d_->last_rank(i))},
                      row_of(name)});
  }
  return t;
}

Table DistributionsModel::list() const {
  constexpr size_t kListed = 5;  // what has room beside the charts
  Table t = parameters();
  t.wide = true;  // a name is read whole, and what does not fit is scrolled to
  t.columns.resize(kListed);
  for (Table::Row& r : t.rows) r.cells.resize(kListed);
  return t;
}

Table DistributionsModel::points(const std::string& parameter) const {
  Table t;
  t.wide = true;
  t.columns = {{tr("Step"), true}, {tr("log10 ratio"), true, tr(kRatioTip)}, {tr("Cosine"), true}, {tr("Rank"), true}};
  for (const std::string& what : {tr("Weights"), tr("Gradient"), tr("Update")}) {
    t.columns.push_back({what + " 5 %", true});
    t.columns.push_back({tr("{} median", what), true});
    t.columns.push_back({what + " 95 %", true});
    t.columns.push_back({tr("{} norm", what), true, tr("2-norm")});
    t.columns.push_back({tr("{} not finite", what), true, tr("how many of its numbers are NaN or infinite")});
  }
  if (!d_) return t;
  const auto& all = d_->parameters;
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == parameter; });
  if (at == all.end()) return t;
  for (const Distributions::Point& p : d_->points) {
    const ParameterSpreads& s = p.parameters[static_cast<size_t>(at - all.begin())];
    Table::Row row;
    if (p.step > 0) row.selection = Selection::step(p.step, "distributions");
    row.cells.push_back(Table::Cell::number(static_cast<double>(p.step), format_grouped(p.step)));
    row.cells.push_back(ratio_cell(s.ratio(), Learning::unknown));
    row.cells.push_back(watched_cell(s.cosine));
    row.cells.push_back(watched_cell(s.rank));
    for (const Side side : kSides) {
      const projects::Spread& of = side_of(s, side);
      for (const size_t q : {1u, 3u, 5u}) row.cells.push_back(value_cell_of(of, of.quantiles[q]));
      row.cells.push_back(value_cell_of(of, of.norm));
      row.cells.push_back(of.any() ? Table::Cell::number(static_cast<double>(of.bad), format_grouped(of.bad))
                                   : watched_cell(NAN));
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string DistributionsModel::headline() const {
  if (!d_ || d_->points.empty()) return {};
  std::string text = tr("{}: weights after step {}", d_->run, format_grouped(d_->points.back().step));
  if (const auto* last = d_->last_replayed())
    text += tr(", gradients and updates of step {}", format_grouped(last->step));
  const auto points = static_cast<int64_t>(d_->points.size());
  text += points == 1 ? tr(" · 1 point") : tr(" · {} points", format_grouped(points));
  if (d_->points.size() < d_->wanted) text += tr(" of {}", d_->wanted);
  const double scale = d_->noise().scale();
  if (std::isfinite(scale)) text += tr(" · gradient noise scale {} samples", format_value(scale));
  return text;
}

const Distributions::Point* DistributionsModel::point_at(int64_t step) const {
  if (!d_ || d_->points.empty()) return nullptr;
  return &*std::min_element(d_->points.begin(), d_->points.end(), [step](const auto& a, const auto& b) {
    return std::abs(a.step - step) < std::abs(b.step - step);
  });
}

const projects::Spread& DistributionsModel::spread(const Distributions::Point& p, Side side) const {
  return side_of(p.parameters[at_], side);
}

const Distributions::Point* DistributionsModel::read_point(Side side) const {
  const int64_t step = hover_ >= 0 ? hover_ : selected_;
  if (step >= 0) return point_at(step);
  for (auto p = d_->points.rbegin(); p != d_->points.rend(); ++p)
    if (spread(*p, side).any()) return &*p;
  return nullptr;
}

/// The first of its parts, the most telling before the others.
std::string DistributionsModel::read_out(Side side, int parts) const {
  const Distributions::Point* p = read_point(side);
  if (!p) return {};
  const projects::Spread& s = spread(*p, side);
  std::string text = tr("step {}", format_grouped(p->step));
  if (!s.any()) return text + (p->replayed ? tr(" · none") : tr(" · none: the run ends there"));
  if (s.bad) text += tr(" · {} of {} not finite", format_grouped(s.bad), format_grouped(s.count));
  if (s.bad == s.count) return text;
  const auto between = [&](size_t a, size_t b) {
    return tr("{} to {}", format_value(s.quantiles[a]), format_value(s.quantiles[b]));
  };
  const std::string said[] = {tr(" · median {}", format_value(s.quantiles[3])), " · 5–95 % " + between(1, 5),
                              tr(" · all {}", between(0, 6)), " · 25–75 % " + between(2, 4)};
  for (int i = 0; i < std::min(parts, 4); ++i) text += said[i];
  return text;
}

bool DistributionsModel::log(Side side) const {
  if (const auto& told = log_[static_cast<size_t>(side)]) return *told;
  if (!d_) return false;
  double within = 0, all = 0;
  for (const auto& p : d_->points) {
    const projects::Spread& s = spread(p, side);
    within = std::max(
        {within, std::fabs(static_cast<double>(s.quantiles[1])), std::fabs(static_cast<double>(s.quantiles[5]))});
    all =
        std::max({all, std::fabs(static_cast<double>(s.quantiles[0])), std::fabs(static_cast<double>(s.quantiles[6]))});
  }
  constexpr double kFarOutside = 20;
  return within > 0 && all > kFarOutside * within;
}

void DistributionsModel::set_log(Side side, bool on) {
  log_[static_cast<size_t>(side)] = on;
  changed();
}

void DistributionsModel::fit() {
  axis_.fit();
  changed();
}

bool DistributionsModel::pointer(const PointerEvent& e) {
  if (!d_) return false;
  const Hit hit = last_.hit_at(e.x, e.y);
  const auto under = [&] { return point_at(std::llround(axis_.to_value(e.x))); };
  if (const Scene::Target* at = last_.target_at(e.x, e.y); at && hit.kind == plot)
    axis_.x = at->box.x, axis_.w = at->box.w;
  switch (e.type) {
    case PointerEvent::Type::leave: {
      const bool was = hover_ >= 0;
      hover_ = -1;
      return was;
    }
    case PointerEvent::Type::press:
      if (e.button != Button::left) return false;
      if (hit.kind == log_toggle) {
        const Side side = kSides[static_cast<size_t>(hit.id)];
        set_log(side, !log(side));
        return true;
      }
      dragging_ = hit.kind == plot;
      moved_ = false;
      press_x_ = drag_x_ = e.x;
      return dragging_;
    case PointerEvent::Type::move: {
      const auto* p = hit.kind == plot ? under() : nullptr;
      const int64_t before = hover_;
      hover_ = p ? p->step : -1;
      if (!dragging_) return hover_ != before;
      drag_x_ = e.x;
      moved_ = moved_ || std::fabs(e.x - press_x_) > 5;
      return true;
    }
    case PointerEvent::Type::release: {
      if (!dragging_) return false;
      dragging_ = false;
      if (moved_)
        axis_.show(axis_.to_value(std::min(press_x_, e.x)), axis_.to_value(std::max(press_x_, e.x)));
      else if (const auto* p = under(); p && p->step > 0)
        select(Selection::step(p->step, "distributions"));
      return true;
    }
    case PointerEvent::Type::double_click:
      if (hit.kind == log_toggle) {  // two quick clicks on a button are two clicks
        PointerEvent again = e;
        again.type = PointerEvent::Type::press;
        return pointer(again);
      }
      fit();
      return true;
  }
  return false;
}

bool DistributionsModel::wheel(const WheelEvent& e) {
  const Scene::Target* at = last_.target_at(e.x, e.y);
  if (!at || at->hit.kind != plot) return false;
  axis_.x = at->box.x;
  axis_.w = at->box.w;
  return axis_.wheel(e);
}

bool DistributionsModel::choose_beside(int by) {
  const auto n = static_cast<int64_t>(d_->parameters.size());
  const int64_t to = std::clamp<int64_t>(static_cast<int64_t>(at_) + by, 0, n - 1);
  choose(d_->parameters[static_cast<size_t>(to)].name);
  select(selection_of(chosen_));
  return true;
}

/// From point to point: what is chosen there is the step.
bool DistributionsModel::go(const std::string& key) {
  std::vector<int64_t> steps;
  for (const auto& p : d_->points)
    if (p.step > 0) steps.push_back(p.step);
  if (steps.empty()) return false;
  const auto at = std::lower_bound(steps.begin(), steps.end(), selected_);
  int64_t to = steps.back();
  if (key == "Home") to = steps.front();
  if (key == "Left" && selected_ >= 0) to = at == steps.begin() ? steps.front() : *(at - 1);
  if (key == "Right" && selected_ >= 0) {
    const auto after = std::upper_bound(steps.begin(), steps.end(), selected_);
    to = after == steps.end() ? steps.back() : *after;
  }
  if (key == "Return" && selected_ >= 0) to = point_at(selected_)->step;
  select(Selection::step(to, "distributions"));
  return true;
}

bool DistributionsModel::key(const KeyEvent& e) {
  if (!d_ || d_->points.empty()) return false;
  if (axis_.key(e)) return true;
  if (e.mods.ctrl || e.mods.alt) return false;
  if (e.key == "Up" || e.key == "Down") return choose_beside(e.key == "Down" ? 1 : -1);
  if (e.key == "L") {
    const bool on = !log(Side::gradients);
    for (const Side side : kSides) set_log(side, on);
    return true;
  }
  if (e.key == "Left" || e.key == "Right" || e.key == "Home" || e.key == "End") return go(e.key);
  if (e.key == "Return" || e.key == "Enter") return go("Return");
  return false;
}

std::string DistributionsModel::summary() const {
  if (!d_ || d_->points.empty()) return tr("No distributions: nothing was read yet");
  std::string text = headline() + "; " + chosen_;
  for (const Side side : kSides) {
    const std::string said = read_out(side, 2);
    text += side == Side::weights     ? tr("; weights at {}", said)
            : side == Side::gradients ? tr("; gradient at {}", said)
                                      : tr("; update at {}", said);
  }
  const std::string said = tr(learning_text(learning_of(*d_, at_)));
  return said.empty() ? text : text + "; " + said;
}

}  // namespace tenon::views
