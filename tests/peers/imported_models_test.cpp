// Twenty architectures that PyTorch exports to ONNX, in the builder: their layers in groups as they are named, the same
// outputs, and a step of training with the same gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "core/error.h"
#include "core/state.h"
#include "core/temporary_folder.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/onnx/import.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/model/graph_module.h"
#include "engine/nn/state_dict.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

/// What is expected of an architecture in the builder.
struct Architecture {
  const char* name;
  double named;         ///< at least this share of PyTorch's parameters has its name here
  const char* refusal;  ///< what the importer says of one that it does not take; empty: it takes it
};
/// The exporter writes the batch that it saw into the sizes of the windows and heads of attention.
constexpr const char* kBatch = "it does not take a batch of another size";
constexpr Architecture kArchitectures[] = {
    {"alexnet", 1, ""},        {"resnet18", 1, ""},           {"resnet50", 1, ""},           {"resnext50_32x4d", 1, ""},
    {"mobilenet_v2", 1, ""},   {"mobilenet_v3_small", 1, ""}, {"mobilenet_v3_large", 1, ""}, {"efficientnet_b0", 1, ""},
    {"densenet121", 1, ""},    {"shufflenet_v2_x0_5", 1, ""}, {"shufflenet_v2_x1_0", 1, ""}, {"squeezenet1_0", 1, ""},
    {"squeezenet1_1", 1, ""},  {"mnasnet0_5", 1, ""},         {"googlenet", 1, ""},          {"regnet_x_400mf", 1, ""},
    {"regnet_y_400mf", 1, ""}, {"convnext_tiny", 0.5, ""},    {"swin_t", 0, kBatch},         {"vit", 0, kBatch},
};

double largest(const Tensor& t) {
  const Tensor x = contiguous(t);
  double most = 0;
  for (int64_t i = 0; i < x.numel(); ++i) most = std::max(most, std::abs(double{x.data<float>()[i]}));
  return most;
}
/// The largest distance over the largest number of theirs; one that is nothing beside the others of its model (the
/// gradient of a key's bias in attention is 0 but for rounding) counts as at least `floor`.
double distance(const Tensor& ours, const Tensor& theirs, double floor) {
  const Tensor x = contiguous(ours), y = contiguous(theirs);
  double worst = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double d = std::abs(double{x.data<float>()[i]} - double{y.data<float>()[i]});
    worst = d <= worst ? worst : d;  // NaN stays
  }
  return worst / std::max(largest(theirs), floor);
}

void expect_in_the_builder(const Architecture& a, const std::string& path, const formats::NamedTensors& theirs) {
  const std::string name = a.name;
  formats::ImportedModel in;
  try {
    in = formats::import_model(formats::load_runnable(path), name);
  } catch (const formats::OnnxUnsupported& e) {
    EXPECT_TRUE(*a.refusal && std::string(e.what()).find(a.refusal) != std::string::npos) << e.what();
    return;
  }
  EXPECT_STREQ(a.refusal, "") << "it is taken now";
  std::set<std::string> groups;
  for (const LayerSpec& l : in.model.layers)
    if (const size_t dot = l.name.rfind('.'); dot != std::string::npos) groups.insert(l.name.substr(0, dot));
  EXPECT_GE(groups.size(), 2u) << "its layers stand in the groups that their names say";

  GraphModule module(in.model);
  module.initialize(0);
  nn::load_state_dict(module, in.weights);
  module.eval();
  module.requires_grad_();
  const Tensor y = module(find(theirs, name + " input"));
  const Tensor& other = find(theirs, name + " output");
  ASSERT_EQ(y.size(), other.size());
  EXPECT_LE(distance(detach(y), other, 0), 1e-4) << "outputs";
  backward(mean(square(y)));
  std::map<std::string, Tensor> ours;
  for (const nn::Named& p : module.parameters()) ours[p.name] = p.tensor;
  size_t all = 0, compared = 0;
  const std::string head = name + " gradient ";
  double most = 0;
  for (const auto& [key, gradient] : theirs)
    if (key.starts_with(head)) most = std::max(most, largest(gradient));
  for (const auto& [key, gradient] : theirs) {
    if (!key.starts_with(head)) continue;
    ++all;
    const auto mine = ours.find(key.substr(head.size()));
    if (mine == ours.end() || !(mine->second.size() == gradient.size())) continue;
    ++compared;
    const Tensor g = grad_of(mine->second);
    ASSERT_TRUE(g.defined()) << key;
    EXPECT_LE(distance(g, gradient, 1e-3 * most), 1e-4) << key;
  }
  EXPECT_GE(static_cast<double>(compared), a.named * static_cast<double>(all)) << compared << " of " << all;
}

TEST(ImportedModels, twenty_architectures_open_in_the_builder_and_train) {
  TENON_NEEDS_TORCH();
  static_assert(std::size(kArchitectures) == 20);
  const TemporaryFolder folder("tenon-imported");
  for (size_t from = 0; from < std::size(kArchitectures); from += 5) {  // some at a time: each has files of its own
    nlohmann::json names = nlohmann::json::array();
    for (size_t i = from; i < from + 5; ++i) names.push_back(kArchitectures[i].name);
    const auto theirs = run_torch("imported_models.py", {{"folder", folder / ""}, {"names", names}});
    if (std::any_of(theirs.begin(), theirs.end(), [](const auto& t) { return t.first == "no torchvision"; }))
      GTEST_SKIP() << "torchvision is not installed (pip install torchvision; TENON_TORCH_PYTHON names the Python)";
    for (size_t i = from; i < from + 5; ++i) {
      SCOPED_TRACE(kArchitectures[i].name);
      const std::string path = folder / (std::string(kArchitectures[i].name) + ".onnx");
      expect_in_the_builder(kArchitectures[i], path, theirs);
      std::remove(path.c_str());
    }
  }
}

}  // namespace
}  // namespace tenon::peers
