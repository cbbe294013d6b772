// Products of sizes that the registry's samples do not reach: large tiles, split inner axes, phases of strided
// convolutions.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/backend.h"
#include "engine/autograd/autograd.h"
#include "engine/op/op.h"
#include "engine/ops/conv.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/rnn.h"
#include "engine/ops/view.h"
#include "tests/cuda/against_cpu.h"
#include "tests/cuda/emulated.h"

namespace tenon {
namespace {

using emulated::expect_the_cpus;
using emulated::Function;
using emulated::scattered;

TEST(CudaProducts, MatricesOfManyTilesAndLongInnerAxes) {
  const std::vector<std::string> ops = {"matmul", "linear"};
  const Function plain = [](const auto& in) { return matmul(in[0], in[1]); };
  expect_the_cpus("large tiles", plain, {scattered({1420, 10}, 1), scattered({10, 1420}, 2)}, ops);
  expect_the_cpus("large tiles of f16", plain,
                  {scattered({1420, 6}, 1, DType::f16), scattered({6, 1450}, 2, DType::f16)}, ops);
  expect_the_cpus("a split inner axis", plain, {scattered({5, 3000}, 1), scattered({3000, 7}, 2)}, ops);
  expect_the_cpus(
      "a batch by strides", [](const auto& in) { return matmul(transpose(in[0], 1, 2), in[1], true, false); },
      {scattered({3, 70, 4, 9}, 1, DType::f64), scattered({3, 4, 70, 66}, 2, DType::f64)}, ops);
  expect_the_cpus("one matrix for a batch", plain, {scattered({3, 70, 20}, 1), scattered({20, 66}, 2)}, ops);
  expect_the_cpus(
      "rows with a bias", [](const auto& in) { return linear(in[0], in[1], in[2]); },
      {scattered({70, 600}, 1), scattered({66, 600}, 2), scattered({66}, 3)}, ops);
}

TEST(CudaProducts, Convolutions) {
  const std::vector<std::string> ops = {"conv2d", "conv2d_input", "conv2d_weight", "matmul"};
  const auto with = [](const Conv2dOptions& o) {
    return [o](const std::vector<Tensor>& in) { return conv2d(in[0], in[1], in[2], o); };
  };
  const auto run = [&](const char* name, const Shape& x, const Shape& w, const Conv2dOptions& o, DType t = DType::f32) {
    expect_the_cpus(name, with(o), {scattered(x, 1, t), scattered(w, 2, t), scattered({w[0]}, 3, t)}, ops);
  };
  run("split taps and pixels", {2, 60, 12, 11}, {70, 60, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1});
  run("large tiles", {5, 3, 65, 65}, {80, 3, 1, 2}, {{1, 1}, {0, 0}, {1, 1}, 1});
  run("phases", {1, 4, 13, 14}, {6, 2, 3, 3}, {{4, 6}, {3, 5}, {2, 4}, 2}, DType::f64);
  run("a stride beyond the kernel", {2, 3, 16, 9}, {5, 3, 2, 2}, {{5, 4}, {1, 0}, {1, 1}, 1});
  run("channels apart", {3, 24, 15, 14}, {24, 1, 3, 3}, {{2, 1}, {1, 1}, {1, 1}, 24});
  run("one tap", {3, 40, 9, 9}, {70, 40, 1, 1}, {});
  run("one tap that skips", {3, 40, 9, 9}, {70, 40, 1, 1}, {{2, 2}, {0, 0}, {1, 1}, 1}, DType::f16);
}

/// Halves reach the kernels of products as halves: in f32 copies they would not be the business of tensor cores.
TEST(CudaProducts, TakeHalvesAsTheyAre) {
  struct Seen : OpObserver {
    std::map<std::string, std::set<DType>> types;
    void after(const Call& c, int64_t, int64_t) override {
      for (int i = 0; i < c.inputs; ++i)
        if (c.in[i]) types[c.op->info.name].insert(c.in[i].dtype());
    }
  };
  for (const DType t : {DType::f16, DType::bf16}) {
    const auto there = [&](const Shape& size) {
      Tensor x = to_device(scattered(size, 1, t), emulated::device());
      set_requires_grad(x);
      return x;
    };
    const Tensor x = there({2, 3, 6, 5}), w = there({4, 3, 3, 3}), a = there({4, 5}), b = there({5, 3});
    Seen seen;
    {
      ObserveScope watch(seen);
      const Tensor y = conv2d(x, w), p = matmul(a, b);
      grad({y, p}, {x, w, a, b}, {ones_like(y), ones_like(p)}, {}, false);
    }
    for (const char* op : {"conv2d", "conv2d_input", "conv2d_weight", "matmul"})
      EXPECT_EQ(seen.types[op], std::set<DType>{t}) << op;
  }
}

TEST(CudaProducts, Recurrence) {
  for (const auto cell : {kernels::Cell::lstm, kernels::Cell::gru, kernels::Cell::tanh}) {
    const int64_t h = 130, width = kernels::gates_of(cell) * h;
    const Function f = [&](const std::vector<Tensor>& in) {
      return rnn_sequence(cell, true, in[0], in[1], {}, in[2], in[3], {}).y;
    };
    expect_the_cpus(
        "steps", f,
        {scattered({4, 9, width}, 1), scattered({9, h}, 2), mul(scattered({width, h}, 3), 0.1), scattered({width}, 4)},
        {"rnn_sequence", "rnn_sequence_backward", "matmul"});
  }
}

}  // namespace
}  // namespace tenon
