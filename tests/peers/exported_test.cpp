// Programs of torch.export: what PyTorch writes gives the same numbers here, and what is written here gives them in
// PyTorch.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/state.h"
#include "core/temporary_folder.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/aten/exported_model.h"
#include "engine/formats/aten/schema.h"
#include "engine/formats/aten/writer.h"
#include "engine/formats/onnx/import.h"
#include "engine/formats/onnx/run.h"
#include "engine/model/graph_module.h"
#include "engine/nn/state_dict.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/peers/layer_graphs.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(ExportedPrograms, operators_are_named_as_in_pytorch) {
  TENON_NEEDS_TORCH_EXPORT();
  json schemas = json::array();
  std::string text(formats::aten_schema_texts());
  for (size_t at = text.find("\n    "); at != text.npos; at = text.find("\n    ", at)) text.replace(at, 5, " ");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) {
      const std::string one = text.substr(at, end - at);
      schemas.push_back({{"target", formats::parse_aten_schema(one).target()}, {"text", one}});
    }
    at = end + 1;
  }
  EXPECT_GT(schemas.size(), 200u);
  run_torch("exported.py", {{"schemas", schemas}});
}

TEST(ExportedPrograms, every_layer_in_pytorch) {
  TENON_NEEDS_TORCH_EXPORT();
  const NoGrad off;
  const TemporaryFolder folder("tenon-exported");
  const WrittenGraphs written = written_graphs(folder, "pt2", [](const std::string& path, const LayerGraph& layer) {
    formats::save_exported(path, layer.onnx, layer.state, layer.batch);
    const std::vector<Tensor> back = formats::run_onnx(formats::load_exported(path), layer.inputs);
    ASSERT_EQ(layer.output.size(), back.at(0).size());
    EXPECT_LE(apart(layer.output, back[0]), 1e-5) << "read back";
  });
  const std::vector<LayerGraph>& programs = written.graphs;
  const auto theirs = run_torch("exported.py", {{"run", written.cases}});
  for (size_t i = 0; i < programs.size(); ++i) {
    SCOPED_TRACE(programs[i].what);
    const Tensor& other = find(theirs, std::to_string(i) + " output");
    ASSERT_EQ(programs[i].output.size(), other.size());
    EXPECT_LE(apart(programs[i].output, other), 1e-5);
    expect_state(programs[i], theirs, std::to_string(i) + " state ");
  }
}

/// In the builder, a step along the gradient of the mean square: both losses and the gradients are numbers.
void train_a_step(const formats::OnnxModel& model, const std::string& name, const Tensor& x) {
  constexpr float kRate = 1e-3f;
  const formats::ImportedModel in = formats::import_model(model, name);
  GraphModule module(in.model);
  module.initialize(0);
  nn::load_state_dict(module, in.weights);
  module.eval();
  module.requires_grad_();
  const auto loss = [&] { return mean(square(module(x))); };
  const Tensor before = loss();
  EXPECT_TRUE(std::isfinite(item(before)));
  if (module.parameters().empty()) return;
  backward(before);
  const NoGrad off;
  int moved = 0;
  for (const nn::Named& p : module.parameters())
    if (grad_of(p.tensor)) {
      ++moved;
      const Tensor g = contiguous(grad_of(p.tensor));
      for (int64_t i = 0; i < p.tensor.numel(); ++i) p.tensor.data<float>()[i] -= kRate * g.data<float>()[i];
    }
  EXPECT_GT(moved, 0);
  EXPECT_TRUE(std::isfinite(item(loss())));
}

TEST(ExportedPrograms, modules_of_pytorch_give_the_same_here) {
  TENON_NEEDS_TORCH_EXPORT();
  const TemporaryFolder folder("tenon-exported");
  const auto theirs = run_torch("exported.py", {{"make", folder / ""}});
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder / "")) {
    const std::string path = entry.path().string(), file = entry.path().filename().string(),
                      name = file.substr(0, file.find('.'));
    SCOPED_TRACE(file);
    ++files;
    formats::OnnxModel model;
    try {
      model = formats::load_exported(path);
    } catch (const Error& e) {
      // One whose values are known by the strides of their memory alone.
      EXPECT_EQ(file, "convnext_tiny.core.pt2") << e.message();
      continue;
    }
    const Tensor& x = find(theirs, name + " input");
    for (const bool again : {false, true}) expect_outputs_of_pytorch(model, theirs, name, again);
    try {
      train_a_step(model, name, x);
    } catch (const formats::OnnxUnsupported& e) {
      // Core operators that spell out the batch, and cubic pictures, are none of the builder's.
      EXPECT_TRUE(file == "lstm.core.pt2" || file == "gru.core.pt2" || file == "conv3.core.pt2" || name == "cubic")
          << e.message();
    }
  }
  EXPECT_GE(files, 43);
}

}  // namespace
}  // namespace tenon::peers
