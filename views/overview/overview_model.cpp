// State and intents; the picture is in overview_draw.cpp.
#include "views/overview/overview_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tracing/analyses/whole_overview.h"
#include "tracing/record/step_record.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using tracing::Overview;
using tracing::PartTimes;
using tracing::StepPart;
using tracing::StepTimes;

namespace {
constexpr float kNarrowestBar = 7;

PartTimes sum_of(const Overview& o, size_t first, size_t last) {
  PartTimes sum;
  for (size_t i = first; i < last; ++i) sum += o.steps[i].parts;
  return sum;
}
int64_t length_of(const StepTimes& s) { return s.end - s.begin; }
}  // namespace

std::shared_ptr<const OverviewPage> with_ranks(const OverviewPage& page, const tracing::Finding& ranks) {
  OverviewPage both = page;
  FindingPage of_all = make_page(ranks, page.subject);
  both.page.sentence += " " + of_all.sentence;
  both.page.tables.insert(both.page.tables.begin(), of_all.tables.begin(), of_all.tables.end());
  return std::make_shared<const OverviewPage>(std::move(both));
}

const Table* OverviewPage::table(const std::string& title) const {
  for (const FindingPage::Part& p : page.tables)
    if (p.title == title) return &p.table;
  return nullptr;
}

namespace {
std::shared_ptr<const OverviewPage> page_of(std::shared_ptr<const Overview> overview, const tracing::Finding& finding,
                                            const Subject& subject) {
  OverviewPage p;
  p.subject = subject;
  p.page = make_page(finding, subject);
  p.overview = std::move(overview);
  if (!p.overview) return std::make_shared<const OverviewPage>(std::move(p));
  p.cause = selection_of(p.overview->cause, subject);
  // The parts' rows have the colours of the bars.
  for (FindingPage::Part& part : p.page.tables)
    for (size_t r = 0; part.title == "Parts" && r < part.table.rows.size(); ++r)
      part.table.rows[r].cells[0].mark = ink_of(tracing::step_parts(p.overview->gpu)[r]);
  return std::make_shared<const OverviewPage>(std::move(p));
}
}  // namespace

std::shared_ptr<const OverviewPage> read_overview(std::shared_ptr<const traces::Trace> trace, const Subject& subject) {
  const auto whole = tracing::whole_overview(trace);
  const Overview* overview = whole->overview ? &*whole->overview : nullptr;
  return page_of(overview ? std::shared_ptr<const Overview>(whole, overview) : nullptr, whole->finding, subject);
}

std::shared_ptr<const OverviewPage> read_overview(std::shared_ptr<const traces::Trace> trace, const Subject& subject,
                                                  size_t top) {
  const tracing::TraceRequest request{.traces = {std::move(trace)}, .top = top};
  auto overview = tracing::overview_of(request);
  if (!overview) return page_of(nullptr, tracing::nothing("The trace holds no events."), subject);
  const tracing::Finding finding = tracing::overview_finding(*overview, request);
  return page_of(std::make_shared<const Overview>(std::move(*overview)), finding, subject);
}

Ink ink_of(StepPart part) {
  switch (part) {
    case StepPart::kernel:
      return Ink::series2;
    case StepPart::memcpy:
      return Ink::series5;
    case StepPart::memset:
      return Ink::series3;
    case StepPart::communication:
      return Ink::phase_communication;
    case StepPart::data:
      return Ink::phase_data;
    case StepPart::runtime:
      return Ink::series7;
    case StepPart::ops:
      return Ink::series0;
    case StepPart::optimizer:
      return Ink::phase_optimizer;
    case StepPart::backward:
      return Ink::phase_backward;
    case StepPart::forward:
      return Ink::phase_forward;
    case StepPart::other:
      return Ink::phase_other;
  }
  return Ink::phase_other;
}

void OverviewModel::set_page(std::shared_ptr<const OverviewPage> page) {
  if (page == page_) return;
  page_ = std::move(page);
  at_.reset();
  bars_.clear();
  axis_.min_span = std::min<double>(4, static_cast<double>(std::max<size_t>(steps(), 1)));
  axis_.set_full(0, static_cast<double>(std::max<size_t>(steps(), 1)));
  axis_.fit();
  changed();
}

void OverviewModel::set_selection(const Selection& s) {
  selection_ = s;
  if (s.source != "overview") at_.reset();
  changed();
}

/// As many steps to a bar as it takes to give each room; bars begin at multiples of that number, so that they stay the
/// same while the picture moves.
void OverviewModel::make_bars(float width) {
  bars_.clear();
  const Overview& o = *page_->overview;
  const auto first = static_cast<size_t>(std::clamp(std::floor(axis_.lo), 0.0, static_cast<double>(steps())));
  const auto last = static_cast<size_t>(std::clamp(std::ceil(axis_.hi), 0.0, static_cast<double>(steps())));
  const auto most = static_cast<size_t>(std::max(1.f, width / kNarrowestBar));
  const size_t seen = last - std::min(first, last), each = std::max<size_t>(1, (seen + most - 1) / most);
  for (size_t b = first / each * each; b < last; b += each) {
    Bar made{b, std::min(b + each, steps())};
    for (size_t i = made.first; i < made.last; ++i) {
      const int64_t length = length_of(o.steps[i]);
      made.mean += static_cast<double>(length);
      if (i == made.first || length > made.longest) made.longest = length, made.longest_step = i;
    }
    made.mean /= static_cast<double>(made.last - made.first);
    bars_.push_back(made);
  }
}

