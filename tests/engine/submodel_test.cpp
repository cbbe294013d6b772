// Sub-models and weights that several layers have.
#include "engine/spec/submodel.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/python/reader.h"
#include "engine/formats/python/writer.h"
#include "engine/model/channel_groups.h"
#include "engine/model/examine.h"
#include "engine/model/graph_module.h"
#include "engine/model/low_rank.h"
#include "engine/model/shrink.h"
#include "engine/ops/create.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/chain.h"
#include "engine/train/memory_forecast.h"
#include "engine/train/open_data.h"
#include "tests/engine/sessions.h"
#include "tests/messages.h"

namespace tenon::submodel_tests {
namespace {

using testing_words::message_of;
using I = int64_t;
using Ints = std::vector<int64_t>;

void add_block(Chain& c, const std::string& scope) {
  const std::string from = c.here;
  c.add(scope + ".conv1", "Conv2d", {{"out_channels", I{4}}, {"padding", Ints{1, 1}}}).add(scope + ".relu1", "ReLU");
  c.add(scope + ".conv2", "Conv2d", {{"out_channels", I{4}}, {"padding", Ints{1, 1}}});
  c.join(scope + ".add", "Add", {scope + ".conv2", from}).add(scope + ".relu2", "ReLU");
}
/// A stem, blocks that are instances of one sub-model, and a head.
ModelSpec blocks(int count = 3) {
  Chain c("blocks", {3, 6, 6});
  c.add("stem", "Conv2d", {{"out_channels", I{4}}, {"padding", Ints{1, 1}}});
  SubModelSpec block{"Residual block", {}};
  for (int i = 0; i < count; ++i) {
    block.instances.push_back("layer." + std::to_string(i));
    add_block(c, block.instances.back());
  }
  c.add("flat", "Flatten").add("head", "Linear", {{"out_features", I{2}}});
  ModelSpec m = c.done();
  m.submodels = {block};
  return m;
}
/// The second instance has the weights of the first.
ModelSpec shared_blocks() {
  ModelSpec m = blocks();
  for (const char* conv : {"conv1", "conv2"})
    m.find(std::string("layer.1.") + conv)->shares = std::string("layer.0.") + conv;
  return m;
}
std::string faults(const ModelSpec& m) {
  std::string all;
  for (const LayerReport& r : examine(m, 2))
    if (!r.error.empty()) all += r.layer + ": " + r.error + "\n";
  return all;
}
bool wired(const ModelSpec& m, const std::string& from, const std::string& to) {
  return std::any_of(m.wires.begin(), m.wires.end(), [&](const WireSpec& w) { return w.from == from && w.to == to; });
}
int64_t parameters(const ModelSpec& m) {
  int64_t n = 0;
  for (const LayerReport& r : examine(m, 2)) n += r.parameters;
  return n;
}

TEST(SubModels, the_file_has_them_and_one_without_is_as_it_was) {
  const ModelSpec m = shared_blocks();
  EXPECT_EQ(ModelSpec::from_json(m.to_json()), m);
  ModelSpec plain = blocks();
  plain.submodels.clear();
  const std::string text = plain.to_json().dump();
  EXPECT_EQ(text.find("submodels"), std::string::npos);
  EXPECT_EQ(text.find("shares"), std::string::npos);
  nlohmann::json bad = m.to_json();
  bad["submodels"][0]["instances"][0] = 3;
  EXPECT_SAYS(message_of([&] { ModelSpec::from_json(bad); }), "sub-model 0 of the model: an instance is number");
}

TEST(SubModels, one_that_was_changed_by_itself_is_an_instance_no_longer) {
  ModelSpec m = blocks();
  m.find("layer.1.conv1")->attrs.push_back({"bias", false});
  settle_submodels(m);
  EXPECT_EQ(m.submodels.at(0).instances, (std::vector<std::string>{"layer.0", "layer.2"}));
  // Off as a whole it is one still; in parts not.
  for (LayerSpec& l : m.layers)
    if (in_scope(l.name, "layer.2")) l.off = true;
  settle_submodels(m);
  EXPECT_EQ(m.submodels.at(0).instances.size(), 2u);
  m.find("layer.2.relu1")->off = false;
  settle_submodels(m);
  EXPECT_EQ(m.submodels.at(0).instances, (std::vector<std::string>{"layer.0"}));
}

TEST(SubModels, ports_are_what_crosses_the_border) {
  const ScopePorts p = ports_of(blocks(), "layer.1");
  ASSERT_EQ(p.inputs.size(), 1u);  // read at two places
  EXPECT_EQ(p.inputs[0], (std::vector<ScopePort>{{"conv1", 0}, {"add", 1}}));
  ASSERT_EQ(p.outputs.size(), 1u);
  EXPECT_EQ(p.outputs[0].layer, "relu2");
  ModelSpec m = blocks();
  std::erase_if(m.wires, [](const WireSpec& w) { return w.to == "layer.2.conv1" || w.to == "layer.2.add"; });
  ModelSpec last = blocks(1);
  std::erase_if(last.wires, [](const WireSpec& w) { return w.to == "flat"; });
  EXPECT_EQ(ports_of(last, "layer.0").outputs, p.outputs) << "nothing reads it yet";
  EXPECT_EQ(ports_of(m, "layer.2").inputs, p.inputs) << "one that is not wired has those of the others";
}

TEST(SubModels, an_edit_of_one_instance_is_one_of_all) {
  const ModelSpec before = blocks();
  ModelSpec m = before;
  m.find("layer.1.conv1")->attrs.push_back({"bias", false});
  EXPECT_EQ(mirror_edits(before, m), (std::map<std::string, int>{{"Residual block", 2}}));
  EXPECT_EQ(*m.find("layer.2.conv1")->find("bias"), AttrValue(false));
  EXPECT_EQ(m.submodels, before.submodels);
  EXPECT_EQ(faults(m), "");
  // What is no edit of an instance leaves all alone.
  ModelSpec other = before;
  other.find("head")->attrs = {{"out_features", I{7}}};
  EXPECT_TRUE(mirror_edits(before, other).empty());
}

TEST(SubModels, layers_that_come_and_go_keep_what_is_around_wired) {
  const ModelSpec before = blocks();
  ModelSpec m = before;  // at the head of the branch, and behind the end
  m.layers.push_back({"layer.1.norm", "BatchNorm2d", {}});
  for (WireSpec& w : m.wires)
    if (w.to == "layer.1.conv1") w.to = "layer.1.norm";
  m.wires.push_back({"layer.1.norm", 0, "layer.1.conv1", 0});
  m.layers.push_back({"layer.1.drop", "Dropout", {}});
  for (WireSpec& w : m.wires)
    if (w.from == "layer.1.relu2") w.from = "layer.1.drop";
  m.wires.push_back({"layer.1.relu2", 0, "layer.1.drop", 0});
  ASSERT_EQ(faults(m), "");
  mirror_edits(before, m);
  EXPECT_EQ(faults(m), "");
  EXPECT_TRUE(wired(m, "stem", "layer.0.norm"));
  EXPECT_TRUE(wired(m, "stem", "layer.0.add"));
  EXPECT_TRUE(wired(m, "layer.0.drop", "layer.1.norm"));
  EXPECT_TRUE(wired(m, "layer.0.drop", "layer.1.add"));
  EXPECT_TRUE(wired(m, "layer.2.drop", "flat"));
  EXPECT_EQ(m.submodels, before.submodels);
  EXPECT_EQ(m.layers.size(), before.layers.size() + 6);

  const ModelSpec full = m;  // the last one goes again
  std::erase_if(m.layers, [](const LayerSpec& l) { return l.name == "layer.0.drop"; });
  std::erase_if(m.wires, [](const WireSpec& w) { return w.to == "layer.0.drop"; });
  for (WireSpec& w : m.wires)
    if (w.from == "layer.0.drop") w.from = "layer.0.relu2";
  mirror_edits(full, m);
  EXPECT_EQ(faults(m), "");
  EXPECT_TRUE(wired(m, "layer.2.relu2", "flat"));
  EXPECT_EQ(m.submodels, before.submodels);
}

TEST(SubModels, one_within_another_follows_too) {
  ModelSpec m = blocks(4);
  for (LayerSpec& l : m.layers)  // two pairs
    if (l.name.starts_with("layer."))
      l.name = std::string(l.name[6] < '2' ? "stage.0." : "stage.1.") + (l.name[6] % 2 ? "b" : "a") + l.name.substr(7);
  for (WireSpec& w : m.wires)
    for (std::string* end : {&w.from, &w.to})
      if (end->starts_with("layer."))
        *end = std::string((*end)[6] < '2' ? "stage.0." : "stage.1.") + ((*end)[6] % 2 ? "b" : "a") + end->substr(7);
  m.submodels = {{"Stage", {"stage.0", "stage.1"}}, {"Block", {"stage.0.a", "stage.0.b", "stage.1.a", "stage.1.b"}}};
  ASSERT_EQ(faults(m), "");
  EXPECT_EQ(ModelSpec::from_json(m.to_json()), m);
  const ModelSpec before = m;
  m.find("stage.1.b.relu1")->type = "GELU";
  mirror_edits(before, m);
  for (const char* relu : {"stage.0.a.relu1", "stage.0.b.relu1", "stage.1.a.relu1"})
    EXPECT_EQ(m.find(relu)->type, "GELU") << relu;
  EXPECT_EQ(m.submodels, before.submodels);
}

TEST(SubModels, layers_that_come_share_where_the_instance_does) {
  const ModelSpec before = shared_blocks();
  ModelSpec m = before;
  m.layers.push_back({"layer.2.norm", "BatchNorm2d", {}});
  for (WireSpec& w : m.wires)
    if (w.from == "layer.2.relu2") w.from = "layer.2.norm";
  m.wires.push_back({"layer.2.relu2", 0, "layer.2.norm", 0});
  mirror_edits(before, m);
  EXPECT_EQ(shared_instance(m, "layer.1"), "layer.0");
  EXPECT_EQ(m.find("layer.1.norm")->shares, "layer.0.norm");
  EXPECT_EQ(m.find("layer.2.norm")->shares, "");
  EXPECT_EQ(faults(m), "");
}

TEST(SharedWeights, keep_the_same_attributes) {
  ModelSpec before = blocks();
  before.submodels.clear();
  for (const char* l : {"layer.1.conv1", "layer.2.conv1"}) before.find(l)->shares = "layer.0.conv1";
  for (const char* told : {"layer.0.conv1", "layer.2.conv1"}) {
    ModelSpec m = before;
    m.find(told)->attrs.push_back({"bias", false});
    mirror_edits(before, m);
    for (const char* l : {"layer.0.conv1", "layer.1.conv1", "layer.2.conv1"})
      EXPECT_NE(m.find(l)->find("bias"), nullptr) << l;
    EXPECT_EQ(faults(m), "");
  }
}

TEST(SharedWeights, whose_owner_goes_have_them_themselves) {
  ModelSpec m = shared_blocks();
  m.find("layer.2.conv1")->shares = "layer.1.conv1";  // of one that shares itself
  settle_shares(m);
  EXPECT_EQ(m.find("layer.2.conv1")->shares, "layer.0.conv1");
  std::erase_if(m.layers, [](const LayerSpec& l) { return l.name == "layer.0.conv1"; });
  settle_shares(m);
  EXPECT_EQ(m.find("layer.1.conv1")->shares, "");
  EXPECT_EQ(m.find("layer.2.conv1")->shares, "layer.1.conv1");
}

TEST(SharedWeights, count_once_and_gradients_add_up) {
  const ModelSpec apart = blocks(), together = shared_blocks();
  const int64_t block = 2 * (4 * 4 * 9 + 4);
  EXPECT_EQ(parameters(together), parameters(apart) - block);
  GraphModule one(apart), other(together);
  EXPECT_EQ(other.parameter_count(), one.parameter_count() - block);
  for (const nn::Named& n : other.state_dict()) EXPECT_FALSE(n.name.starts_with("layer.1.")) << n.name;
  one.initialize(3);
  other.initialize(3);
  std::map<std::string, Tensor> a, b;
  for (const nn::Named& n : one.parameters()) a[n.name] = n.tensor;
  for (const nn::Named& n : other.parameters()) b[n.name] = n.tensor;
  {
    const NoGrad off;
    for (const auto& [name, t] : a) copy_(t, b.at(name.starts_with("layer.1.") ? "layer.0." + name.substr(8) : name));
  }
  Tensor x = empty({2, 3, 6, 6});
  Philox random{3, 4};
  for (int64_t i = 0; i < x.numel(); ++i)
    x.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  const Tensor y = one(x), z = other(x);
  for (int64_t i = 0; i < y.numel(); ++i) EXPECT_EQ(y.data<float>()[i], z.data<float>()[i]);
  backward(sum(y));
  backward(sum(z));
  for (const char* name : {"layer.0.conv1.weight", "layer.0.conv2.bias"}) {
    const Tensor first = contiguous(grad_of(a.at(name))),
                 second = contiguous(grad_of(a.at("layer.1" + std::string(name + 7))));
    const Tensor both = contiguous(grad_of(b.at(name)));
    for (int64_t i = 0; i < both.numel(); ++i)
      EXPECT_NEAR(both.data<float>()[i], first.data<float>()[i] + second.data<float>()[i],
                  1e-4 * (1 + std::abs(both.data<float>()[i])));
  }
}

TEST(SharedWeights, what_does_not_go_together_says_so) {
  ModelSpec m = shared_blocks();
  m.find("layer.1.conv1")->shares = "no";
  EXPECT_SAYS(faults(m), "layer.1.conv1: it shares the weights of \"no\", which is no layer");
  m.find("layer.1.conv1")->shares = "head";
  EXPECT_SAYS(faults(m), "layer.1.conv1: it shares the weights of \"head\", which is a Linear, not a Conv2d");
  m.find("layer.1.conv1")->shares = "stem";
  EXPECT_SAYS(faults(m), "layer.1.conv1: it shares the weights of \"stem\", whose in_channels is 3, not 4");
  EXPECT_SAYS(message_of([&] { GraphModule g(m); }), "layer layer.1.conv1: it shares the weights of \"stem\", whose");
  m = shared_blocks();
  m.find("layer.0.conv1")->off = true;
  EXPECT_SAYS(faults(m), "which is off");
}

TEST(SharedWeights, train_and_go_on_from_a_checkpoint) {
  Chain c("shared", {2});
  c.add("in", "Linear", {{"out_features", I{8}}}).add("a.fc", "Linear", {{"out_features", I{8}}}).add("a.act", "Tanh");
  c.add("b.fc", "Linear", {{"out_features", I{8}}}).add("b.act", "Tanh").add("out", "Linear", {{"out_features", I{2}}});
  ModelSpec m = c.done();
  m.submodels = {{"Layer", {"a", "b"}}};
  m.find("b.fc")->shares = "a.fc";
  const Recipe recipe = testing_sessions::spirals({{"data.batch_size", "16"}, {"optimizer.type", "adam"}});
  TrainingSession s(m, recipe);
  for (int i = 0; i < 5; ++i) s.step();
  const Checkpoint half = s.save();
  for (int i = 0; i < 5; ++i) s.step();
  TrainingSession again(m, recipe);
  again.load(half);
  for (int i = 0; i < 5; ++i) again.step();
  testing_sessions::expect_same(s.save(), again.save());
  for (const auto& [name, t] : half.tensors) EXPECT_EQ(name.find("b.fc"), std::string::npos) << name;
  ModelSpec apart = m;
  apart.find("b.fc")->shares.clear();
  const auto data = open_data(recipe);
  EXPECT_LT(forecast_memory(m, recipe, outline_of(data, recipe)).checkpoint_bytes,
            forecast_memory(apart, recipe, outline_of(data, recipe)).checkpoint_bytes);
}

TEST(SharedWeights, are_one_initializer_of_an_exported_model) {
  const auto initializers = [](const ModelSpec& spec) {
    GraphModule m(spec);
    m.initialize(1);
    m.eval();
    return formats::to_onnx(trace_graph(m, {DType::f32, {}, {2, 3, 6, 6}}), "net").graph.initializers.size();
  };
  EXPECT_EQ(initializers(shared_blocks()), initializers(blocks()) - 4);
}

TEST(SharedWeights, channels_and_ranks_stay) {
  const ModelSpec m = shared_blocks();
  for (const ChannelGroup& g : channel_groups(m))
    for (const std::string& maker : g.makers) EXPECT_FALSE(maker.starts_with("layer.1") && g.fixed.empty()) << maker;
  GraphModule module(m);
  module.initialize(1);
  const Shrunk two = factor(m, module.state_dict(), {.energy = 0.3});
  for (const ShrinkRow& r : two.rows)
    if (r.layer == "layer.0.conv1") {
      EXPECT_EQ(r.kept, "layer.1.conv1 shares its weights");
    }
  EXPECT_NE(two.model.find("layer.2.conv1.down"), nullptr);
  EXPECT_EQ(faults(two.model), "");
}

TEST(SubModels, are_classes_of_the_source_and_come_back) {
  for (const ModelSpec& m : {blocks(), shared_blocks(), blocks(1)}) {
    const std::string written = python::write_model(m);
    EXPECT_NE(written.find("class ResidualBlock(nn.Module):\n    \"\"\"Sub-model: Residual block\"\"\""),
              std::string::npos)
        << written;
    const ModelSpec read = python::read_model(written).model;
    EXPECT_EQ(python::difference(m, read), "") << written;
    EXPECT_EQ(python::write_model(read), written);
    EXPECT_EQ(python::read_model(written, &m).model, m) << written;
  }
  // A group that is like them, and is none, has a class of its own.
  ModelSpec m = blocks();
  m.submodels[0].instances.pop_back();
  EXPECT_EQ(python::difference(m, python::read_model(python::write_model(m)).model), "");
}

TEST(SharedWeights, are_one_module_of_the_source) {
  const std::string whole = python::write_model(shared_blocks());
  EXPECT_SAYS(whole, "self.layer[1].conv1 = self.layer[0].conv1\n");
  ModelSpec m = blocks();
  m.submodels.clear();
  m.find("layer.2.conv1")->shares = "layer.0.conv2";
  m.find("layer.1.conv2")->shares = "layer.1.conv1";
  const std::string written = python::write_model(m);
  EXPECT_SAYS(written, "self.conv2 = self.conv1\n");
  EXPECT_SAYS(written, "self.layer[2].conv1 = self.layer[0].conv2\n");
  const ModelSpec read = python::read_model(written).model;
  EXPECT_EQ(python::difference(m, read), "") << written;
  EXPECT_EQ(python::read_model(written, &m).model, m) << written;
}

}  // namespace
}  // namespace tenon::submodel_tests
