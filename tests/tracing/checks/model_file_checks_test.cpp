// What may be wrong with a file of weights, planted and found; nothing in one that a template's training wrote.
#include "tracing/checks/model_file_checks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "engine/autograd/autograd.h"
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

TEST_F(ModelFileChecks, it_can_be_ended) {
  formats::save_safetensors(path_, weights_);
  EXPECT_THROW(CheckedModelFile(formats::ModelFile::open(path_), {}, [](uint64_t, uint64_t) { return false; }), Error);
}

}  // namespace
}  // namespace tenon::tracing
