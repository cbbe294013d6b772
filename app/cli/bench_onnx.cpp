// tenon bench onnx: what a run of a model file takes, with integers multiplied and without, and beside another file.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/bench.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "core/machine_memory.h"
#include "core/median.h"
#include "core/profile.h"
#include "engine/formats/onnx/feed.h"
#include "engine/formats/onnx/prepared.h"
#include "engine/formats/onnx/runnable.h"
#include "tracing/ops/model_plan.h"

namespace tenon::app {
namespace {

struct Contestant {
  std::string metric;
  const formats::PreparedModel* model;
  std::vector<formats::OnnxItem> inputs;
  std::vector<double> us = {};
};

std::vector<formats::OnnxItem> made_up_inputs(const formats::OnnxModel& m, int64_t batch) {
  std::vector<formats::OnnxFeed> feeds;
  const std::vector<formats::OnnxValue> wanted = formats::wanted_inputs(m);
  for (const formats::OnnxValue& v : wanted) {
    formats::OnnxFeed f{.seed = 1, .shape = formats::least_shape(v)};
    if (!v.shape.empty() && v.shape[0].value < 0) f.shape[0] = batch;
    feeds.push_back(std::move(f));
  }
  return formats::fed(wanted, feeds);
}

}  // namespace

void bench_onnx(const Bench& b) {
  const int64_t start = now_ns();
  const formats::OnnxModel model = formats::load_runnable(b.file);
  const formats::PreparedModel plan(model);
  const double loaded = static_cast<double>(now_ns() - start) / 1e3;
  const formats::IntegerPlan& integers = plan.integers();
  std::optional<formats::PreparedModel> floats, against;
  if (integers.integer) floats.emplace(model, formats::Arithmetic::floats);
  if (!b.against.empty()) against.emplace(formats::load_onnx(b.against));
  if (!b.json) print(integers.text() + "\n");
  b.emit("onnx", "integer_nodes", static_cast<double>(integers.integer), "nodes");
  b.emit("onnx", "load", loaded, "us");
  for (const int64_t batch : b.batch ? std::vector{b.batch} : std::vector<int64_t>{1, 64}) {
    std::vector<Contestant> all{{"run", &plan, made_up_inputs(model, batch)}};
    if (floats) all.push_back({"run_no_integer", &*floats, all[0].inputs});
    if (against) all.push_back({"run_against", &*against, made_up_inputs(against->model(), batch)});
    const auto turn = [&](bool counts) {
      for (Contestant& c : all) {
        const int64_t begin = now_ns();
        c.model->run(c.inputs);
        if (counts) c.us.push_back(static_cast<double>(now_ns() - begin) / 1e3);
      }
    };
    turn(true);
    b.emit("onnx", "first_" + std::to_string(batch), all[0].us[0], "us");
    for (Contestant& c : all) c.us.clear();
    for (int i = 0; i < 2; ++i) turn(false);
    const int64_t begin = now_ns();
    do turn(true);
    while (static_cast<double>(now_ns() - begin) < b.seconds * 1e9);
    for (const Contestant& c : all) b.emit("onnx", c.metric + "_" + std::to_string(batch), median_of(c.us), "us");
    if (b.explain)
      show_finding(tracing::model_plan_page(model, plan, all[0].inputs, b.seconds), b.json,
                   {{"workload", "onnx_" + std::to_string(batch)}});
    for (size_t i = 1; i < all.size(); ++i) {
      std::vector<double> times;
      for (size_t k = 0; k < all[i].us.size(); ++k) times.push_back(all[i].us[k] / all[0].us[k]);
      b.emit("onnx", "faster_than_" + all[i].metric + "_" + std::to_string(batch), median_of(times), "times");
    }
  }
  b.emit("onnx", "peak_rss", static_cast<double>(peak_memory()), "bytes");
}

}  // namespace tenon::app