Selection OverviewModel::selection_of_bar(const Bar& b) const {
  const Overview& o = *page_->overview;
  return selection_of(tracing::Sight{-1, o.steps[b.first].begin, o.steps[b.last - 1].end, {}}, page_->subject);
}

std::string OverviewModel::step_text(size_t step) const {
  if (page_->subject.document == Document::kProject) return tr("the step");
  const int64_t number = page_->overview->steps[step].step.number;
  return number < 0 ? tr("the whole trace") : tr("step {}", number);
}

std::string OverviewModel::told_of(const Bar& b) const {
  const Overview& o = *page_->overview;
  const PartTimes sum = sum_of(o, b.first, b.last);
  const auto n = static_cast<double>(b.last - b.first);
  std::string text = step_text(b.first) + ": " + tracing::nanoseconds_text(b.mean);
  if (n > 1)
    text = tr("steps {} to {}: {} on average, the longest is {} with {}", o.steps[b.first].step.number,
              o.steps[b.last - 1].step.number, tracing::nanoseconds_text(b.mean), step_text(b.longest_step),
              tracing::nanoseconds_text(static_cast<double>(b.longest)));
  for (const StepPart p : tracing::step_parts(o.gpu))
    if (sum[p] > 0)
      text += fmt::format("\n{}: {}, {}", name_of(p).head, tracing::nanoseconds_text(static_cast<double>(sum[p]) / n),
                          tracing::share_text(tracing::share(sum[p], sum.length())));
  return text;
}

/// A step is marked where the selection is it, or lies in it.
bool OverviewModel::marked(const Bar& b) const {
  if (!page_ || selection_.document != page_->subject.document || selection_.kind != Selection::Kind::range)
    return false;
  const Selection own = selection_of_bar(b);
  return selection_.from < own.to && selection_.to > own.from;
}

void OverviewModel::choose(size_t bar) {
  const Bar& b = bars_[bar];
  at_ = b.first;
  if (const Selection s = selection_of_bar(b)) select(s);
  changed();
}

/// The step with most of it.
void OverviewModel::choose_part(StepPart p) {
  const Overview& o = *page_->overview;
  const auto most = std::max_element(o.steps.begin(), o.steps.end(),
                                     [p](const StepTimes& a, const StepTimes& b) { return a.parts[p] < b.parts[p]; });
  if (most->parts[p] == 0) return;
  at_ = static_cast<size_t>(most - o.steps.begin());
  axis_.reveal(static_cast<double>(*at_), static_cast<double>(*at_ + 1));
  select(selection_of(tracing::Sight{-1, most->begin, most->end, {}}, page_->subject));
  changed();
}

bool OverviewModel::pointer(const PointerEvent& e) {
  const bool twice = e.type == PointerEvent::Type::double_click;
  if ((e.type != PointerEvent::Type::press && !twice) || e.button != Button::left || !steps()) return false;
  const Hit hit = last_.hit_at(e.x, e.y);
  if (hit.kind == part && !twice) {
    choose_part(static_cast<StepPart>(hit.id));
    return true;
  }
  for (size_t i = 0; hit.kind == bar && i < bars_.size(); ++i) {
    if (static_cast<int64_t>(bars_[i].first) != hit.id) continue;
    choose(i);
    if (twice && on_open) on_open();
    return true;
  }
  if (!twice || hit) return false;
  axis_.fit();
  return true;
}

bool OverviewModel::wheel(const WheelEvent& e) { return steps() > 4 && axis_.wheel(e); }

bool OverviewModel::go(int direction, bool to_end) {
  // What is chosen may lie outside of the picture, and the bars of the one that shows it are made as it is drawn.
  const size_t each = bars_[0].last - bars_[0].first, last = steps() - 1;
  size_t to = direction > 0 ? 0 : last;
  if (to_end)
    to = direction > 0 ? last : 0;
  else if (at_)
    to = direction > 0 ? std::min(*at_ / each * each + each, last) : *at_ < each ? 0 : *at_ - each;
  to = to / each * each;
  axis_.reveal(static_cast<double>(to), static_cast<double>(std::min(to + each, steps())));
  make_bars(axis_.w);
  for (size_t i = 0; i < bars_.size(); ++i)
    if (bars_[i].first <= to && to < bars_[i].last) {
      choose(i);
      return true;
    }
  return false;
}

bool OverviewModel::key(const KeyEvent& e) {
  if (!steps() || bars_.empty() || e.mods.ctrl || e.mods.alt) return false;
  if (e.key == "Left" || e.key == "Right") return go(e.key == "Right" ? 1 : -1, false);
  if (e.key == "Home" || e.key == "End") return go(e.key == "End" ? 1 : -1, true);
  if ((e.key == "Return" || e.key == "Enter") && at_ && on_open) {
    on_open();
    return true;
  }
  if (!axis_.key(e)) return false;
  changed();
  return true;
}

std::string OverviewModel::summary() const {
  if (!steps()) return tr("No trace is shown");
  const Overview& o = *page_->overview;
  std::string text = tr("{} steps", format_grouped(static_cast<int64_t>(steps())));
  for (const StepPart p : tracing::step_parts(o.gpu))
    if (o.sum[p] > 0) text += fmt::format(", {} {}", name_of(p).head, tracing::share_text(o.share_of(p)));
  if (at_)
    for (const Bar& b : bars_)
      if (b.first <= *at_ && *at_ < b.last) text += ". " + told_of(b);
  return text;
}

}  // namespace tenon::views
