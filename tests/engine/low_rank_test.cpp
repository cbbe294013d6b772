// Layers as two of lower rank: the same function where the rank is there, the nearest one where it is not, and why a
// layer stays one.
#include "engine/model/low_rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "engine/formats/tensor_difference.h"
#include "engine/model/graph_module.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/view.h"
#include "engine/spec/chain.h"
#include "tests/engine/normal_values.h"

namespace tenon {
namespace {

using testing_values::normal_values;
using I = int64_t;

ModelSpec conv_and_linear() {
  Chain c("net", {3, 8, 8});
  c.add("conv", "Conv2d",
        {{"out_channels", I{24}},
         {"kernel_size", std::vector<I>{3, 3}},
         {"padding", std::vector<I>{1, 1}},
         {"stride", std::vector<I>{2, 2}}});
  c.add("act", "ReLU").add("flat", "Flatten").add("wide", "Linear", {{"out_features", I{64}}}).add("act2", "Tanh");
  return c.add("head", "Linear", {{"out_features", I{4}}}).done();
}

/// The model with weights whose matrices have a rank of 5 at most.
struct Narrow {
  ModelSpec spec = conv_and_linear();
  GraphModule model{spec};
  Narrow() {
    model.initialize(2);
    const NoGrad off;
    for (const nn::Named& p : model.parameters()) {
      if (p.tensor.ndim() < 2) continue;
      const int64_t rows = p.tensor.size(0), columns = p.tensor.numel() / rows;
      Tensor w = matmul(normal_values({rows, 5}, 7), normal_values({5, columns}, 8));
      for (int64_t i = 0; i < w.numel(); ++i) w.data<float>()[i] *= 0.02f;
      Tensor to = p.tensor;
      copy_(to, reshape(w, p.tensor.size()));
    }
    model.train(false);
  }
};

const ShrinkRow& row_of(const Shrunk& s, const std::string& layer) {
  return *std::find_if(s.rows.begin(), s.rows.end(), [&](const auto& r) { return r.layer == layer; });
}

Tensor output_of(const Shrunk& s, const Tensor& x) {
  GraphModule m(s.model);
  std::map<std::string, Tensor> given(s.tensors.begin(), s.tensors.end());
  const NoGrad off;
  for (const nn::Named& n : m.state_dict()) {
    EXPECT_TRUE(given.contains(n.name)) << n.name;
    Tensor to = n.tensor;
    copy_(to, given.at(n.name));
  }
  EXPECT_EQ(given.size(), m.state_dict().size());
  m.train(false);
  return m(x);
}

TEST(LowRank, what_has_the_rank_gives_what_it_gave) {
  Narrow n;
  const Shrunk s = factor(n.spec, n.model.state_dict(), {.energy = 1 - 1e-9});
  EXPECT_EQ(row_of(s, "conv").rank, 5);
  EXPECT_EQ(row_of(s, "conv").full_rank, 24);
  EXPECT_EQ(row_of(s, "wide").rank, 5);
  EXPECT_EQ(row_of(s, "wide").full_rank, 64);
  EXPECT_LT(row_of(s, "wide").error, 1e-4);
  EXPECT_EQ(row_of(s, "head").rank, 0);
  EXPECT_EQ(row_of(s, "head").kept, "of rank 4 it would not be smaller");
  EXPECT_LT(s.parameters_after(), s.parameters() / 3);
  EXPECT_LT(s.flops_after(), s.flops());
  const NoGrad off;
  const Tensor x = normal_values({6, 3, 8, 8}, 11);
  EXPECT_LT(formats::tensor_difference(n.model(x), output_of(s, x)).relative(), 1e-4);
}

TEST(LowRank, less_energy_is_a_lower_rank_and_the_error_is_what_was_lost) {
  Narrow n;
  int64_t before = 99;
  for (const double energy : {0.99, 0.9, 0.6, 0.3}) {
    const Shrunk s = factor(n.spec, n.model.state_dict(), {.energy = energy});
    const ShrinkRow& r = row_of(s, "wide");
    EXPECT_LE(r.rank, before);
    before = r.rank;
    EXPECT_LE(r.error * r.error, 1 - energy + 1e-9);
    Tensor down, up, was;
    for (const auto& [name, t] : s.tensors) {
      if (name == "wide.down.weight") down = t;
      if (name == "wide.up.weight") up = t;
    }
    for (const nn::Named& p : n.model.parameters())
      if (p.name == "wide.weight") was = p.tensor;
    const NoGrad off;
    EXPECT_NEAR(formats::tensor_difference(was, matmul(up, down)).relative(), r.error, 1e-5);
  }
  EXPECT_LT(before, 3);
}

TEST(LowRank, layers_keep_their_wires_and_what_they_say_of_themselves) {
  Narrow n;
  const Shrunk s = factor(n.spec, n.model.state_dict(), {.energy = 0.9});
  const LayerSpec *down = s.model.find("conv.down"), *up = s.model.find("conv.up");
  ASSERT_TRUE(down && up);
  EXPECT_EQ(*down->find("stride"), AttrValue(std::vector<I>{2, 2}));
  EXPECT_EQ(*down->find("bias"), AttrValue(false));
  EXPECT_EQ(*up->find("kernel_size"), AttrValue(std::vector<I>{1, 1}));
  EXPECT_EQ(up->find("stride"), nullptr);
  EXPECT_EQ(*up->find("out_channels"), AttrValue(I{24}));
  EXPECT_EQ(s.model.find("conv"), nullptr);
  const auto wired = [&](const char* from, const char* to) {
    return std::any_of(s.model.wires.begin(), s.model.wires.end(),
                       [&](const WireSpec& w) { return w.from == from && w.to == to; });
  };
  EXPECT_TRUE(wired("input", "conv.down") && wired("conv.down", "conv.up") && wired("conv.up", "act"));
}

TEST(LowRank, what_is_not_named_or_cannot_stays_and_says_why) {
  Narrow n;
  const Shrunk s =
      factor(n.spec, n.model.state_dict(), {.energy = 0.9, .named = [](const std::string& l) { return l == "conv"; }});
  EXPECT_EQ(row_of(s, "wide").kept, "not named");
  EXPECT_EQ(row_of(s, "wide").parameters_after, row_of(s, "wide").parameters);
  const auto none = [](const std::string&) { return false; };
  EXPECT_THROW(factor(n.spec, n.model.state_dict(), {.energy = 0.9, .named = none}), Error);
  for (const double energy : {0.0, -1.0, 1.5, std::nan("")})
    EXPECT_THROW(factor(n.spec, n.model.state_dict(), {.energy = energy}), Error);
}

}  // namespace
}  // namespace tenon
