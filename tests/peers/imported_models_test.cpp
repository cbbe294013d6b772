// Architectures of three libraries that PyTorch exports to ONNX, in the builder: their layers in groups as they are
// named, the same outputs, and a step of training with the same gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

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
using Architectures = std::vector<Architecture>;

double largest(const Tensor& t) {
  const Tensor x = contiguous(t);
  double most = 0;
  for (int64_t i = 0; i < x.numel(); ++i) most = std::max(most, std::abs(storage_value(x, x.offset() + i)));
  return most;
}
/// The largest distance over the largest number of the truth; one that is nothing beside the others of its model (the
/// gradient of a key's bias in attention is 0 but for rounding) counts as at least `floor`.
double distance(const Tensor& t, const Tensor& truth, double floor) {
  const Tensor x = contiguous(t), y = contiguous(truth);
  double worst = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double d = std::abs(storage_value(x, x.offset() + i) - storage_value(y, y.offset() + i));
    worst = d <= worst ? worst : d;  // NaN stays
  }
  return worst / std::max(largest(truth), floor);
}
/// How far from the truth, PyTorch's numbers of 64 bits, ours of 32 bits may be: 1e-4, or twice as far as PyTorch's own
/// of 32 bits, where what is rounded grows with the depth of a model. The samples lie clear of the kinks of activations
/// (imported_models.py says why).
double allowed(double of_pytorch) { return std::max(1e-4, 2 * of_pytorch); }

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
  const Tensor &other = find(theirs, name + " output"), &truth = find(theirs, name + " f64 output");
  ASSERT_EQ(y.size(), other.size());
  EXPECT_LE(distance(detach(y), truth, 0), allowed(distance(other, truth, 0))) << "outputs";
  backward(mean(mul(y, find(theirs, name + " weights"))));
  std::map<std::string, Tensor> ours;
  for (const nn::Named& p : module.parameters()) ours[p.name] = p.tensor;
  size_t all = 0, compared = 0;
  const std::string head = name + " gradient ";
  double most = 0, worst = 0, worst_of_pytorch = 0;
  for (const auto& [key, gradient] : theirs)
    if (key.starts_with(head)) most = std::max(most, largest(gradient));
  for (const auto& [key, gradient] : theirs) {
    if (!key.starts_with(head)) continue;
    ++all;
    const std::string parameter = key.substr(head.size());
    const auto mine = ours.find(parameter);
    if (mine == ours.end() || !(mine->second.size() == gradient.size())) continue;
    ++compared;
    const Tensor g = grad_of(mine->second), &exact = find(theirs, name + " f64 gradient " + parameter);
    ASSERT_TRUE(g.defined()) << key;
    const double distance_of_pytorch = distance(gradient, exact, 1e-3 * most), d = distance(g, exact, 1e-3 * most);
    EXPECT_LE(d, allowed(distance_of_pytorch)) << key;
    worst = std::max(worst, d), worst_of_pytorch = std::max(worst_of_pytorch, distance_of_pytorch);
  }
  EXPECT_GE(static_cast<double>(compared), a.named * static_cast<double>(all)) << compared << " of " << all;
  std::printf("%-24s %4lld layers, %3lld of ONNX; %zu of %zu gradients, off by %.1e, PyTorch's by %.1e\n", a.name,
              static_cast<long long>(in.model.layers.size()), static_cast<long long>(in.op_layers), compared, all,
              worst, worst_of_pytorch);
}

/// Those of one library, where it is installed.
void expect_all(const char* library, const Architectures& all) {
  TENON_NEEDS_TORCH();
  const TemporaryFolder folder("tenon-imported");
  constexpr size_t kAtOnce = 5;  // each has files of its own
  for (size_t from = 0; from < all.size(); from += kAtOnce) {
    const size_t to = std::min(all.size(), from + kAtOnce);
    nlohmann::json names = nlohmann::json::array();
    for (size_t i = from; i < to; ++i) names.push_back(all[i].name);
    const auto theirs =
        run_torch("imported_models.py", {{"folder", folder / ""}, {"library", library}, {"names", names}});
    if (std::any_of(theirs.begin(), theirs.end(), [](const auto& t) { return t.first == "not installed"; }))
      GTEST_SKIP() << library << " is not installed (pip install " << library
                   << "; TENON_TORCH_PYTHON names the Python)";
    for (size_t i = from; i < to; ++i) {
      SCOPED_TRACE(all[i].name);
      const std::string path = folder / (std::string(all[i].name) + ".onnx");
      expect_in_the_builder(all[i], path, theirs);
      std::remove(path.c_str());
    }
  }
}

TEST(ImportedModels, networks_of_images_of_torchvision) {
  expect_all("torchvision", {{"alexnet", 1, ""},
                             {"resnet18", 1, ""},
                             {"resnet50", 1, ""},
                             {"resnext50_32x4d", 1, ""},
                             {"mobilenet_v2", 1, ""},
                             {"mobilenet_v3_small", 1, ""},
                             {"mobilenet_v3_large", 1, ""},
                             {"efficientnet_b0", 1, ""},
                             {"densenet121", 1, ""},
                             {"shufflenet_v2_x0_5", 1, ""}});
}
TEST(ImportedModels, more_networks_of_images_of_torchvision) {
  expect_all("torchvision", {{"shufflenet_v2_x1_0", 1, ""},
                             {"squeezenet1_0", 1, ""},
                             {"squeezenet1_1", 1, ""},
                             {"mnasnet0_5", 1, ""},
                             {"googlenet", 1, ""},
                             {"regnet_x_400mf", 1, ""},
                             {"regnet_y_400mf", 1, ""},
                             {"convnext_tiny", 0.5, ""},
                             {"swin_t", 0.5, ""},
                             {"vit", 0.5, ""}});
}
TEST(ImportedModels, deep_networks_of_torchvision) {
  expect_all("torchvision", {{"resnet101", 1, ""}, {"wide_resnet50_2", 1, ""}, {"densenet169", 1, ""}});
}
TEST(ImportedModels, networks_of_timm) {
  expect_all("timm", {{"resnet10t", 1, ""},
                      {"vit_tiny_patch16_224", 0.5, ""},
                      {"mobilevit_xxs", 0.5, ""},
                      {"convnext_atto", 0.5, ""},
                      {"ghostnet_050", 1, ""},
                      {"resmlp_12_224", 0.5, ""},
                      {"poolformer_s12", 0.45, ""},
                      {"edgenext_xx_small", 0.5, ""},
                      {"lcnet_050", 1, ""},
                      {"xcit_nano_12_p16_224", 0.5, ""}});
}
TEST(ImportedModels, models_of_transformers) {
  expect_all("transformers", {{"Bert", 0.5, ""},
                              {"Roberta", 0, "its input 0 depends on the number of samples"},
                              {"Electra", 0.5, ""},
                              {"DistilBert", 0.5, ""},
                              {"GPT2", 0.3, ""},
                              {"GPTNeoX", 0.5, ""},
                              {"OPT", 0.5, ""},
                              {"Llama", 0.5, ""},
                              {"T5Encoder", 0.5, ""},
                              {"ViT", 0.5, ""}});
}

}  // namespace
}  // namespace tenon::peers
