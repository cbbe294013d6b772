#include "projects/model_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/formats/onnx/feed.h"
#include "engine/formats/onnx/import.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/tensor_difference.h"
#include "engine/model/graph_module.h"
#include "engine/nn/state_dict.h"
#include "engine/ops/view.h"
#include "engine/templates/templates.h"
#include "projects/project.h"

namespace tenon::projects {

namespace fs = std::filesystem;

namespace {

constexpr double kClose = 1e-3, kCloseWidened = 3e-2;  ///< more is no rounding

/// A batch of samples: normal numbers, or numbers of rows that every table of the model has.
Tensor random_batch(const ModelSpec& model, const Meta& sample, int64_t batch) {
  Shape size = sample.shape;
  size.insert(0, batch);
  Tensor x = empty(size, sample.dtype);
  int64_t rows = 1 << 30;
  for (const LayerSpec& l : model.layers)
    if (const AttrValue* n = l.type == "Embedding" ? l.find("num_embeddings") : nullptr)
      rows = std::min(rows, std::get<int64_t>(*n));
  const Philox random{1, 0};
  for (int64_t i = 0; i < x.numel(); ++i)
    if (sample.dtype == DType::i64)
      x.data<int64_t>()[i] = static_cast<int64_t>(random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(rows)));
    else
      x.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return x;
}

/// The largest distance of what the layers give for one batch from what the file's model gives, over its largest
/// number.
double compared(const formats::OnnxModel& onnx, const formats::ImportedModel& in) {
  NoGrad off;
  GraphModule module(in.model);
  module.initialize(0);
  nn::load_state_dict(module, in.weights);
  module.eval();
  const formats::OnnxValue input = formats::wanted_inputs(onnx).at(0);
  const int64_t batch = input.shape.at(0).value > 0 ? input.shape[0].value : 2;
  const Tensor x = random_batch(in.model, module.input(), batch);
  const Tensor ours = module(x), theirs = formats::run_onnx(onnx, {cast(x, input.dtype)}).at(0);
  if (!(ours.size() == theirs.size()))
    throw Error(fmt::format("the layers give a result of size {}, the file's model {}", to_string(ours.size()),
                            to_string(theirs.size())));
  return formats::tensor_difference(theirs, ours).worst_relative();
}

}  // namespace

std::string ModelImport::text() const {
  std::string s = fmt::format("{} layers of {} nodes", layers, nodes);
  if (op_layers) s += fmt::format(", {} of them single operators (OnnxOp)", op_layers);
  return s + (difference == 0 ? "; the same outputs, to the bit"
                              : fmt::format("; the same outputs within {:.1e}", difference));
}

ModelImport project_from_onnx(const std::string& path, const std::string& onnx, const std::vector<int64_t>& sample,
                              const std::vector<std::pair<std::string, std::string>>& settings,
                              const Progress& progress) {
  constexpr int kSteps = 4;
  int step = 0;
  const auto next = [&] {
    if (progress && !progress(step, kSteps)) throw Error("cancelled");
    ++step;
  };
  const fs::path weights = fs::absolute(path).replace_extension(".safetensors");
  for (const fs::path& p : {fs::path(path), weights})
    if (fs::exists(p)) throw Error::usage(p.string() + " is there already", "Choose another name for the project.");
  next();
  std::vector<formats::InputHint> hints;
  if (!sample.empty()) {
    Shape size{1};
    for (const int64_t n : sample) size.push_back(n);
    hints.push_back({size});
  }
  const formats::OnnxModel model = formats::load_runnable(onnx, hints);
  next();
  formats::ImportedModel in;
  try {
    in = formats::import_model(model, fs::path(onnx).stem().string(), sample);
  } catch (const Error& e) {
    throw Error(fmt::format("{} cannot be opened in the builder: {}", onnx, e.message()), e.hint());
  }
  next();
  ModelImport made{weights.string(),    in.nodes,           static_cast<int64_t>(in.model.layers.size()), in.op_layers,
                   compared(model, in), std::move(in.notes)};
  if (!(made.difference <= (in.widened ? kCloseWidened : kClose)))
    throw Error(
        fmt::format("{} was read as {} layers, whose outputs are not those of the file: they differ by {:.1e} of "
                    "the largest",
                    onnx, made.layers, made.difference),
        "This is a fault of the import. Nothing was written.");
  next();
  Beginning b = begin_empty();
  b.recipe.set("init.from", weights.string());
  for (const auto& [key, text] : settings) b.recipe.set(key, text);
  for (const auto& [key, text] : settings) b.recipe.check_used(key);
  formats::save_safetensors(weights.string(), in.weights);
  try {
    Project::create(path, in.model, b.recipe.to_json());
  } catch (...) {
    std::error_code code;
    fs::remove(weights, code);
    throw;
  }
  return made;
}

}  // namespace tenon::projects
