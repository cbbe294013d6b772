// tenon bench curves: what a large project costs whoever works with it.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "app/cli/bench.h"
#include "app/cli/window_module.h"
#include "core/parallel.h"
#include "core/random.h"
#include "engine/templates/templates.h"
#include "projects/copy.h"
#include "projects/recorder.h"
#include "views/runs/runs_model.h"
#include "views/shared/project_contents.h"

namespace tenon::app {

namespace {
using projects::MetricRow;
using projects::Project;

constexpr int64_t kLong = 50;          ///< runs of `points` points; they are overlaid
constexpr int64_t kShortPoints = 200;  ///< of every other run
constexpr int64_t kEvery = 1000;       ///< steps from one test to the next
const char* const kWorkload = "curves";

double milliseconds_since(int64_t start) { return static_cast<double>(now_ns() - start) / 1e6; }

/// Processor time of this thread, in nanoseconds.
int64_t thread_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

/// The loss of a made-up run: falls, is noisy, has a spike now and then, and a few values that are not finite.
double made_loss(const Philox& random, int64_t step, double rate) {
  const auto at = static_cast<uint64_t>(step);
  if (step % 33'331 == 0) return std::nan("");
  const double noise = 0.1 * random.normal(at), spike = step % 20'011 == 0 ? 8 : 0;
  return 0.2 + 2 / (1 + rate * static_cast<double>(step) / 100) + noise * noise + spike;
}

/// Returns how many points it has.
int64_t make_runs(Project& project, const Bench& b) {
  const ModelSpec model = project.model();
  int64_t points = 0;
  for (int64_t k = 0; k < b.runs; ++k) {
    const Philox random{static_cast<uint64_t>(k), 17};
    Recipe recipe = Recipe::from_json(project.recipe());
    const double rate = std::pow(10, -4 + 3 * random.uniform(1'000'000'007));
    const int64_t batch = int64_t{16} << random.below(1'000'000'008, 4);
    recipe.set("optimizer.lr", fmt::format("{:.6g}", rate));
    recipe.set("data.batch_size", std::to_string(batch));
    const int64_t steps = k < std::min(kLong, b.runs) ? b.points : std::min(kShortPoints, b.points);
    const int64_t epoch = (2000 + batch - 1) / batch;
    const auto run =
        project.new_run(fmt::format("run-{:04}", k + 1), model, recipe.to_json(), steps, {}, {epoch, 2000, batch});
    std::vector<MetricRow> rows;
    rows.reserve(static_cast<size_t>(steps + steps / kEvery + 1));
    for (int64_t step = 1; step <= steps; ++step) {
      const double seconds = 0.004 * static_cast<double>(step);
      rows.push_back({"loss", {step, seconds, made_loss(random, step, 1000 * rate)}});
      if (step % kEvery == 0 || step == steps)
        rows.push_back({"test_accuracy", {step, seconds, 1 - 0.5 / (1 + 1000 * rate) - 0.1 * random.uniform(step)}});
    }
    points += static_cast<int64_t>(rows.size());
    project.append_metrics(run.id, rows);
    project.set_run_status(run.id, "finished");
  }
  return points;
}

/// Made in memory where there is room for that, and then copied: on a disk its thousands of transactions would wait for
/// it to turn, one by one.
void make_project(const std::string& path, const Bench& b) {
  std::error_code none;
  const std::filesystem::path memory = "/dev/shm";
  const auto need = static_cast<uint64_t>(64 * (kLong * b.points + kShortPoints * b.runs) + 20'000 * b.runs);
  const bool in_memory = std::filesystem::space(memory, none).available > need && !none;
  const BenchFolder folder(in_memory ? memory : std::filesystem::temp_directory_path());
  const std::string made = folder.path + "/made.tenon";
  const Beginning begun = begin(find_template("spirals"), "", made);
  auto project = Project::create(made, begun.model, begun.recipe.to_json());
  const int64_t start = now_ns();
  const int64_t points = make_runs(*project, b);
  const double seconds = milliseconds_since(start) / 1e3;
  project.reset();
  projects::copy_project(made, path, false, {});
  b.emit(kWorkload, "runs", static_cast<double>(b.runs), "runs");
  b.emit(kWorkload, "points", static_cast<double>(points), "points");
  b.emit(kWorkload, "make_project", seconds, "s");
  b.emit(kWorkload, "write_points", static_cast<double>(points) / seconds, "points/s");
}

/// What the training thread pays to hand a step's values to the recorder.
void log_scalars(const std::string& folder, const Bench& b) {
  const std::string path = folder + "/log.tenon";
  const Beginning begun = begin(find_template("spirals"), "", path);
  auto project = Project::create(path, begun.model, begun.recipe.to_json());
  const auto run = project->new_run("r", begun.model, begun.recipe.to_json(), 1'000'000);
  projects::Recorder recorder(project, run.id);
  constexpr int64_t kSteps = 20'000;
  std::vector<double> costs, work;
  int64_t step = 0;
  for (int slice = 0; slice < 7; ++slice) {
    const int64_t start = now_ns(), worked = thread_time();
    for (int64_t i = 0; i < kSteps; ++i) {
      ++step;
      const double wall = 0.001 * static_cast<double>(step);
      recorder.metrics({{"loss", {step, wall, 0.5}},
                        {"lr", {step, wall, 0.1}},
                        {"train_accuracy", {step, wall, 0.9}},
                        {"grad_norm", {step, wall, 1.5}}});
    }
    work.push_back(static_cast<double>(thread_time() - worked) / static_cast<double>(4 * kSteps));
    costs.push_back(static_cast<double>(now_ns() - start) / static_cast<double>(4 * kSteps));
    recorder.flush();
  }
  std::sort(costs.begin(), costs.end());
  std::sort(work.begin(), work.end());
  b.emit(kWorkload, "log_scalar", costs[costs.size() / 2], "ns");
  b.emit(kWorkload, "log_scalar_work", work[work.size() / 2], "ns");
}

/// The same as the window does, without one.
void open_without_window(const std::string& path, const Bench& b) {
  int64_t start = now_ns();
  auto project = Project::open(path, true);
  const auto contents = views::ProjectContents::read(*project);
  b.emit(kWorkload, "read_contents", milliseconds_since(start), "ms");
  const int64_t rows = now_ns();
  views::RunsModel model;
  model.set_rows(views::read_runs(*project, contents.runs));
  b.emit(kWorkload, "read_rows", milliseconds_since(rows), "ms");
  model.table();
  b.emit(kWorkload, "open_to_table", milliseconds_since(start), "ms");
  double worst = 0;
  for (const char* filter : {"lr > 0.001", "lr > 0.001 and best.accuracy >= 0.8", "name ~ 42", "loss < 0.5", ""}) {
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
      start = now_ns();
      model.set_filter(filter);
      model.table();
      times.push_back(milliseconds_since(start));
    }
    std::sort(times.begin(), times.end());
    worst = std::max(worst, times[times.size() / 2]);
  }
  b.emit(kWorkload, "filter_worst", worst, "ms");
}

}  // namespace

void bench_curves(const Bench& b) {
  const BenchFolder folder;
  const std::string path = b.project.empty() ? folder.path + "/curves.tenon" : b.project;
  log_scalars(folder.path, b);
  if (!std::filesystem::exists(path)) make_project(path, b);
  open_without_window(path, b);
  if (!window_can_be_measured(kWorkload)) return;
  const CurveTimes t = window().measure_curves(path, static_cast<int>(kLong));
  b.emit(kWorkload, "window_open_to_table", t.open_ms, "ms");
  b.emit(kWorkload, "window_open_work", t.open_work_ms, "ms");
  b.emit(kWorkload, "window_filter_worst", t.filter_ms, "ms");
  b.emit(kWorkload, "window_filter_work", t.filter_work_ms, "ms");
  b.emit(kWorkload, "window_read_overlaid", t.compare_ms, "ms");
  b.emit(kWorkload, "window_overlaid", t.overlaid, "runs");
  b.emit(kWorkload, "window_frame_alone", t.alone_ms, "ms");
  b.emit(kWorkload, "window_frame", t.frame_ms, "ms");
  b.emit(kWorkload, "window_frame_alone_work", t.alone_work_ms, "ms");
  b.emit(kWorkload, "window_frame_work", t.frame_work_ms, "ms");
  b.emit(kWorkload, "window_frame_scene_work", t.scene_work_ms, "ms");
  b.emit(kWorkload, "window_frame_worst", t.worst_frame_ms, "ms");
  b.emit(kWorkload, "window_frame_scene", t.scene_ms, "ms");
}

}  // namespace tenon::app
