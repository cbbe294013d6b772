// Channels that are taken out of a model: which go together, and what is left of it.
#include "engine/model/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/model/examine.h"
#include "engine/model/graph_module.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/random.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "tests/engine/files.h"

namespace tenon::shrink_tests {
namespace {

using testing_words::error_of;
using testing_words::has;
using I = int64_t;
using Ints = std::vector<int64_t>;

std::vector<Attr> conv(I out, I kernel = 3, I groups = 1) {
  return {{"out_channels", out},
          {"kernel_size", Ints{kernel, kernel}},
          {"padding", Ints{kernel / 2, kernel / 2}},
          {"groups", groups}};
}
/// A residual block, a depthwise convolution, a Concat and a head that reads through Flatten.
ModelSpec branches() {
  Chain c("branches", {3, 8, 8});
  c.add("stem", "Conv2d", conv(8)).add("bn", "BatchNorm2d").add("relu", "ReLU");
  c.add("inner", "Conv2d", conv(12)).add("act", "PReLU", {{"num_parameters", I{12}}}).add("back", "Conv2d", conv(8));
  c.join("sum", "Add", {"relu", "back"}).add("deep", "Conv2d", conv(8, 3, 8)).add("pool", "MaxPool2d");
  c.at("pool").add("left", "Conv2d", conv(4)).at("pool").add("right", "Conv2d", conv(6));
  c.join("cat", "Concat", {"left", "right"}).add("flat", "Flatten").add("drop", "Dropout");
  return c.add("fc", "Linear", {{"out_features", I{16}}})
      .add("tanh", "Tanh")
      .add("head", "Linear", {{"out_features", I{5}}})
      .done();
}

struct Built {
  std::shared_ptr<GraphModule> module;
  explicit Built(const ModelSpec& spec, uint64_t seed = 1) : module(std::make_shared<GraphModule>(spec)) {
    module->initialize(seed);
    module->eval();
  }
  Tensor operator()(const Tensor& x) { return (*module)(x); }
  void take(const std::vector<std::pair<std::string, Tensor>>& tensors) {
    const auto mine = module->state_dict();
    ASSERT_EQ(mine.size(), tensors.size());
    const NoGrad off;
    for (size_t i = 0; i < mine.size(); ++i) {
      ASSERT_EQ(mine[i].name, tensors[i].first);
      ASSERT_TRUE(mine[i].tensor.size() == tensors[i].second.size()) << mine[i].name;
      copy_(mine[i].tensor, tensors[i].second);
    }
  }
};

const ChannelGroup& group_of(const std::vector<ChannelGroup>& all, const std::string& maker) {
  for (const ChannelGroup& g : all)
    if (std::find(g.makers.begin(), g.makers.end(), maker) != g.makers.end()) return g;
  throw Error("no group of " + maker);
}

TEST(Shrink, channels_that_are_added_up_go_together) {
  const auto all = channel_groups(branches());
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(group_of(all, "stem").makers, (std::vector<std::string>{"stem", "back"}));
  EXPECT_EQ(group_of(all, "stem").fixed, "");
  EXPECT_EQ(group_of(all, "head").fixed, "the model's output");
  // fc reads 4 channels of 4 x 4 elements, then 6.
  const ChannelGroup& right = group_of(all, "right");
  ASSERT_EQ(right.read.size(), 1u);
  EXPECT_EQ(right.read[0].tensor, "fc.weight");
  EXPECT_EQ(right.read[0].begin, 4 * 16);
  EXPECT_EQ(right.read[0].repeat, 16);
}

TEST(Shrink, what_is_not_followed_holds_its_channels_and_says_so) {
  Chain c("norm", {6});
  c.add("a", "Linear", {{"out_features", I{8}}}).add("soft", "Softmax").add("b", "Linear", {{"out_features", I{2}}});
  const auto all = channel_groups(c.done());
  EXPECT_EQ(group_of(all, "a").fixed, "soft (Softmax) is not followed");
}

TEST(Shrink, a_norm_over_all_channels_keeps_each_of_them_and_says_so) {
  Chain c("norm", {6});
  c.add("a", "Linear", {{"out_features", I{8}}}).add("ln", "LayerNorm").add("b", "Linear", {{"out_features", I{2}}});
  const ModelSpec spec = c.done();
  const auto all = channel_groups(spec);
  EXPECT_EQ(group_of(all, "a").fixed, "");
  EXPECT_EQ(group_of(all, "a").bound, "ln (LayerNorm) sees all of them");
  Built whole(spec);
  EXPECT_TRUE(has(error_of([&] { shrink(spec, whole.module->state_dict(), {.amount = 0.5}); }), "no channel"));
}

TEST(Shrink, channels_that_give_nothing_go_without_a_difference) {
  const ModelSpec spec = branches();
  Built whole(spec);
  const auto groups = channel_groups(spec);
  {
    const NoGrad off;  // every other channel of each group is zero, from its filter to where it is read
    const auto state = whole.module->state_dict();
    for (const ChannelGroup& g : groups) {
      if (!g.fixed.empty()) continue;
      for (const auto* list : {&g.made, &g.along})
        for (const ChannelSlot& s : *list)
          for (const nn::Named& n : state)
            if (n.name == s.tensor)
              for (I i = 0; i < g.channels; i += 2) fill(narrow(n.tensor, s.axis, s.begin + i * s.repeat, s.repeat), 0);
    }
  }
  const Shrunk small = shrink(spec, whole.module->state_dict(), {.zeros = true});
  Built other(small.model, 2);
  other.take(small.tensors);
  Generator draws{5};
  const Tensor x = randn({4, 3, 8, 8}, DType::f32, &draws);
  EXPECT_LT(item(amax(abs(sub(whole(x), other(x))))), 1e-5);
  EXPECT_GT(item(amax(abs(whole(x)))), 1e-2);
  for (const ShrinkRow& r : small.rows)
    if (r.channels > 0) {
      EXPECT_EQ(r.channels_after, r.layer == "head" ? 5 : r.channels / 2) << r.layer;
    }
  EXPECT_EQ(small.parameters(), whole.module->parameter_count());
  EXPECT_EQ(small.parameters_after(), other.module->parameter_count());
  EXPECT_LT(small.flops_after(), small.flops() / 2);
  // What the builder adds up, layers without parameters too.
  double all = 0;
  for (const LayerReport& r : examine(spec, 1)) all += r.flops;
  EXPECT_DOUBLE_EQ(small.flops(), all);
}

TEST(Shrink, the_channels_of_least_weight_go_and_named_ones_alone) {
  const ModelSpec spec = branches();
  Built whole(spec);
  const auto named = [](const std::string& l) { return l == "fc" || l == "stem"; };
  const Shrunk small = shrink(spec, whole.module->state_dict(), {.amount = 0.25, .named = named});
  for (const ShrinkRow& r : small.rows) {
    if (r.layer == "fc") {
      EXPECT_EQ(r.channels_after, 12);
    } else if (r.layer == "stem") {
      EXPECT_EQ(r.kept, "goes together with back, which is not named");
    } else if (r.layer == "inner") {
      EXPECT_EQ(r.kept, "not named");
    }
  }
  for (const auto& [name, t] : small.tensors) {
    if (name != "fc.weight") continue;
    EXPECT_TRUE(t.size() == (Shape{12, 160}));
    Tensor before;
    for (const nn::Named& n : whole.module->state_dict())
      if (n.name == name) before = detach(n.tensor);
    std::vector<double> was, is;
    for (I i = 0; i < 16; ++i) was.push_back(item(sum(abs(narrow(before, 0, i, 1)))));
    for (I i = 0; i < 12; ++i) is.push_back(item(sum(abs(narrow(t, 0, i, 1)))));
    std::sort(was.begin(), was.end());
    EXPECT_FLOAT_EQ(static_cast<float>(*std::min_element(is.begin(), is.end())), static_cast<float>(was[4]));
  }
}

TEST(Shrink, refuses_what_would_change_nothing) {
  const ModelSpec spec = branches();
  Built whole(spec);
  const auto state = whole.module->state_dict();
  EXPECT_THROW(shrink(spec, state, {.amount = 1}), Error);
  EXPECT_THROW(shrink(spec, state, {.zeros = true}), Error);
  EXPECT_THROW(shrink(spec, state, {.named = [](const std::string&) { return false; }}), Error);
}

TEST(Shrink, models_of_the_templates_stay_models) {
  for (const char* name : {"fashion-cnn", "fashion-mlp", "autoencoder", "resnet18", "u-net"}) {
    const ModelSpec& spec = find_template(name).model;
    GraphModule whole(spec);
    whole.initialize(0);
    const Shrunk small = shrink(spec, whole.state_dict(), {});
    Built other(small.model);
    other.take(small.tensors);
    EXPECT_LT(small.parameters_after(), small.parameters() * 0.5) << name;
  }
}

}  // namespace
}  // namespace tenon::shrink_tests
