#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "engine/model/examine.h"
#include "engine/model/graph_module.h"
#include "engine/nn/layers.h"
#include "engine/nn/random_state.h"
#include "engine/op/op.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"
#include "engine/templates/templates.h"
#include "tests/messages.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

using testing_words::error_of;

ModelSpec chain(std::vector<LayerSpec> layers) {
  ModelSpec m;
  m.name = "test";
  for (size_t i = 1; i < layers.size(); ++i) m.wires.push_back({layers[i - 1].name, 0, layers[i].name, 0});
  m.layers = std::move(layers);
  return m;
}
LayerSpec input(Ints shape) { return {"in", "Input", {{"shape", std::move(shape)}}}; }
LayerSpec output() { return {"out", "Output", {}}; }
const LayerReport& report(const std::vector<LayerReport>& all, const std::string& name) {
  for (const LayerReport& r : all)
    if (r.layer == name) return r;
  throw std::runtime_error("no report of " + name);
}

TEST(ModelSpec, SurvivesJson) {
  for (const Template& t : templates()) {
    EXPECT_EQ(ModelSpec::from_json(t.model.to_json()), t.model);
    EXPECT_EQ(ModelSpec::from_json(nlohmann::json::parse(t.model.to_json().dump())), t.model);
  }
  ModelSpec m = chain({input({3}), {"d", "Dropout", {{"p", 1.0}}, 1.5, -2}, output()});
  ModelSpec back = ModelSpec::from_json(nlohmann::json::parse(m.to_json().dump()));
  EXPECT_EQ(back, m);
  EXPECT_TRUE(std::holds_alternative<double>(*back.find("d")->find("p")));  // 1.0 stays a number, not a whole one
}

TEST(ModelSpec, BadJsonNamesTheKey) {
  auto load = [](const char* text) { return error_of([&] { ModelSpec::from_json(nlohmann::json::parse(text)); }); };
  EXPECT_SAYS(load("[]"), "object");
  EXPECT_SAYS(load("{}"), "\"name\"");
  EXPECT_SAYS(load(R"({"name": 3})"), "\"name\"");
  EXPECT_SAYS(load(R"({"name": "m", "layers": [{"name": "a"}], "wires": []})"), "layer 0 of the model has no \"type\"");
  EXPECT_SAYS(
      load(
          R"({"name": "m", "layers": [{"name": "a", "type": "ReLU", "attrs": [{"name": "k", "value": {}}]}], "wires": []})"),
      "attribute k");
  EXPECT_SAYS(load(R"({"name": "m", "layers": [], "wires": [{"from": "a"}]})"), "wire 0 of the model has no \"to\"");
  EXPECT_SAYS(load(R"({"name": "m", "layers": [], "wires": [{"from": "a", "to": "b", "to_port": -1}]})"), "to_port");
}

TEST(ModelSpec, TopologicalOrderIsStableAndNamesACircle) {
  ModelSpec m;
  for (const char* n : {"d", "c", "b", "a"}) m.layers.push_back({n, "ReLU", {}});
  m.wires = {{"a", 0, "c", 0}, {"b", 0, "c", 0}, {"c", 0, "d", 0}};
  std::string order;
  for (const LayerSpec* l : m.topological()) order += l->name;
  EXPECT_EQ(order, "bacd");
  m.wires.push_back({"c", 0, "b", 0});
  std::string e = error_of([&] { m.topological(); });
  EXPECT_TRUE(e.find("\"b\"") != std::string::npos || e.find("\"c\"") != std::string::npos)
      << e;  // d only lies behind the circle
  m.wires = {{"a", 0, "nobody", 0}};
  EXPECT_SAYS(error_of([&] { m.topological(); }), "nobody");
  m.wires.clear();
  m.layers.push_back({"", "Tanh", {}});
  EXPECT_SAYS(error_of([&] { m.topological(); }), "no name");
  m.layers.back().name = "a";
  EXPECT_SAYS(error_of([&] { m.topological(); }), "two layers are called \"a\"");
}

