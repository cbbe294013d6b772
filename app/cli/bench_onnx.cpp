// tenon bench onnx: what a run of a model file takes, with integers multiplied and without, and beside another file.
#include <algorithm>
#include <string>
#include <vector>

#include "app/cli/bench.h"
#include "app/cli/output.h"
#include "core/median.h"
#include "core/profile.h"
#include "engine/formats/onnx/feed.h"
#include "engine/formats/onnx/integer_plan.h"

namespace tenon::app {
namespace {

struct Contestant {
  std::string metric;
  const formats::OnnxModel* model;
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
  const formats::OnnxModel model = formats::load_onnx(b.file);
  const formats::OnnxModel other = b.against.empty() ? formats::OnnxModel() : formats::load_onnx(b.against);
  const formats::IntegerPlan plan = formats::integer_plan(model);
  const formats::IntegerPlan other_plan = formats::integer_plan(other);
  if (!b.json) print(plan.text() + "\n");
  b.emit("onnx", "integer_nodes", static_cast<double>(plan.integer), "nodes");
  for (const int64_t batch : {int64_t{1}, int64_t{64}}) {
    std::vector<Contestant> all{{"run", &plan.model}};
    if (plan.integer) all.push_back({"run_no_integer", &model});
    if (!b.against.empty()) all.push_back({"run_against", &other_plan.model});
    const auto turn = [&](bool counts) {
      for (Contestant& c : all) {
        const auto inputs = made_up_inputs(*c.model, batch);
        const int64_t begin = now_ns();
        formats::run_onnx_items(*c.model, inputs);
        if (counts) c.us.push_back(static_cast<double>(now_ns() - begin) / 1e3);
      }
    };
    for (int i = 0; i < 3; ++i) turn(false);
    const int64_t begin = now_ns();
    do turn(true);
    while (static_cast<double>(now_ns() - begin) < b.seconds * 1e9);
    for (const Contestant& c : all) b.emit("onnx", c.metric + "_" + std::to_string(batch), median_of(c.us), "us");
    for (size_t i = 1; i < all.size(); ++i) {
      std::vector<double> times;
      for (size_t k = 0; k < all[i].us.size(); ++k) times.push_back(all[i].us[k] / all[0].us[k]);
      b.emit("onnx", "faster_than_" + all[i].metric + "_" + std::to_string(batch), median_of(times), "times");
    }
  }
}

}  // namespace tenon::app
