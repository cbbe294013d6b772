// tenon bench builder: what a model of very many layers costs whoever works with it.
#include <cstdio>
#include <cstdlib>

#include "app/cli/bench.h"
#include "app/cli/window_module.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "projects/project.h"

namespace tenon::app {
namespace {

/// Blocks of three layers that are added to what came in, in stages of scopes within each other.
ModelSpec deep_model(int64_t layers) {
  constexpr int64_t kBlock = 5, kBlocks = 20, kWidth = 8;
  Chain c("deep", {2});
  c.add("stem", "Linear", {{"out_features", kWidth}});
  for (int64_t i = 0; i * kBlock < layers; ++i) {
    const std::string at = "stage" + std::to_string(i / kBlocks) + "." + std::to_string(i % kBlocks) + ".";
    const std::string from = c.here;
    c.add(at + "norm", "LayerNorm");
    c.add(at + "up", "Linear", {{"out_features", kWidth}});
    c.add(at + "act", i % 2 ? "ReLU" : "GELU");
    c.add(at + "down", "Linear", {{"out_features", kWidth}});
    c.join(at + "add", "Add", {from, c.here});
  }
  return c.add("head", "Linear", {{"out_features", int64_t{2}}}).done();
}

}  // namespace

void bench_builder(const Bench& b) {
  if (!window_can_be_measured("builder")) return;
  const BenchFolder folder;
  const std::string path = folder.path + "/deep.tenon";
  const ModelSpec model = deep_model(b.layers);
  projects::Project::create(path, model, begin(find_template("spirals"), "", path).recipe.to_json());
  const auto emit = [&](const std::string& metric, double value, const char* unit) {
    b.emit("builder", metric, value, unit);
  };
  emit("layers", static_cast<double>(model.layers.size()), "layers");
  const BuilderTimes t = window().measure_builder(path);
  for (const BuilderTimes::Wait& w : t.waits) {
    emit(w.what, w.ms, "ms");
    emit(w.what + "_work", w.work_ms, "ms");
  }
  for (const BuilderTimes::Hand& h : t.hands) {
    emit("frame_" + h.what, h.ms, "ms");
    emit("frame_" + h.what + "_worst", h.worst_ms, "ms");
    emit("frame_" + h.what + "_work", h.work_ms, "ms");
    emit("frame_" + h.what + "_work_worst", h.work_worst_ms, "ms");
  }
}

}  // namespace tenon::app