TEST(Layers, EveryTypeIsDescribedOnce) {
  std::set<std::string> seen;
  for (const LayerDef& def : layers()) {
    const LayerInfo& info = def.info;
    EXPECT_TRUE(seen.insert(info.type).second);
    EXPECT_FALSE(info.help.empty()) << info.type;
    EXPECT_FALSE(info.group.empty()) << info.type;
    EXPECT_EQ(find_layer_type(info.type)->type, info.type);
    for (const AttrDef& a : info.attrs) EXPECT_FALSE(a.help.empty()) << info.type << "." << a.name;
  }
  for (const char* type :
       {"Input", "Output", "Linear", "Conv2d", "BatchNorm2d", "MaxPool2d", "ReLU", "Dropout", "Flatten"})
    EXPECT_TRUE(seen.count(type)) << type;
  EXPECT_EQ(find_layer_type("Nothing"), nullptr);
}

TEST(Layers, EveryTypeWorksWithItsDefaults) {
  for (const LayerDef& def : layers()) {
    const LayerInfo& info = def.info;
    if (info.inputs == 0 || info.outputs == 0) continue;
    SCOPED_TRACE(info.type);
    LayerSpec spec{"layer", info.type, {}};
    std::vector<Tensor> in, none;
    std::vector<Meta> metas;
    for (int i = 0; i < info.inputs; ++i) {
      LayerExample example = static_cast<size_t>(i) < info.examples.size() ? info.examples[static_cast<size_t>(i)]
                                                                           : LayerExample{{2, 3, 8, 8}};
      bool left_out = i >= info.inputs - info.optional && static_cast<size_t>(i) >= info.examples.size();
      in.push_back(left_out ? Tensor()
                            : full(Shape(example.shape), is_floating(example.dtype) ? 0.5 : 1, example.dtype));
      none.push_back(left_out ? Tensor() : empty(in.back().size(), example.dtype, {DeviceType::meta}));
      metas.push_back(left_out ? Meta{} : in.back().meta());
    }
    auto module = make_layer(spec, metas, {});
    module->initialize(1, "layer");
    Tensor y = (*module)(in);
    EXPECT_FALSE(module->describe().empty());
    auto meta = make_layer(spec, metas, {DeviceType::meta});
    Tensor shape = (*meta)(none);
    EXPECT_TRUE(shape.is_meta());
    EXPECT_EQ(to_string(shape.size()), to_string(y.size()));
    EXPECT_EQ(meta->parameter_count(), module->parameter_count());
  }
}

TEST(Layers, AttributesAreChecked) {
  Meta x{DType::f32, {}, {2, 3, 8, 8}};
  auto made = [&](std::vector<Attr> attrs, const char* type = "Conv2d") {
    return error_of([&] { make_layer({"c", type, attrs}, std::span(&x, 1), {}); });
  };
  EXPECT_SAYS(made({{"kernal_size", Ints{3}}}), "did you mean kernel_size");
  EXPECT_SAYS(made({{"out_channels", std::string("many")}}), "Conv2d.out_channels = \"many\": it is a whole number");
  EXPECT_SAYS(made({{"out_channels", int64_t{0}}}), "out_channels = 0: it is at least 1");
  EXPECT_SAYS(made({{"kernel_size", Ints{1, 2, 3}}}), "3 numbers");
  EXPECT_SAYS(made({{"in_channels", int64_t{4}}}), "has 3");
  EXPECT_SAYS(made({{"groups", int64_t{2}}}), "groups");
  EXPECT_SAYS(made({{"p", 1.5}}, "Dropout"), "Dropout.p = 1.5: it is at most 1");
  EXPECT_SAYS(made({}, "Conv2D"), "Conv2d");
  EXPECT_EQ(made({{"kernel_size", int64_t{5}}, {"out_channels", int64_t{2}}}),
            "no error");  // one number stands for both
}

