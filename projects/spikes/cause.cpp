#include "projects/spikes/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace tenon::projects {
namespace {

using tracing::count_text;
using tracing::Unit;

Registry<CauseDef>& cause_registry() {
  static auto& all =
      *new Registry<CauseDef>("cause", [](const CauseDef& c) { return fmt::format("{:03}", c.order) + c.name; });
  return all;
}

std::string loss_text(double v) { return fmt::format("{:.4g}", v); }

/// "1 replay", "9 replays"
std::string counted(int64_t n, const char* one) {
  return fmt::format("{} {}{}", count_text(n), one, n == 1 ? "" : "s");
}

/// Replays of the steps as they were: from the last checkpoint on.
ReplayCost cost_of_looking(Inquiry& q) { return {0, q.last() - q.kept_before(q.first() - 1)}; }

/// As a shell reads it as one word.
std::string quoted(const std::string& word) {
  if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/@:") == word.npos)
    return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// What the judged losses of a replay are, beside the spike: "the loss of step 311 is 0.42 instead of 18.3".
std::string losses_text(const Tried& t, const Spike& spike) {
  const double at = t.losses.empty() ? std::nan("") : t.losses.front();
  if (!std::isnan(at))
    return fmt::format("the loss of step {} is {} instead of {}", count_text(spike.step), loss_text(at),
                       loss_text(spike.loss));
  return fmt::format("the loss stays below {} in the steps after {}, where it was {}",
                     loss_text(std::nextafter(t.highest, 1e300) + 5e-5 * std::fabs(t.highest)), count_text(spike.step),
                     loss_text(spike.loss));
}

}  // namespace

const Registry<CauseDef>& causes() { return cause_registry(); }
bool register_cause(CauseDef def, Place place) { return cause_registry().add(std::move(def), place); }

std::string CausePlan::text() const {
  return fmt::format("up to {}, {}{}", counted(most.replays, "replay"), counted(most.steps, "step"),
                     seconds <= 0  ? ""
                     : seconds < 1 ? ", less than a second"
                                   : fmt::format(", about {:.0f} s", seconds));
}

CausePlan plan_causes(Inquiry& q, int64_t budget) {
  CausePlan plan;
  plan.most = cost_of_looking(q);
  for (const CauseDef& def : causes()) {
    CausePlan::Part part{def.name, def.title, def.ruled_out ? def.ruled_out(q) : std::string(), {}};
    if (part.ruled_out.empty()) {
      part.most = def.most(q);
      if (budget > 0 && plan.most.steps + part.most.steps > budget)
        part.ruled_out = fmt::format("it may take {}, and the budget leaves {}", counted(part.most.steps, "step"),
                                     std::max<int64_t>(0, budget - plan.most.steps));
    }
    if (part.ruled_out.empty()) {
      plan.most.replays += part.most.replays;
      plan.most.steps += part.most.steps;
    }
    plan.parts.push_back(std::move(part));
  }
  plan.seconds = static_cast<double>(plan.most.steps) * q.seconds_a_step();
  return plan;
}

SpikeReport find_cause(Inquiry& q, const CausePlan& plan, bool all) {
  SpikeReport report;
  report.run = q.run().name;
  report.spike = q.spike();
  report.plan = plan;
  q.set_total(plan.most.steps);
  for (const CausePlan::Part& part : plan.parts) {
    if (!part.ruled_out.empty() || (report.culprit && !all)) continue;
    report.asked.push_back(part.name);
    const std::optional<Culprit> found = causes().at(part.name).ask(q);
    if (!found || report.culprit) continue;
    report.cause = part.name;
    report.culprit = found;
  }
  report.replays = static_cast<int64_t>(q.tried().size());
  report.steps = q.steps();
  q.rest();
  return report;
}

std::string SpikeReport::sentence() const {
  const std::string cost = counted(replays, "replay") + ", " + counted(steps, "step");
  if (culprit) return fmt::format("{} {}; {}", culprit->tried->trial.said, losses_text(*culprit->tried, spike), cost);
  return fmt::format(
      "the loss of step {} is {}, where {} is usual, and stays so without each of the {} causes that were "
      "asked; {}",
      count_text(spike.step), loss_text(spike.loss), loss_text(spike.usual), asked.size(), cost);
}

tracing::Finding spike_finding(const SpikeReport& r, const Inquiry& q) {
  tracing::Finding f;
  f.sentence = r.sentence();
  if (!f.sentence.empty() && f.sentence[0] >= 'a' && f.sentence[0] <= 'z') f.sentence[0] -= 'a' - 'A';
  f.ok = r.culprit.has_value();
  f.facts = {{"step", "STEP", Unit::count, r.spike.step},
             {"loss", "LOSS", Unit::number, r.spike.loss},
             {"usual", "USUAL LOSS", Unit::number, r.spike.usual},
             {"replays", "REPLAYS", Unit::count, r.replays},
             {"replayed_steps", "STEPS REPLAYED", Unit::count, r.steps}};
  if (r.culprit) f.facts.insert(f.facts.begin(), {"culprit", "CAUSE", Unit::text, r.culprit->what});
  tracing::Table replays{"trials",
                         {{"change", "CHANGE", Unit::text},
                          {"from", "AFTER STEP", Unit::count},
                          {"loss", "LOSS OF THE STEP", Unit::number},
                          {"highest", "HIGHEST UP TO " + std::to_string(q.last()), Unit::number},
                          {"spike", "SPIKE", Unit::text}},
                         {}};
  for (const auto& t : q.tried()) {
    const double at = t->losses.empty() ? std::nan("") : t->losses.front();
    tracing::Cell loss = at;
    if (std::isnan(at)) loss = std::string("left out");
    replays.rows.push_back(
        {t->trial.said, t->trial.from, std::move(loss), t->highest, std::string(t->gone ? "gone" : "still there")});
  }
  tracing::Table asked{"causes", {{"cause", "CAUSE", Unit::text}, {"answer", "ANSWER", Unit::text}}, {}};
  for (const CausePlan::Part& p : r.plan.parts) {
    const bool was = std::find(r.asked.begin(), r.asked.end(), p.name) != r.asked.end();
    asked.rows.push_back({p.title, p.name == r.cause      ? "explains it"
                                   : !p.ruled_out.empty() ? p.ruled_out
                                   : was                  ? "does not explain it alone"
                                                          : "not asked: the cause was found before"});
  }
  f.tables = {std::move(replays), std::move(asked)};
  return f;
}

std::string branch_command(const std::string& project, const std::string& run, const Counterfactual& trial) {
  std::string text =
      fmt::format("tenon train {} --from {}", quoted(project), quoted(fmt::format("{}@{}", run, trial.from)));
  for (const auto& [key, value] : trial.set) text += " --set " + quoted(key + "=" + value);
  return text;
}

}  // namespace tenon::projects
