#include "projects/quantizable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/state.h"
#include "engine/data/dataset.h"
#include "engine/formats/onnx/prepared.h"
#include "engine/formats/onnx/run.h"
#include "engine/train/callback.h"
#include "projects/finish.h"
#include "projects/graph_exports.h"

namespace tenon::projects {
namespace {

constexpr int64_t kBatch = 32;
constexpr int64_t kDamageRows = 64;

/// `count` samples, spread evenly over the set, in batches.
std::vector<Tensor> spread_samples(const data::Dataset& set, int64_t count) {
  count = std::min(count, set.size());
  std::vector<Tensor> batches;
  for (int64_t i = 0; i < count; i += kBatch) {
    std::vector<int64_t> rows;
    for (int64_t k = i; k < std::min(count, i + kBatch); ++k) rows.push_back(k * set.size() / count);
    batches.push_back(data::fetch(set, std::move(rows)).x);
  }
  return batches;
}

/// Of a run that quantizes while it trains.
std::optional<formats::TrainedGrids> trained_grids(const TrainingSession& session) {
  for (const Callback* c : session.listed_callbacks())
    if (const formats::TrainedGrids* grids = c->trained_grids()) return *grids;
  return {};
}

}  // namespace

Quantizable::Quantizable(Project& project, const RunInfo& run, int64_t step, int64_t samples, const Progress& progress,
                         formats::Recurrence recurrence)
    : session_(replay_to(project, run.id, step, progress)), trained_(trained_grids(*session_)) {
  const NoGrad off;
  session_->detach_callbacks();
  std::string doc = export_doc(project, run, step);
  if (trained_) doc += "; " + grids_text(*trained_);
  f32_ = onnx_of(*session_, run, doc, recurrence);
  samples_ = std::min(samples, session_->train_data().size());
  batches_ = spread_samples(session_->train_data(), samples);
  few_ = spread_samples(session_->train_data(), std::min(samples, kDamageRows));
}

formats::ScriptState Quantizable::left_in(const formats::OnnxModel& quantized) const {
  formats::ScriptState state = script_state_of(*session_);
  for (auto* tensors : {&state.parameters, &state.buffers}) {
    std::erase_if(*tensors, [&](const auto& named) { return !quantized.graph.initializer(named.first); });
    // A norm may have been folded into it.
    for (auto& [name, t] : *tensors) t = *quantized.graph.initializer(name);
  }
  return state;
}

formats::Quantization Quantizable::with_trained_grids(formats::Quantization how) const {
  how.trained = how.precision == formats::Precision::int8_static ? trained_ : std::nullopt;
  return how;
}

formats::Quantizer Quantizable::quantizer(const formats::Quantization& how, const Progress& progress) const {
  formats::Quantizer q(f32_, with_trained_grids(how));
  if (!q.activations().empty()) q.calibrate(batches_, progress);
  return q;
}

Evaluation Quantizable::evaluated(const formats::OnnxModel& model, const Progress& progress) const {
  const formats::PreparedModel prepared(model);
  return session_->judge([&](const Tensor& x) { return prepared.run_tensors({x}).at(0); }, progress);
}

std::string grids_text(const formats::TrainedGrids& g) {
  return fmt::format("grids of the training: weights in {} bits, activations in {}", g.weight_bits, g.activation_bits);
}

bool is_accuracy(const Judgement& j) { return j.name.ends_with("accuracy"); }

const Judgement& told_metric(const Evaluation& e) {
  for (const Judgement& j : e.judgements)
    if (j.name == "nats_per_byte") return j;
  return e.decisive;
}

double lost_of(const Judgement& before, const Judgement& after) {
  const double worse = before.higher_is_better ? before.value - after.value : after.value - before.value;
  if (is_accuracy(before)) return 100 * worse;
  return before.value == 0 ? 0 : 100 * worse / std::abs(before.value);
}

std::string lost_text(double lost, bool in_points) {
  if (lost == 0) return "nothing lost";
  if (in_points) return fmt::format("{:.2f} points {}", std::abs(lost), lost > 0 ? "lost" : "gained");
  return fmt::format("{:.2f} % {}", std::abs(lost), lost > 0 ? "worse" : "better");
}

}  // namespace tenon::projects