TEST(Examine, FashionCnn) {
  auto all = examine(find_template("fashion-cnn").model, 64);
  int64_t parameters = 0;
  double flops = 0;
  for (const LayerReport& r : all) {
    EXPECT_EQ(r.error, "") << r.layer;
    parameters += r.parameters;
    flops += r.flops;
  }
  EXPECT_EQ(parameters, 32 * 9 + 32 + 64 * 32 * 9 + 64 + 3136 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(report(all, "features.3").outputs.at(0), "f32 [64, 64, 14, 14]");
  EXPECT_EQ(report(all, "flatten").outputs.at(0), "f32 [64, 3136]");
  EXPECT_EQ(report(all, "output").inputs.at(0), "f32 [64, 10]");
  EXPECT_EQ(report(all, "features.0").output_bytes, 64 * 32 * 28 * 28 * 4);
  EXPECT_DOUBLE_EQ(report(all, "features.3").flops, 2.0 * 64 * 64 * 14 * 14 * 32 * 9);
  EXPECT_GT(flops, 2.0 * 64 * (14 * 14 * 64 * 288 + 3136 * 128));
}

TEST(Examine, ErrorsStandAtTheLayerThatCausesThem) {
  auto all = examine(
      chain({input({3, 8, 8}), {"c", "Conv2d", {{"in_channels", int64_t{4}}}}, {"r", "ReLU", {}}, output()}), 4);
  EXPECT_SAYS(report(all, "c").error, "in_channels is 4");
  EXPECT_NE(report(all, "c").hint, "");
  EXPECT_EQ(report(all, "r").error, "");  // it has no fault of its own
  EXPECT_TRUE(report(all, "r").outputs.empty());
  EXPECT_EQ(report(all, "in").outputs.at(0), "f32 [4, 3, 8, 8]");

  all = examine(chain({input({3, 8, 8}), {"p", "MaxPool2d", {{"kernel_size", Ints{9}}}}, output()}), 4);
  EXPECT_SAYS(report(all, "p").error, "does not fit");

  ModelSpec m = chain({input({4}), {"a", "Add", {}}, output()});
  EXPECT_SAYS(report(examine(m, 2), "a").error, "nothing is wired to its input 1");
  m.wires.push_back({"in", 0, "a", 1});
  EXPECT_EQ(report(examine(m, 2), "a").error, "");
  m.wires.push_back({"in", 0, "a", 1});
  EXPECT_SAYS(report(examine(m, 2), "a").error, "two wires");

  m = chain({input({4}), {"a", "ReLU", {}}, {"b", "ReLU", {}}});
  m.wires.push_back({"b", 0, "a", 0});
  bool said = false;
  for (const LayerReport& r : examine(m, 2)) said |= !r.error.empty();
  EXPECT_TRUE(said);
  EXPECT_FALSE(examine(ModelSpec{}, 1).empty());
  EXPECT_SAYS(examine(chain({input({2}), {"x", "Nonsense", {}}, output()}), 1).at(1).error, "no layer type");
  EXPECT_SAYS(examine(chain({{"in", "Input", {{"shape", std::string("big")}}}, output()}), 1).at(0).error,
              "Input.shape = \"big\": it is a list of whole numbers");
}

TEST(Examine, ALayerThatIsOffIsPassedBy) {
  ModelSpec m = chain({input({3, 8, 8}), {"c", "Conv2d", {{"out_channels", int64_t{5}}}}, {"r", "ReLU", {}}, output()});
  ASSERT_EQ(report(examine(m, 2), "r").outputs.at(0), "f32 [2, 5, 6, 6]");
  m.find("c")->off = true;
  auto all = examine(m, 2);
  EXPECT_EQ(report(all, "r").outputs.at(0), "f32 [2, 3, 8, 8]");
  EXPECT_EQ(report(all, "c").parameters, 0);
  EXPECT_EQ(report(all, "c").error, "");
  m.find("r")->off = true;  // two in a row
  EXPECT_EQ(report(examine(m, 2), "out").inputs.at(0), "f32 [2, 3, 8, 8]");
  GraphModule module(m, {});
  EXPECT_EQ(module.parameter_count(), 0);
  m.find("in")->off = true;
  EXPECT_SAYS(report(examine(m, 2), "in").error, "is off");
  // What a shortcut joins is its first input.
  ModelSpec add = chain({input({4}), {"r", "ReLU", {}}, {"a", "Add", {}}, output()});
  add.wires.push_back({"in", 0, "a", 1});
  add.find("a")->off = true;
  EXPECT_EQ(report(examine(add, 2), "out").error, "");
}

TEST(ModelSpec, OffAndCommentsAreKeptAndOldFilesAreAsTheyWere) {
  ModelSpec m = chain({input({4}), {"r", "ReLU", {}}, output()});
  EXPECT_EQ(m.to_json().dump().find("off"), std::string::npos);
  m.find("r")->off = true;
  m.find("r")->comment = "why";
  EXPECT_EQ(ModelSpec::from_json(m.to_json()), m);
  const auto bad = nlohmann::json::parse(R"({"name": "m", "layers": [{"name": "a", "type": "ReLU", "off": 1}],
                                             "wires": []})");
  EXPECT_SAYS(error_of([&] { ModelSpec::from_json(bad); }), "\"off\"");
}

