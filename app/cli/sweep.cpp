// tenon sweep: a search over keys of the recipe.
#include "projects/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/disk_watch.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/parallel.h"
#include "projects/finish.h"

namespace tenon::app {
namespace {

using projects::Project;
using projects::RunDriver;
using projects::RunStatus;
using projects::SweepInfo;
using projects::SweepPlan;
using projects::TrialInfo;

/// The options that are attributes of a plan: "--side-by-side" is side_by_side.
std::string option_of(const AttrDef& def) {
  std::string text = "--" + def.name;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::vector<Attr> given_attrs(const Args& args) {
  std::vector<Attr> out;
  for (const AttrDef& d : SweepPlan::attrs())
    if (const std::string option = option_of(d); args.has(option))
      out.push_back({d.name, parse_attr(d, args.text(option), option)});
  return out;
}

std::string text_of(const projects::Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += (text.empty() ? "" : "  ") + key + "=" + value;
  return text;
}

std::string run_of(const Project& project, const TrialInfo& t) { return t.run ? project.run(t.run).name : ""; }

nlohmann::json trial_json(const Project& project, const SweepInfo& sweep, const TrialInfo& t) {
  nlohmann::json settings = nlohmann::json::object();
  for (const auto& [key, value] : projects::settings_of(t)) settings[key] = value;
  nlohmann::json j = {{"sweep", sweep.name},
                      {"trial", t.number},
                      {"state", t.state},
                      {"settings", settings},
                      {"value", std::isnan(t.value) ? nlohmann::json() : nlohmann::json(t.value)}};
  if (t.run) {
    const projects::RunInfo run = project.run(t.run);
    j.update({{"run", run.name}, {"steps", run.steps}, {"seconds", run.seconds}});
  }
  if (!t.error.empty()) j["error"] = t.error;
  return j;
}

std::string state_of(const SweepInfo& sweep, const SweepPlan& plan) {
  if (projects::is_over(sweep, plan)) return "finished";
  return sweep.trials.empty() ? "not begun" : "unfinished";
}

nlohmann::json summary_json(const Project& project, const SweepInfo& sweep, const SweepPlan& plan) {
  nlohmann::json j = {{"sweep", sweep.name}, {"state", state_of(sweep, plan)}, {"created", sweep.created},
                      {"plan", sweep.plan},  {"trials", sweep.trials.size()},  {"best", nullptr}};
  if (const TrialInfo* best = projects::best_trial(sweep, plan)) j["best"] = trial_json(project, sweep, *best);
  const projects::Importance important = projects::importance_of(sweep, plan);
  if (!important.too_few.empty()) {
    j["importance"] = {{"too_few", important.too_few}};
    return j;
  }
  for (const auto& s : important.shares) j["importance"][s.key] = s.share;
  j["importance"]["together"] = important.together;
  return j;
}

std::string trials_table(const Project& project, const SweepInfo& sweep, const SweepPlan& plan) {
  std::vector<std::vector<std::string>> rows = {{"TRIAL", "RUN", "STATE", "STEPS"}};
  std::vector<bool> right = {true, false, false, true};
  for (const auto& k : plan.space.keys()) {
    rows[0].push_back(k.key);
    right.push_back(true);
  }
  rows[0].push_back(plan.metric);
  right.push_back(true);
  const TrialInfo* best = projects::best_trial(sweep, plan);
  for (const TrialInfo& t : sweep.trials) {
    rows.push_back(
        {std::to_string(t.number), run_of(project, t), t.state, t.run ? count_text(project.run(t.run).steps) : "-"});
    for (const auto& [key, value] : projects::settings_of(t)) rows.back().push_back(value);
    rows.back().push_back(std::isnan(t.value) ? "-" : value_text(t.value) + (&t == best ? " *" : "  "));
    if (t.state == "failed") rows.back().push_back(t.error.substr(0, t.error.find('\n')));
  }
  return table(rows, right);
}

std::string summary_text(const Project& project, const SweepInfo& sweep, const SweepPlan& plan) {
  std::string text;
  if (const TrialInfo* best = projects::best_trial(sweep, plan))
    text += fmt::format("best (*): trial {}, run {}, {}: {}\n", best->number, run_of(project, *best),
                        projects::metric_text(plan.metric, best->value), text_of(projects::settings_of(*best)));
  const projects::Importance important = projects::importance_of(sweep, plan);
  if (!important.too_few.empty()) return text + "importance of the keys: " + important.too_few + "\n";
  text += "importance of the keys, as shares of the variance:\n";
  std::vector<std::vector<std::string>> rows;
  auto shares = important.shares;
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  for (const auto& s : shares) rows.push_back({"  " + s.key, fmt::format("{:.0f} %", 100 * s.share)});
  rows.push_back({"  several together", fmt::format("{:.0f} %", 100 * important.together)});
  return text + table(rows, {false, true});
}

int show_sweep(const Args& args) {
  const auto project = open_to_read(args.word(0));
  const SweepInfo sweep = project->sweep(args.text("--show"));
  const SweepPlan plan = projects::plan_of(sweep);
  if (args.json()) {
    for (const TrialInfo& t : sweep.trials) print_json(trial_json(*project, sweep, t));
    print_json(summary_json(*project, sweep, plan));
    return 0;
  }
  print(fmt::format("sweep {}: {} of {} trials, {}, {} of {}\n", sweep.name, sweep.trials.size(), plan.runs,
                    projects::name(plan.method), plan.direction > 0 ? "the highest" : "the lowest", plan.metric));
  print(trials_table(*project, sweep, plan) + summary_text(*project, sweep, plan));
  if (!projects::is_over(sweep, plan))
    print(fmt::format("go on with it: tenon sweep {} --resume {}\n", args.word(0), sweep.name));
  return 0;
}

/// Also where it is deleted.
int64_t find_sweep(const Project& project, const std::string& name) {
  for (const SweepInfo& s : project.deleted_sweeps())
    if (s.name == name) return s.id;
  return project.sweep(name).id;
}

/// --rename, --delete, --undelete.
int edit_sweep(const Args& args) {
  const auto project = Project::open(args.word(0));
  auto done = [&](int64_t sweep, const std::string& said) {
    const SweepInfo s = project->sweep(sweep);
    if (!args.json()) {
      print(fmt::format("sweep {} {}\n", s.name, said));
      return;
    }
    nlohmann::json j = summary_json(*project, s, projects::plan_of(s));
    j["deleted"] = args.has("--delete");
    print_json(j);
  };
  if (args.has("--rename")) {
    if (!args.has("--name"))
      throw Error::usage("--rename says which sweep, --name says what it is to be called",
                         fmt::format("tenon sweep {} --rename {} --name NAME", args.word(0), args.text("--rename")));
    const int64_t id = project->sweep(args.text("--rename")).id;
    project->rename_sweep(id, args.text("--name"));
    done(id, "is what " + args.text("--rename") + " is called now");
  } else if (args.has("--delete")) {
    const SweepInfo s = project->sweep(args.text("--delete"));
    project->delete_sweep(s.id);
    done(s.id, fmt::format("was deleted; its runs stay, and --undelete {} brings it back", s.name));
  } else {
    const int64_t id = find_sweep(*project, args.text("--undelete"));
    project->undelete_sweep(id);
    done(id, "is back");
  }
  return 0;
}

int list(const Args& args) {
  const auto project = open_to_read(args.word(0));
  const bool deleted = args.has("--deleted");
  std::vector<std::vector<std::string>> rows = {{"SWEEP", "STATE", "TRIALS", "METHOD", "METRIC", "BEST", "KEYS"}};
  for (const SweepInfo& s : deleted ? project->deleted_sweeps() : project->sweeps()) {
    const SweepPlan plan = projects::plan_of(s);
    if (args.json()) print_json(summary_json(*project, s, plan));
    std::string keys;
    for (const auto& [key, text] : plan.space.texts()) keys += (keys.empty() ? "" : "  ") + key + "=" + text;
    const TrialInfo* best = projects::best_trial(s, plan);
    rows.push_back({s.name, state_of(s, plan), fmt::format("{}/{}", s.trials.size(), plan.runs),
                    projects::name(plan.method), plan.metric, best ? value_text(best->value) : "-", keys});
  }
  if (args.json()) return 0;
  if (rows.size() == 1 && deleted)
    print(fmt::format("no sweep of {} is deleted\n", args.word(0)));
  else if (rows.size() == 1)
    print(fmt::format("{} has no sweeps yet. Start one: tenon sweep {} --key optimizer.lr=log:1e-4..1e-1\n",
                      args.word(0), args.word(0)));
  else
    print(table(rows, {false, false, true, false, false, true, false}));
  return 0;
}

/// Trains the trials of a sweep to its end, or until it is interrupted.
class Trainer {
 public:
  Trainer(const Args& args, std::shared_ptr<Project> project, int64_t sweep)
      : json_(args.json()),
        project_(std::move(project)),
        sweep_(sweep),
        plan_(projects::plan_of(project_->sweep(sweep))) {}

  void work() {
    while (true) {
      while (!interrupted() && begin_another()) {
      }
      if (at_work_.empty()) return;
      if (interrupted() && !std::exchange(stopping_, true))
        for (auto& [number, t] : at_work_) t.driver->stop();
      look();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

 private:
  struct AtWork {
    std::unique_ptr<RunDriver> driver;
    projects::Settings settings;
    DiskWatch disk;
  };

  bool begin_another() {
    std::vector<RunStatus> statuses;
    std::set<int64_t> numbers;
    for (const auto& [number, t] : at_work_) {
      statuses.push_back(t.driver->status());
      numbers.insert(number);
    }
    if (!projects::room_for_another(plan_, statuses)) return false;
    const auto next = projects::next_trial(*project_, sweep_, numbers);
    if (!next) return false;
    if (auto driver = projects::start_trial(project_, *next))
      at_work_[next->of.number] = {std::move(driver), next->settings, {}};
    else
      tell(next->of.number);
    return true;
  }

  void look() {
    for (auto at = at_work_.begin(); at != at_work_.end();) {
      const RunStatus s = at->second.driver->status();
      if (const nlohmann::json news = at->second.disk.look(s, bar_); json_ && !stopping_ && !news.is_null())
        print_json(news);
      if (projects::is_active(s.state)) {
        bar_.show(
            at->first, plan_.runs,
            fmt::format("step {}/{}  {}", count_text(s.step), count_text(s.total_steps), text_of(at->second.settings)));
        ++at;
        continue;
      }
      const int64_t number = at->first;
      at = at_work_.erase(at);
      if (s.state == RunStatus::State::stopped || (stopping_ && s.state == RunStatus::State::failed)) continue;
      settle();
      tell(number);
    }
  }

  /// The trial's result is in the file before it is told.
  void settle() {
    std::set<int64_t> numbers;
    for (const auto& [number, t] : at_work_) numbers.insert(number);
    projects::settle_trials(*project_, sweep_, numbers);
  }

  void tell(int64_t number) {
    bar_.clear();
    const SweepInfo sweep = project_->sweep(sweep_);
    const TrialInfo& t = sweep.trials.at(static_cast<size_t>(number) - 1);
    if (json_) return print_json(trial_json(*project_, sweep, t));
    std::string line =
        fmt::format("trial {}/{}  {}  {}", number, plan_.runs, text_of(projects::settings_of(t)), t.state);
    if (!std::isnan(t.value)) line += "  " + projects::metric_text(plan_.metric, t.value);
    if (const TrialInfo* best = projects::best_trial(sweep, plan_); best && best->number == number)
      line += "  the best";
    if (t.state == "failed") line += ": " + t.error.substr(0, t.error.find('\n'));
    print(line + "\n");
  }

  bool json_, stopping_ = false;
  std::shared_ptr<Project> project_;
  int64_t sweep_;
  SweepPlan plan_;
  Bar bar_{"trial"};
  std::map<int64_t, AtWork> at_work_;
};

/// What is done with a sweep that there is; --name is also the new one of --rename.
constexpr const char* kOfOne[] = {"--resume", "--show", "--list", "--rename", "--delete", "--undelete"};

/// Options that only a new sweep takes.
void check_options(const Args& args) {
  std::vector<std::string> options = {"--key", "--name", "--set"};
  for (const AttrDef& d : SweepPlan::attrs()) options.push_back(option_of(d));
  std::string asked;
  for (const char* other : kOfOne) {
    if (!args.has(other)) continue;
    if (!asked.empty()) throw Error::usage(fmt::format("{} and {} cannot go together", asked, other));
    asked = other;
    for (const std::string& o : options)
      if (args.has(o) && !(o == "--name" && asked == "--rename"))
        throw Error::usage(fmt::format("a sweep keeps what it was begun with: {} cannot go with {}", o, other),
                           "Begin a new sweep to change it.");
  }
  if (args.has("--deleted") && asked != "--list") throw Error::usage("--deleted goes with --list");
}

int sweep(const Args& args) {
  check_options(args);
  if (args.has("--list")) return list(args);
  if (args.has("--show")) return show_sweep(args);
  if (args.has("--rename") || args.has("--delete") || args.has("--undelete")) return edit_sweep(args);
  const auto project = Project::open(args.word(0));
  if (project->read_only())
    throw Error(fmt::format("{} is read-only: the trials could not be kept", project->path()), "Work on a copy.");
  use_threads(args);
  const SweepInfo begun = args.has("--resume")
                              ? project->sweep(args.text("--resume"))
                              : projects::begin_sweep(*project, args.text("--name"), pairs_of(args, "--key"),
                                                      given_attrs(args), pairs_of(args, "--set"));
  const SweepPlan plan = projects::plan_of(begun);
  if (!args.json())
    print(fmt::format("sweep {}: {} trials, {}{}\n", begun.name, plan.runs, projects::name(plan.method),
                      begun.trials.empty() ? "" : fmt::format(", {} begun before", begun.trials.size())));
  catch_interrupts();
  Trainer(args, project, begun.id).work();
  const SweepInfo done = project->sweep(begun.id);
  if (args.json()) {
    print_json(summary_json(*project, done, plan));
    return 0;
  }
  print(trials_table(*project, done, plan) + summary_text(*project, done, plan));
  if (!projects::is_over(done, plan))
    print(fmt::format("stopped; go on with: tenon sweep {} --resume {}\n", args.word(0), done.name));
  return 0;
}

std::vector<Command> make_sweep() {
  std::vector<Option> options = {
      {"--key", "KEY=VALUES", "a key to search over: log:1e-4..1e-1, lin:0..0.5, int:1..8, adam,sgd; may be repeated"},
      {"--name", "NAME", "name of the new sweep, or the new name of one (--rename)"}};
  for (const AttrDef& d : SweepPlan::attrs()) {
    std::string value = std::holds_alternative<int64_t>(d.fallback) ? "N" : "";
    for (const std::string& c : d.choices) value += (value.empty() ? "" : "|") + c;
    if (d.name == "metric") value = "NAME";
    options.push_back({option_of(d), value, d.help + " (" + attr_text(d.fallback) + ")"});
  }
  options.push_back({"--set", "KEY=VALUE", "a key of the recipe, for every trial; may be repeated"});
  options.push_back({"--resume", "SWEEP", "go on with a sweep that was stopped or killed"});
  options.push_back({"--show", "SWEEP", "its trials, the best one, and how much each key matters"});
  options.push_back({"--list", "", "the sweeps of the project"});
  options.push_back({"--deleted", "", "with --list: those that were deleted"});
  options.push_back({"--rename", "SWEEP", "gives a sweep the name after --name"});
  options.push_back({"--delete", "SWEEP", "takes a sweep out of every list; its runs stay"});
  options.push_back({"--undelete", "SWEEP", "brings a deleted sweep back"});
  options.push_back(kThreads);
  options.push_back(kJson);
  return {{"sweep", "PROJECT", 1, 1, options, "searches over keys of the recipe: trains a run a trial", sweep}};
}

const bool registered_sweep = register_command_family("sweep", make_sweep);

}  // namespace
}  // namespace tenon::app
