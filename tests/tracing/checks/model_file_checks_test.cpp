// What may be wrong with a file of weights, planted and found; nothing in one that a template's training wrote.
#include "tracing/checks/model_file_checks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/safetensors.h"
#include "engine/model/graph_module.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/templates/templates.h"

namespace tenon::tracing {
namespace {

using formats::NamedTensors;

class ModelFileChecks : public ::testing::Test {
 protected:
  void SetUp() override {
    const Template& t = find_template("spirals");
    GraphModule m(t.model);
    m.initialize(3);
    for (const auto& p : m.parameters()) weights_.emplace_back(p.name, clone(detach(p.tensor)));
    beside_ = CheckedModelFile::Beside{t.model, t.recipe, "p.tenon"};
  }
  void TearDown() override { std::filesystem::remove(path_); }
  Tensor& weight(const std::string& name) {
    for (auto& [n, t] : weights_)
      if (n == name) return t;
    throw Error("no tensor " + name);
  }
  std::vector<CheckResult> checked(bool with_model = true) {
    formats::save_safetensors(path_, weights_);
    return check_model_file(CheckedModelFile(formats::ModelFile::open(path_), with_model ? beside_ : std::nullopt));
  }
  std::vector<Complaint> complaints(const std::string& check) {
    std::vector<Complaint> found;
    for (const CheckResult& r : checked())
      if (!r.complaints.empty()) {
        EXPECT_EQ(r.name, check);
        found = r.complaints;
      }
    return found;
  }
  std::string path_ = ::testing::TempDir() + "weights_checks." + std::to_string(getpid()) + ".safetensors";
  NamedTensors weights_;
  std::optional<CheckedModelFile::Beside> beside_;
};

TEST_F(ModelFileChecks, nothing_is_found_where_all_is_well) {
  EXPECT_TRUE(complaints("").empty());
  for (const CheckResult& r : checked(false))
    EXPECT_EQ(r.skipped.empty(), r.name != "weights.keys") << "it needs a model to hold the file against";
}

TEST_F(ModelFileChecks, numbers_that_are_none) {
  weight("layers.2.weight").data<float>()[17] = NAN;
  weight("layers.2.weight").data<float>()[40] = INFINITY;
  const auto found = complaints("weights.not_finite");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].about, "layers.2.weight");
  EXPECT_EQ(found[0].sight.tensor, "layers.2.weight");
  EXPECT_NE(found[0].seen.find("2 of"), std::string::npos) << found[0].seen;
  EXPECT_NE(found[0].seen.find("element 17"), std::string::npos) << found[0].seen;
}

TEST_F(ModelFileChecks, a_layer_that_nobody_initialised) {
  weight("layers.0.weight") = zeros(weight("layers.0.weight").size());
  const auto found = complaints("weights.constant");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].about, "layers.0.weight");
}

TEST_F(ModelFileChecks, names_of_a_wrapper) {
  for (auto& [name, t] : weights_) name = "module." + name;
  std::vector<std::string> names;
  for (const CheckResult& r : checked())
    if (!r.complaints.empty()) names.push_back(r.name);
  EXPECT_EQ(names, (std::vector<std::string>{"weights.keys", "weights.wrapped"}));
}

TEST_F(ModelFileChecks, statistics_of_a_norm) {
  const auto with = [&](float value) {
    Tensor t = full({4}, value, DType::f32);
    NamedTensors all{{"bn.running_var", t}};
    formats::save_safetensors(path_, all);
    for (const CheckResult& r : check_model_file(CheckedModelFile(formats::ModelFile::open(path_), {})))
      if (r.name == "weights.statistics") return r.complaints.size();
    return size_t{9};
  };
  EXPECT_EQ(with(1), 1u) << "as before any training";
  EXPECT_EQ(with(0), 1u);
  EXPECT_EQ(with(-0.5), 1u);
  EXPECT_EQ(with(0.7f), 0u);
}

TEST_F(ModelFileChecks, missing_unexpected_and_other_sizes) {
  weights_.erase(weights_.begin());  // layers.0.weight
  weight("layers.2.bias") = ones({7});
  weights_.emplace_back("layers.9.weight", full({2, 2}, 0.5, DType::f32));
  weight("layers.9.weight").data<float>()[0] = 1;
  const auto found = complaints("weights.keys");
  std::vector<std::string> about;
  for (const Complaint& c : found) about.push_back(c.about);
  EXPECT_EQ(about, (std::vector<std::string>{"layers.0.weight", "layers.2.bias", "layers.9.weight"}));
}