TEST(Examiner, SaysWhatExamineSaysAfterEveryEdit) {
  Examiner examiner;
  ModelSpec m = find_template("resnet18").model;
  auto same = [&](int64_t batch) {
    const auto a = examiner.examine(m, batch), b = examine(m, batch);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      SCOPED_TRACE(a[i].layer);
      EXPECT_EQ(a[i].inputs, b[i].inputs);
      EXPECT_EQ(a[i].outputs, b[i].outputs);
      EXPECT_EQ(a[i].parameters, b[i].parameters);
      EXPECT_EQ(a[i].parameter_names, b[i].parameter_names);
      EXPECT_EQ(a[i].flops, b[i].flops);
      EXPECT_EQ(a[i].error, b[i].error);
    }
  };
  same(4);
  m.find("layer2.0.conv1")->attrs[0].value = int64_t{96};
  same(4);
  same(1);
  m.wires.pop_back();
  same(4);
  m.layers[5].name = "other";
  same(4);
}

TEST(GraphModule, RunsABranchAndFreesNothingTooEarly) {
  // y = tanh(x W) + x W, where the sum's second input is used after the first branch is done.
  ModelSpec m;
  m.name = "branch";
  m.layers = {
      input({3}), {"fc", "Linear", {{"out_features", int64_t{2}}}}, {"t", "Tanh", {}}, {"sum", "Add", {}}, output()};
  m.wires = {{"in", 0, "fc", 0}, {"fc", 0, "t", 0}, {"t", 0, "sum", 0}, {"fc", 0, "sum", 1}, {"sum", 0, "out", 0}};
  GraphModule g(m);
  g.initialize(7);
  EXPECT_EQ(to_string(g.output().shape), "[2]");
  auto p = g.parameters();
  ASSERT_EQ(p.size(), 2u);
  EXPECT_EQ(p[0].name, "fc.weight");
  Tensor x = full({1, 3}, 0.5);
  Tensor y = g(x);
  for (int o = 0; o < 2; ++o) {
    double s = p[1].tensor.data<float>()[o];
    for (int i = 0; i < 3; ++i) s += 0.5 * p[0].tensor.data<float>()[o * 3 + i];
    EXPECT_NEAR(y.data<float>()[o], std::tanh(s) + s, 1e-6);
  }
  EXPECT_SAYS(error_of([&] { g(full({1, 4}, 0)); }), "[3]");
  EXPECT_SAYS(error_of([&] { GraphModule(chain({input({3}), {"c", "Conv2d", {}}, output()})); }), "layer c");
}

TEST(Init, IsPyTorchsRangeAndAPureFunctionOfSeedAndPath) {
  nn::Linear a(400, 300), b(400, 300), c(400, 300), d(400, 300);
  a.initialize(1, "fc");
  b.initialize(1, "fc");
  c.initialize(1, "other");
  d.initialize(2, "fc");
  auto w = [](const nn::Linear& l) { return l.parameters()[0].tensor; };
  double lo = 0, hi = 0, sum = 0;
  int same_c = 0, same_d = 0;
  for (int64_t i = 0; i < 400 * 300; ++i) {
    double v = w(a).data<float>()[i];
    lo = std::min(lo, v), hi = std::max(hi, v), sum += v;
    ASSERT_EQ(v, w(b).data<float>()[i]);
    same_c += v == w(c).data<float>()[i];
    same_d += v == w(d).data<float>()[i];
  }
  EXPECT_LT(same_c + same_d, 100);
  EXPECT_NEAR(hi, 1.0 / 20, 1e-4);  // 1 / sqrt(400)
  EXPECT_NEAR(lo, -1.0 / 20, 1e-4);
  EXPECT_NEAR(sum / (400 * 300), 0, 3e-4);
}

