// tenon train, eval.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/disk_watch.h"
#include "app/cli/output.h"
#include "app/cli/remarks.h"
#include "app/cli/results.h"
#include "app/cli/surgery.h"
#include "core/error.h"
#include "engine/train/broadcasts.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "engine/train/watch.h"
#include "projects/finish.h"
#include "projects/results.h"
#include "projects/surgery.h"

namespace tenon::app {
namespace {

using projects::RunDriver;
using projects::RunStatus;
using State = RunStatus::State;

/// Turns metric points, which come one quantity at a time, into one record a step.
class Records {
 public:
  explicit Records(bool json) : json_(json) {}
  void take(RunDriver& driver, bool all) {
    driver.drain(drained_);
    for (const projects::MetricRow& row : drained_) open_[row.point.step][row.name] = row.point.value;
    // The newest step may still get its evaluation.
    while (!open_.empty() && (all || open_.size() > 1)) {
      give(driver.status(), open_.begin()->first, open_.begin()->second);
      open_.erase(open_.begin());
    }
  }
  /// Lines for people, at most once each.
  std::vector<std::string> lines() { return std::exchange(lines_, {}); }
  /// The last evaluation in words: "test loss 0.3, test accuracy 91.20 %"; empty where there was none.
  std::string judged;

 private:
  void give(const RunStatus& s, int64_t step, const std::map<std::string, double>& values) {
    const int64_t epoch = s.steps_per_epoch > 0 ? (step - 1) / s.steps_per_epoch : 0;
    if (values.contains("test_loss")) {
      judged = fmt::format("test loss {:.4f}", values.at("test_loss"));
      for (const auto& [name, value] : values)
        if (name.starts_with("test_") && name != "test_loss") judged += ", " + projects::metric_text(name, value);
    }
    if (json_) {
      nlohmann::json j = {{"step", step}, {"epoch", epoch}};
      for (const auto& [name, value] : values) j[name] = value;
      print_json(j);
    } else if (values.contains("test_loss")) {
      lines_.push_back(
          fmt::format("epoch {}/{}: step {}, {}", std::min(epoch + 1, s.epochs), s.epochs, count_text(step), judged));
    }
  }