/// What is said of a file under the name of a check.
std::vector<std::string> said_of(const std::string& path, const std::string& check) {
  std::vector<std::string> about;
  for (const CheckResult& r : check_model_file(CheckedModelFile(formats::ModelFile::open(path), {})))
    for (const Complaint& c : r.complaints)
      if (r.name == check) about.push_back(c.about.empty() ? c.seen : c.about);
  return about;
}

TEST_F(ModelFileChecks, a_file_that_answers_in_training_mode) {
  for (const bool training : {true, false}) {
    formats::OnnxModel m;
    m.graph.name = "g";
    m.graph.inputs.push_back({.name = "x", .typed = true, .ranked = true, .shape = {{2, ""}, {4, ""}}});
    m.graph.outputs.push_back({.name = "z", .typed = true});
    for (const char* name : {"scale", "shift", "mean", "var"})
      m.graph.initializers.push_back({name, full({4}, name[0] == 'v' ? 0.5 : 0.25, DType::f32)});
    Tensor mode = full({}, training, DType::boolean), ratio = full({}, 0.5, DType::f32);
    m.graph.initializers.push_back({"mode", mode});
    m.graph.nodes.push_back(
        {.name = "ratio", .op_type = "Constant", .outputs = {"r"}, .attributes = {{"value", ratio}}});
    m.graph.nodes.push_back({.name = "norm",
                             .op_type = "BatchNormalization",
                             .inputs = {"x", "scale", "shift", "mean", "var"},
                             .outputs = {"y"},
                             .attributes = {{"training_mode", int64_t{training}}}});
    m.graph.nodes.push_back({.name = "drop", .op_type = "Dropout", .inputs = {"y", "r", "mode"}, .outputs = {"z"}});
    const std::string path = path_ + ".onnx";
    formats::save_onnx(path, m);
    EXPECT_EQ(said_of(path, "weights.training"),
              training ? (std::vector<std::string>{"norm", "drop"}) : std::vector<std::string>());
    EXPECT_EQ(formats::ModelFile::open(path)->nodes[0].attributes[0].second, "f32 0.5");
    std::filesystem::remove(path);
  }
}

TEST_F(ModelFileChecks, modules_of_a_program_in_training_mode_and_parameters_nobody_trains) {
  auto file = std::make_shared<formats::ModelFile>();
  file->texts = {{"drop", "__torch__.torch.nn.modules.dropout.Dropout()"},
                 {"drop.training", "True"},
                 {"fc", "__torch__.torch.nn.modules.linear.Linear()"},
                 {"fc.training", "True"},
                 {"norm", "__torch__.torch.nn.modules.batchnorm.BatchNorm1d()"},
                 {"norm.training", "False"},
                 {"optimizer/param_groups/0/params/0", "0"},
                 {"optimizer/param_groups/0/params/1", "1"}};
  for (const char* name :
       {"model/fc.weight", "model/fc.bias", "model/head.weight", "model/norm.running_var", "optimizer/state/0/exp_avg"})
    file->tensors.push_back({.name = name, .dtype = "f32", .shape = {1}, .problem = "is not there"});
  std::vector<std::string> about;
  for (const CheckResult& r : check_model_file(CheckedModelFile(file, {})))
    for (const Complaint& c : r.complaints)
      if (r.name != "weights.unreadable") about.push_back(r.name + " " + c.about + ": " + c.seen);
  EXPECT_EQ(about,
            (std::vector<std::string>{
                "weights.optimizer optimizer: the optimizer trains 2 tensors, and the model has 3 beside its "
                "running statistics",
                "weights.training drop: it is in training mode: values are set to 0 by chance in every answer"}));
}

TEST_F(ModelFileChecks, what_a_pickle_asks_for_what_is_odd_and_halves_near_their_end) {
  auto file = std::make_shared<formats::ModelFile>();
  file->foreign = {"os.system"};
  file->warnings = {"its central directory is written twice"};
  file->tensors.push_back({.name = "a", .dtype = "QInt8", .shape = {2}, .problem = "is quantized"});
  file->tensors.push_back({.name = "b", .dtype = "float16", .shape = {2}, .bytes = 4});
  file->values = [](size_t) { return full({2}, 40000, DType::f16); };
  std::vector<std::string> names;
  for (const CheckResult& r : check_model_file(CheckedModelFile(file, {})))
    if (!r.complaints.empty()) names.push_back(r.name + " " + r.complaints[0].about);
  EXPECT_EQ(names, (std::vector<std::string>{"weights.code os.system", "weights.odd ", "weights.range b",
                                             "weights.unreadable a"}));
}

TEST_F(ModelFileChecks, it_can_be_ended) {
  formats::save_safetensors(path_, weights_);
  EXPECT_THROW(CheckedModelFile(formats::ModelFile::open(path_), {}, [](uint64_t, uint64_t) { return false; }), Error);
}

}  // namespace
}  // namespace tenon::tracing