TEST(Linear, TakesAnyNumberOfAxes) {
  nn::Linear fc(3, 2);
  fc.initialize(1, "fc");
  Tensor x = empty({2, 4, 3});
  for (int64_t i = 0; i < 24; ++i) x.data<float>()[i] = static_cast<float>(i) / 24;
  Tensor y = fc(x), flat = fc(view(x, {8, 3})), one = fc(select(select(x, 0, 1), 0, 2));
  EXPECT_EQ(to_string(y.size()), "[2, 4, 2]");
  EXPECT_EQ(to_string(one.size()), "[2]");
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(y.data<float>()[i], flat.data<float>()[i]);
  for (int64_t i = 0; i < 2; ++i) EXPECT_NEAR(one.data<float>()[i], y.data<float>()[12 + i], 1e-6);
  EXPECT_SAYS(error_of([&] { fc(full({2, 5}, 0)); }), "its last axis must be 3");
}

TEST(Dropout, KeepsTheMeanAndRepeatsWithTheState) {
  nn::Dropout drop(0.25);
  drop.initialize(1, "drop");
  Tensor x = full({1000, 40}, 1), a, b, c, other;
  {
    nn::RandomScope r({5, 3, 0});
    a = drop(x);
    other = drop(x);
  }
  {
    nn::RandomScope r({5, 3, 0});
    b = drop(x);
  }
  {
    nn::RandomScope r({5, 4, 0});
    c = drop(x);
  }
  int64_t zeros = 0, differ_c = 0, differ_other = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    float v = a.data<float>()[i];
    ASSERT_TRUE(v == 0 || std::abs(v - 4.0f / 3) < 1e-6f);
    zeros += v == 0;
    ASSERT_EQ(v, b.data<float>()[i]);
    differ_c += v != c.data<float>()[i];
    differ_other += v != other.data<float>()[i];
  }
  EXPECT_NEAR(static_cast<double>(zeros) / 40000, 0.25, 0.01);
  EXPECT_GT(differ_c, 10000);
  EXPECT_GT(differ_other, 10000);
  drop.train(false);
  EXPECT_TRUE(drop(x).same(x));
}

TEST(BatchNorm2d, RunningStatisticsFollowTheBatches) {
  nn::BatchNorm2d norm(2);
  norm.initialize(0, "bn");
  Tensor x = empty({4, 2});
  for (int i = 0; i < 8; ++i) x.data<float>()[i] = static_cast<float>(i * i);
  double mean[2] = {0, 0}, var[2] = {0, 0};
  for (int i = 0; i < 8; ++i) mean[i % 2] += i * i / 4.0;
  for (int i = 0; i < 8; ++i) var[i % 2] += std::pow(i * i - mean[i % 2], 2) / 3.0;  // unbiased
  norm(x);
  norm(x);
  auto buffers = norm.buffers();
  ASSERT_EQ(buffers[0].name, "running_mean");
  for (int c = 0; c < 2; ++c) {
    EXPECT_NEAR(buffers[0].tensor.data<float>()[c], mean[c] * 0.19, 1e-4);
    EXPECT_NEAR(buffers[1].tensor.data<float>()[c], 0.81 + var[c] * 0.19, 1e-3);
  }
  norm.train(false);
  Tensor y = norm(x);
  EXPECT_NEAR(y.data<float>()[0], (0 - mean[0] * 0.19) / std::sqrt(0.81 + var[0] * 0.19 + 1e-5), 1e-4);
  EXPECT_NEAR(buffers[0].tensor.data<float>()[0], mean[0] * 0.19, 1e-4);  // evaluation changes nothing
}

TEST(Module, AttributesOpsToItsPath) {
  nn::Sequential net({std::make_shared<nn::Linear>(3, 4), nn::relu(), std::make_shared<nn::Linear>(4, 2)});
  net.initialize(1, "net");
  struct Paths : OpObserver {
    std::vector<std::string> seen;
    void after(const Call& c, int64_t, int64_t) override {
      seen.push_back(std::string(c.op->info.name) + "@" + module_path(t_state.origin.module));
    }
  } paths;
  {
    ObserveScope scope(paths);
    net(full({2, 3}, 1));
  }
  EXPECT_EQ(paths.seen, (std::vector<std::string>{"linear@net.0", "relu@net.1", "linear@net.2"}));
}

TEST(Templates, AreFoundByNameAndFitTheirData) {
  EXPECT_GE(templates().size(), 3u);
  for (const char* name : {"fashion-cnn", "fashion-mlp", "spirals"}) EXPECT_EQ(find_template(name).name, name);
  EXPECT_SAYS(error_of([] { find_template("fashion-cn"); }), "did you mean fashion-cnn");
}

}  // namespace
}  // namespace tenon
