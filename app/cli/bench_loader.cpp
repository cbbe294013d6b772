// tenon bench loader: how fast the data of a project are loaded, and how fast its steps take them.
#include <fmt/format.h>
#include <sys/resource.h>

#include "app/cli/bench.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/profile.h"
#include "engine/data/loader.h"
#include "engine/train/open_data.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "projects/teacher_file.h"

namespace tenon::app {
namespace {

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Rate {
  double samples = 0;     ///< a second
  double processors = 0;  ///< that were busy meanwhile
};

/// Samples a second of `next`, which gives the samples of one batch. What a first batch costs alone does not count.
template <class F>
Rate rate_of(double seconds, const F& next) {
  next();
  int64_t samples = 0;
  const double busy = processor_seconds();
  const int64_t begin = now_ns();
  int64_t taken = 0;
  do {
    samples += next();
    taken = now_ns() - begin;
  } while (static_cast<double>(taken) < seconds * 1e9);
  const double wall = static_cast<double>(taken) / 1e9;
  return {static_cast<double>(samples) / wall, (processor_seconds() - busy) / wall};
}

}  // namespace

void bench_loader(const Bench& b) {
  const auto project = open_to_read(b.file);
  const Recipe recipe = Recipe::from_json(project->recipe());
  Rate loading, training;
  {
    data::Loader loader(open_data(recipe).train, loader_options(recipe));
    loading = rate_of(b.seconds, [&] { return loader.next().x.size(0); });
  }
  TrainingSession session(project->model(), recipe);
  if (session.lacks_teacher()) projects::give_teacher(session, projects::read_teacher(*project, recipe));
  const int64_t batch = std::min(recipe.integer("data.batch_size"), session.samples_per_epoch());
  training = rate_of(b.seconds, [&] {
    session.step();
    return batch;
  });
  const double times = loading.samples / training.samples;
  b.emit("loader", "loaded_samples", loading.samples, "samples/s");
  b.emit("loader", "processors_busy", loading.processors, "processors");
  b.emit("loader", "trained_samples", training.samples, "samples/s");
  b.emit("loader", "times_what_steps_take", times, "times");
  if (b.json) return;
  if (times >= 2)
    print(fmt::format(
        "The steps are bound by computing: data could be loaded {:.3g} times as fast as they take them.\n", times));
  else if (loading.processors < 0.5)
    print(
        fmt::format("The steps are bound by the disk: loading keeps {:.2f} of a processor busy and waits else; "
                    "faster storage, or data that fit in memory.\n",
                    loading.processors));
  else
    print(
        "The steps are bound by loading data: more of data.workers where processors are idle, fewer or cheaper "
        "transforms.\n");
}

}  // namespace tenon::app
