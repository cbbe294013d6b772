// Quantizing while training: what layers compute on, which gradients they get, and that a run that goes on goes on with
// its ranges.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/quant_grid.h"
#include "engine/nn/layers.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/train/callback.h"
#include "tests/engine/files.h"
#include "tests/engine/normal_values.h"
#include "tests/engine/sessions.h"

namespace tenon::quantize_tests {
namespace {

using namespace testing_sessions;
using testing_files::error_of;
using I = int64_t;

Recipe quantized(const std::string& settings, const Settings& set = {}) {
  return accompanied("quantize " + settings, set);
}
std::vector<float> floats(const Tensor& t) {
  const Tensor c = contiguous(detach(t));
  return {c.data<float>(), c.data<float>() + c.numel()};
}

TEST(FakeQuantize, rounds_to_the_grid_and_lets_gradients_through_inside_it) {
  Tensor x = empty({7});
  const float given[] = {-1.3f, -1.0f, -0.24f, 0.26f, 0.3f, 0.75f, 0.9f};
  std::copy(std::begin(given), std::end(given), x.data<float>());
  set_requires_grad(x);
  const Tensor y = fake_quantize(x, full({1}, 0.25), -4, 3);
  EXPECT_EQ(floats(y), (std::vector<float>{-1, -1, -0.25, 0.25, 0.25, 0.75, 0.75}));
  backward(sum(y));
  // Half a step beyond the ends is still rounded to them.
  EXPECT_EQ(floats(grad_of(x)), (std::vector<float>{0, 1, 1, 1, 1, 1, 0}));
}

TEST(QuantizeInTraining, layers_compute_on_as_few_values_as_was_asked) {
  TrainingSession s(deep_spirals(), quantized("weight_bits=3 activation_bits=4 after=5 layers=fc*"));
  run(s, 4);
  std::set<float> read;
  auto& fc2 = *s.model().named_modules().at(3).second;
  ASSERT_EQ(fc2.path(), "fc2");
  fc2.add_forward_hook([&](nn::Module&, std::span<const Tensor> in, Tensor&) {
    for (float v : floats(in[0])) read.insert(v);
  });
  const auto names = [&] {
    std::string all;
    for (const nn::Named& p : s.model().parameters()) all += p.name + " ";
    return all;
  };
  const std::string before = names();
  run(s, 1);
  EXPECT_GT(read.size(), 20u) << "in f32 up to the fifth step";
  read.clear();
  run(s, 1);
  EXPECT_GT(read.size(), 4u);
  EXPECT_LE(read.size(), 16u);
  EXPECT_EQ(names(), before) << "parameters stay what and where they are";
  // What the layer multiplies by is found from what it makes: columns of the identity.
  s.model().train(false);
  const NoGrad off;
  nn::Linear plain(16, 12);
  const auto* grids = s.listed_callbacks().at(0)->trained_grids();
  ASSERT_NE(grids, nullptr);
  EXPECT_EQ(grids->weight_bits, 3);
  EXPECT_EQ(grids->activation_bits, 4);
  EXPECT_EQ(grids->inputs.size(), 3u);
  const Tensor w = detach(fc2.own("weight"));
  const formats::QuantizedWeight q = formats::quantize_channels(w, 0, 3);
  const double most = grids->inputs.at("fc2").second;
  Tensor unit = full({1, 16}, 0);
  unit.data<float>()[5] = static_cast<float>(most);
  const Tensor zero = full({1, 16}, 0), made = fc2(unit), bias = fc2(zero);
  for (I o = 0; o < 12; ++o) {
    const double weight = q.values.data<int8_t>()[o * 16 + 5] * static_cast<double>(q.scale.data<float>()[o]);
    EXPECT_NEAR(floats(made)[static_cast<size_t>(o)] - floats(bias)[static_cast<size_t>(o)], weight * most, 1e-5);
  }
}

/// What the layer "conv" of a model reads while it trains on grids of 3 bits, and the grid that it has of its input.
void expect_few_values_into(const char* type, const std::vector<I>& sizes, const std::vector<I>& kernel) {
  SCOPED_TRACE(type);
  const ModelSpec spec = Chain("net", {2})
                             .add("wide", "Linear", {{"out_features", I{24}}})
                             .add("sized", "Reshape", {{"shape", sizes}})
                             .add("conv", type, {{"out_channels", I{4}}, {"kernel_size", kernel}})
                             .add("flat", "Flatten")
                             .add("head", "Linear", {{"out_features", I{2}}})
                             .done();
  TrainingSession s(spec, quantized("weight_bits=2 activation_bits=3 after=1 layers=conv"));
  run(s, 3);
  std::set<float> read;
  nn::Module* conv = nullptr;
  for (auto& [path, layer] : s.model().named_modules())
    if (path == "conv") conv = layer;
  ASSERT_NE(conv, nullptr);
  conv->add_forward_hook([&](nn::Module&, std::span<const Tensor> in, Tensor&) {
    for (float v : floats(in[0])) read.insert(v);
  });
  run(s, 1);
  EXPECT_GT(read.size(), 2u);
  EXPECT_LE(read.size(), 8u);
  const auto* grids = s.listed_callbacks().at(0)->trained_grids();
  ASSERT_NE(grids, nullptr);
  EXPECT_EQ(grids->inputs.count("conv"), 1u);
  // One element of the input shows the weights that it is multiplied by: of 2 bits, four values a channel.
  s.model().train(false);
  const NoGrad off;
  std::vector<I> all{1};
  all.insert(all.end(), sizes.begin(), sizes.end());
  const Tensor nothing = zeros(Shape(all)), one = zeros(Shape(all));
  const auto [lo, hi] = grids->inputs.at("conv");
  const formats::QuantGrid grid = formats::asymmetric_grid(lo, hi, 3);
  one.data<float>()[0] = grid.value(grid.hi);
  const std::vector<float> with = floats((*conv)(one)), without = floats((*conv)(nothing));
  const formats::QuantizedWeight q = formats::quantize_channels(detach(conv->own("weight")), 0, 2);
  const I taps = q.values.numel() / 4, places = static_cast<I>(with.size()) / 4;
  for (I o = 0; o < 4; ++o) {
    const double weight = q.values.data<int8_t>()[o * taps] * static_cast<double>(q.scale.data<float>()[o]);
    const auto at = static_cast<size_t>(o * places);
    EXPECT_NEAR(with[at] - without[at], weight * one.data<float>()[0], 1e-5);
  }
}

TEST(QuantizeInTraining, so_do_convolutions_over_a_line_and_in_a_volume) {
  expect_few_values_into("Conv1d", {3, 8}, {3});
  expect_few_values_into("Conv3d", {1, 4, 3, 2}, {2, 2, 2});
}

TEST(QuantizeInTraining, ranges_are_an_average_over_the_steps) {
  TrainingSession s(deep_spirals(), quantized("momentum=0.5 layers=fc1"));
  std::vector<std::pair<double, double>> seen;
  auto& fc1 = *s.model().named_modules().at(1).second;
  fc1.add_forward_pre_hook([&](nn::Module& m, std::vector<Tensor>& in) {
    if (m.training()) seen.emplace_back(item(amin(in[0])), item(amax(in[0])));
  });
  run(s, 1);
  // The first layer reads the batch itself; the hook before this one has rounded it from the second step on.
  EXPECT_EQ(s.listed_callbacks().at(0)->trained_grids()->inputs.at("fc1"), seen.at(0));
  run(s, 3);
  const auto [lo, hi] = s.listed_callbacks().at(0)->trained_grids()->inputs.at("fc1");
  EXPECT_LT(lo, 0);
  EXPECT_GT(hi, 0);
}

TEST(QuantizeInTraining, a_run_that_was_kept_goes_on_to_the_bit) {
  for (const char* settings : {"weight_bits=4 activation_bits=4", "after=12 momentum=0.8", "layers=fc2 after=2"}) {
    const Recipe r = quantized(settings, {{"optimizer.type", "adam"}, {"average.type", "ema"}});
    TrainingSession through(deep_spirals(), r);
    run(through, 40);
    for (const I cut : {1, 11, 12, 33}) {
      TrainingSession a(deep_spirals(), r), b(deep_spirals(), r);
      run(a, cut);
      b.load(a.save());
      run(b, 40 - cut);
      expect_same(b.save(), through.save());
      EXPECT_EQ(b.evaluate().loss, through.evaluate().loss);
    }
    TrainingSession parent(deep_spirals(), r), child(deep_spirals(), r);
    run(parent, 17);
    child.branch(parent.save(), r);
    run(child, 23);
    expect_same(child.save(), through.save());
  }
}

TEST(QuantizeInTraining, computing_again_for_the_sake_of_memory_changes_no_bit) {
  TrainingSession kept(deep_spirals(), quantized("weight_bits=4 activation_bits=4")),
      again(deep_spirals(), quantized("weight_bits=4 activation_bits=4", {{"recompute", "2"}}));
  run(kept, 12), run(again, 12);
  const Checkpoint a = kept.save(), b = again.save();
  for (size_t i = 0; i < a.tensors.size(); ++i)
    EXPECT_EQ(floats(a.tensors[i].second), floats(b.tensors[i].second)) << a.tensors[i].first;
  EXPECT_EQ(a.state.at("callbacks"), b.state.at("callbacks"));
}

TEST(QuantizeInTraining, it_leaves_the_layers_as_they_were) {
  TrainingSession s(deep_spirals(), quantized("weight_bits=2 activation_bits=2")),
      plain(deep_spirals(), quantized("", {{"callbacks", ""}}));
  run(s, 8);
  Checkpoint c = s.save();
  c.state.erase("callbacks");
  plain.load(c);
  EXPECT_NE(s.evaluate().loss, plain.evaluate().loss) << "it was computed in two bits";
  Recipe without = s.recipe();
  without.set("callbacks", "");
  s.change(without);
  EXPECT_EQ(s.evaluate().loss, plain.evaluate().loss);
  run(s, 3), run(plain, 3);
  EXPECT_EQ(s.evaluate().loss, plain.evaluate().loss);
}

TEST(QuantizeInTraining, what_does_not_fit_is_said) {
  EXPECT_NE(error_of([] {
              TrainingSession s(deep_spirals(), quantized("layers=act*"));
            }).find("no convolution or linear layer of such a name"),
            std::string::npos);
  TrainingSession s(deep_spirals(), quantized("weight_bits=4"));
  run(s, 2);
  Checkpoint c = s.save();
  c.state["callbacks"]["kept"][0][1]["ranges"]["fc1"][0] = {7};
  TrainingSession again(deep_spirals(), quantized("weight_bits=4"));
  EXPECT_THROW(again.load(c), Error);
}

}  // namespace
}  // namespace tenon::quantize_tests
