#include "views/watches/watches_table.h"

#include <fmt/format.h>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

std::string watch_cost_text(double share) { return share < 0 ? "–" : fmt::format("{:.2f} %", share * 100); }

Table watches_table(const std::vector<projects::WatchSummary>& all) {
  Table t;
  t.columns = {{tr("Watch")},
               {tr("Held at"), true, tr("steps at which the condition held")},
               {tr("First"), true, tr("the first of them")},
               {tr("Seen"), false, tr("what was seen there, and the bound")},
               {tr("Times"), true, tr("how often it came to hold")},
               {tr("Last"), true},
               {tr("Action")},
               {tr("Cost"), true, tr("share of the time of a step that looking takes")}};
  const auto step = [](int64_t n) { return Table::Cell::number(static_cast<double>(n), format_grouped(n)); };
  const auto words = [](std::string text, Ink mark = Ink::none) { return Table::Cell{std::move(text), 0, {}, mark}; };
  for (const projects::WatchSummary& s : all) {
    const std::string action = watch_action_name(s.action);
    Table::Row row;
    row.cells = {
        words(s.condition, s.held ? Ink::warning : Ink::secondary),
        step(s.held),
        s.held ? step(s.first.step) : words("–"),
        words(s.held ? tr("{} is {} (bound {})", s.first.at, format_value(s.first.value), format_value(s.first.bound))
                     : "–"),
        step(s.began),
        s.held ? step(s.last.step) : words("–"),
        words(s.armed ? action : tr("{} (off)", action)),
        Table::Cell::number(s.share, watch_cost_text(s.share))};
    if (s.held) row.selection = Selection::step(s.first.step, "watches");
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string watches_text(const std::vector<projects::WatchSummary>& all) {
  int64_t held = 0;
  double share = 0;
  for (const projects::WatchSummary& s : all) {
    held += s.held > 0;
    if (s.armed && s.share > 0) share += s.share;
  }
  const auto count = static_cast<int64_t>(all.size());
  std::string text = count == 1 ? held ? tr("1 watch, which saw something") : tr("1 watch, which saw nothing")
                     : held == 0
                         ? tr("{} watches, none of which saw anything", format_grouped(count))
                         : tr("{} watches, {} of which saw something", format_grouped(count), format_grouped(held));
  if (share > 0) text += tr("; looking takes {} of a step", watch_cost_text(share));
  return text;
}

std::string found_text(const projects::FoundStep& found, bool bisected) {
  if (!found.found)
    return bisected ? tr("It holds at no step that was looked at; without halving no step is left out.")
                    : tr("It holds at no step.");
  const std::string what = tr("step {}: {} is {} (bound {})", format_grouped(found.hit.step), found.hit.at,
                              format_value(found.hit.value), format_value(found.hit.bound));
  return bisected ? tr("{}, if it holds at every later one", what) : what;
}

std::string plan_text(const projects::FindPlan& plan) {
  if (plan.replayed == 0) return tr("What was recorded tells it: nothing is replayed.");
  const std::string steps = plan.replayed == 1 ? tr("1 step") : tr("{} steps", format_grouped(plan.replayed));
  if (plan.seconds < 0) return tr("Replays up to {}.", steps);
  return tr("Replays up to {}, about {}.", steps, format_seconds(plan.seconds));
}

}  // namespace tenon::views