  bool json_;
  std::vector<projects::MetricRow> drained_;
  std::map<int64_t, std::map<std::string, double>> open_;
  std::vector<std::string> lines_;
};

std::string tail(const RunStatus& s) {
  const double done = static_cast<double>(s.step);
  std::string text = fmt::format("epoch {}/{}  loss {:.4f}", std::min(s.epoch + 1, s.epochs), s.epochs, s.loss);
  if (s.samples_per_second > 0) text += fmt::format("  {}/s", count_text(static_cast<int64_t>(s.samples_per_second)));
  if (s.step > 20 && s.seconds > 1)
    text += fmt::format("  {} left", duration_text(s.seconds / done * static_cast<double>(s.total_steps - s.step)));
  return text;
}

/// One step of the recipe beside the run, with an eye on sizes that were broadcast to what is likely not meant.
void warn_of_broadcasts(const projects::Project& project, const projects::TrainOptions& options, bool json) {
  Recipe recipe = Recipe::from_json(project.recipe());
  for (const auto& [key, value] : options.set) recipe.set(key, value);
  const auto warnings = broadcasts_of_a_step(project.model(), recipe);
  for (const BroadcastWarning& w : warnings) {
    if (json)
      print_json({{"warning", to_string(w)}});
    else
      print("broadcast: " + to_string(w) + "\n");
  }
  if (warnings.empty() && !json) print(fmt::format("broadcast: {}\n", kNoBroadcasts));
}

/// A branch: of which step, and with which model.
void read_from(const projects::Project& project, const Args& args, projects::TrainOptions& options) {
  if (!args.has("--from")) {
    for (const char* option : {"--layer", "--insert", "--remove", "--project-model"})
      if (args.has(option))
        throw Error::usage(fmt::format("{} is for a branch", option), "Name the run and the step: --from RUN@STEP");
    return;
  }
  const RunStep of = pick_run_step(project, args.text("--from"));
  options.from = of.run.name;
  options.from_step = of.step;
  options.model = asked_model(project, args, of);
}

/// --watch, each as one more of the watches that the run would have.
void add_watches(projects::TrainOptions& options, const projects::Project& project, const Args& args) {
  const std::vector<std::string> texts = args.all("--watch");
  if (texts.empty()) return;
  Recipe recipe = Recipe::from_json(project.recipe());
  if (!options.resume.empty()) {
    const projects::RunInfo run = project.run(options.resume);
    recipe = Recipe::from_json(run.recipe_after(run.steps));
  } else if (!options.from.empty()) {
    recipe = Recipe::from_json(project.run(options.from).recipe_after(options.from_step));
  }
  for (const auto& [key, value] : options.set) recipe.set(key, value);
  for (const std::string& text : texts) recipe = with_watch(recipe, text);
  options.set.emplace_back("watches", recipe.text("watches"));
}

nlohmann::json hit_json(const WatchHit& h) {
  return {{"watch", h.watch},
          {"step", h.step},
          {"at", h.at},
          {"value", json_number(h.value)},
          {"bound", json_number(h.bound)},
          {"begins", h.begins},
          {"action", watch_action_name(h.action)}};
}

int train(const Args& args) {
  const auto project = projects::Project::open(args.word(0));
  projects::TrainOptions options;
  options.run_name = args.text("--run");
  options.resume = args.text("--resume");
  options.epochs = args.integer("--epochs", -1, 1);
  options.max_steps = args.integer("--max-steps", -1, 1);
  options.threads = static_cast<int>(args.integer("--threads", 0, 1));
  options.set = pairs_of(args, "--set");
  if (args.has("--device")) options.set.emplace_back("device", args.text("--device"));
  read_from(*project, args, options);
  options.without = args.text("--without-samples");
  options.edits = args.all("--edit");
  add_watches(options, *project, args);
  if (args.has("--warn-broadcast")) warn_of_broadcasts(*project, options, args.json());
  catch_interrupts();
  Bar replay("replaying");
  options.replaying = replay.progress();
  const auto driver = RunDriver::start(project, options);
  replay.clear();
  RunStatus s = driver->status();
  const bool json = args.json();
  // A full disk behind standard output ends its lines, not the training; it is told when the run has ended.
  std::optional<Error> deaf;
  auto say = [&](const auto& lines) {
    if (deaf) return;
    try {
      lines();
    } catch (const Error& e) {
      if (e.kind() != Error::Kind::no_space) throw;
      deaf = e;
    }
  };
  say([&] {
    const projects::RunInfo begun_run = project->run(s.run);
    const projects::BranchOf& branch = begun_run.branch;
    const std::string surgery =
        branch ? projects::model_changes(project->run(branch.run).model, begun_run.model) : std::string();
    if (json) {
      nlohmann::json begun = {{"run", s.name},
                              {"status", "running"},
                              {"project", args.word(0)},
                              {"step", s.step},
                              {"total_steps", s.total_steps},
                              {"epochs", s.epochs},
                              {"remarks", remarks_json(warnings_of(driver->remarks()))}};
      if (branch) begun["parent"] = {{"run", branch.name}, {"step", branch.step}, {"model", surgery}};
      print_json(begun);
    } else
      print(fmt::format("run {}: {} steps{}\n", s.name, count_text(s.total_steps),
                        !s.step
                            ? args.has("--resume") ? ", again from the beginning: no later state is in the file" : ""
                        : !options.from.empty()
                            ? fmt::format(", a branch of {} after step {}{}{}", branch.name, count_text(s.step),
                                          surgery.empty() ? "" : ", with another model: ", surgery)
                            : fmt::format(", going on after step {}", count_text(s.step))) +
            remarks_text(warnings_of(driver->remarks())));
  });

  Bar bar("step");
  Records records(json);
  DiskWatch disk;
  auto next_line = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool stopping = false;
  std::string paused_by;
  std::vector<WatchHit> hits;
  std::vector<projects::RunEvent> events;
  while (true) {
    s = driver->status();
    const bool ended = !projects::is_active(s.state);
    driver->drain(hits);
    for (const WatchHit& h : hits) {
      if (json) say([&] { print_json(hit_json(h)); });
      if (json || !h.begins || h.action == WatchAction::count) continue;
      bar.clear();
      say([&] { print("watch: " + h.text() + "\n"); });
    }
    driver->drain(events);
    for (const projects::RunEvent& e : events) {
      if (!json && e.kind == "plan") continue;  // the end sums them up
      if (!json) bar.clear();
      say([&] {
        if (json)
          print_json({{"event", e.kind}, {"step", e.step}, {"text", e.text}});
        else
          print(fmt::format("{} (step {}): {}\n", e.kind, count_text(e.step), e.text));
      });
    }
    say([&] {
      records.take(*driver, ended);
      for (const std::string& line : records.lines()) {
        bar.clear();
        if (!json) print(line + "\n");
      }
    });
    if (!stopping)
      if (const nlohmann::json news = disk.look(s, bar); json && !news.is_null()) say([&] { print_json(news); });
    if (ended) break;
    if (interrupted() && !stopping) {
      stopping = true;
      driver->stop();
    }
    // Here nobody would resume it; it can be gone on with all the same.
    if (s.state == State::paused && !s.paused_by.empty() && !stopping) {
      stopping = true;
      paused_by = s.paused_by;
      driver->stop();
    }
    bar.show(s.step, s.total_steps, tail(s));
    if (!json && !Bar::terminal() && s.blocked.empty() && std::chrono::steady_clock::now() > next_line) {
      say([&] { print(fmt::format("step {}/{}  {}\n", count_text(s.step), count_text(s.total_steps), tail(s))); });
      next_line = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(s.step < 50 ? 5 : 50));
  }
  bar.clear();

  const projects::RunInfo info = project->run(s.run);
  if (json) {
    nlohmann::json end = {{"run", info.name},        {"status", projects::status_word(s.state)},
                          {"step", info.steps},      {"total_steps", info.total_steps},
                          {"seconds", info.seconds}, {"best", info.best}};
    if (!paused_by.empty()) end["paused_by"] = paused_by;
    if (!s.error.empty())
      end[s.state == State::finished ? "stopped_early" : s.state == State::stopped ? "stopped_by" : "error"] = s.error;
    if (!s.planned.empty()) end["planned"] = s.planned;
    if (s.skipped > 0)
      end["skipped"] = {{"steps", s.skipped}, {"last_step", s.skipped_step}, {"parameter", s.skipped_for}};
    say([&] { print_json(end); });
  }
  if (s.state == State::failed) throw Error(fmt::format("run {} failed: {}", info.name, s.error));
  if (deaf) throw *deaf;
  if (json) return 0;
  const std::string by = paused_by.empty() ? s.error : paused_by;
  if (s.state == State::stopped)
    print(fmt::format("run {} stopped after step {}{}; go on with: tenon train {} --resume {}\n", info.name,
                      count_text(info.steps), by.empty() ? "" : " by a watch (" + by + ")", args.word(0), info.name));
  else if (!s.error.empty())
    print(
        fmt::format("run {} stopped early after step {} of {}: {}\n"
                    "its best state is that of --checkpoint best; to go on: tenon train {} --resume {} --set {}\n",
                    info.name, count_text(info.steps), count_text(info.total_steps), s.error, args.word(0), info.name,
                    // By stop.metric, which says so, or by a callback.
                    s.error.find("stop.patience") != s.error.npos ? "stop.patience=N" : "callbacks=..."));
  else
    print(fmt::format("run {} finished: {} steps in {}{}\n", info.name, count_text(info.steps),
                      duration_text(info.seconds), records.judged.empty() ? "" : ", " + records.judged));
  for (const std::string& line : s.planned) print("compiled: " + line + "\n");
  if (s.skipped > 0)
    print(
        fmt::format("{} of the steps changed nothing, because a scaled gradient overflowed; the last one was step {}, "
                    "where it was that of {}\n",
                    count_text(s.skipped), count_text(s.skipped_step), s.skipped_for));
  return 0;
}

int evaluate(const Args& args) {
  const auto [project, run, step] = asked_state(args);
  Bar replay("replaying"), bar("evaluating");
  const projects::Results results = projects::results_at(*project, run, step, replay.progress(), bar.progress());
  const Evaluation& e = results.evaluation;
  replay.clear();
  bar.clear();
  if (args.json()) {
    nlohmann::json j = {{"run", run.name}, {"step", step}, {"loss", e.loss}, {"samples", e.samples}};
    for (const Judgement& m : e.judgements) j[m.name] = m.value;
    if (e.accuracy >= 0) j["correct"] = e.correct;
    if (const double ece = results.calibration_error(); !std::isnan(ece)) j["calibration_error"] = ece;
    if (const double area = results.auroc(); !std::isnan(area))
      j.update({{"auroc", area}, {"average_precision", results.average_precision()}});
    print_json(j);
    tell_results(args, results);
    return 0;
  }
  print(projects::evaluation_text(run, step, e) + "\n");
  tell_results(args, results);
  return 0;
}

const bool registered_train[] = {
    register_command(
        {"train",
         "PROJECT",
         1,
         1,
         {{"--run", "NAME", "name of the new run"},
          {"--resume", "RUN", "go on with a run from its last checkpoint; --set and --epochs hold from there on"},
          {"--from", "RUN[@STEP]",
           "a branch: goes on from the state after that step of a run (last, best or a number), with the recipe of "
           "then "
           "and --set"},
          kLayer,
          kInsert,
          kRemove,
          kProjectModel,
          {"--without-samples", "LIST",
           "training samples that are left out, by rows (96, 120-130) or by where they come from (own.csv, line 7), "
           "separated by ';'"},
          {"--edit", "TEXT",
           "values that are changed within a step, of a branch its first: \"#14: output[3,4] = 0.5\", "
           "\"weight(fc1.weight) * 0.1\", \"120: grad(fc1.weight) clamp -1..1\"; may be repeated; `tenon walk` has the "
           "numbers of the ops"},
          {"--device", "NAME", "where to compute: cpu, cuda, cuda:1 (short for --set device=NAME)"},
          kThreads,
          {"--set", "KEY=VALUE", "a key of the recipe, for this run; may be repeated"},
          {"--watch", "TEXT",
           "one more watch for this run: \"loss > 3 * median(loss, 50): pause\"; may be repeated; `tenon keys watches` "
           "says what there is"},
          {"--epochs", "N", "passes over the training set"},
          {"--max-steps", "N", "stop after so many steps"},
          {"--warn-broadcast", "", "say where a step pairs sizes that are likely not meant for each other"},
          kJson},
         "trains the model of a project",
         train}),
    register_command({"eval",
                      "PROJECT [RUN]",
                      1,
                      2,
                      {{"--checkpoint", "best|last|STEP", "which state to evaluate (last)"},
                       {"--classes", "", "each class: how many, precision, recall, F1"},
                       {"--roc", "",
                        "each class against the rest: area under the ROC curve, average precision; --json "
                        "has the curves"},
                       {"--embedding", "",
                        "where each sample lies in what the last layer with weights reads, along the two directions "
                        "in which samples differ most"},
                       {"--tsne", "", "the same, placed by t-SNE: samples that are alike stand together"},
                       {"--umap", "", "the same, placed by UMAP: how groups lie to each other is kept better"},
                       {"--confusion", "", "which classes are taken for which"},
                       {"--worst", "N", "the N samples with the largest loss"},
                       kThreads,
                       kJson},
                      "evaluates a run on the test split",
                      evaluate}),
};

}  // namespace
}  // namespace tenon::app
