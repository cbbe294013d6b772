// Sums, moves and scatters of sizes that the registry's samples do not reach: several blocks, pieces that are summed
// again, tiles of a transpose, sorted lists of rows.
#include <gtest/gtest.h>

#include "core/backend.h"
#include "engine/ops/create.h"
#include "engine/ops/embedding.h"
#include "engine/ops/gather.h"
#include "engine/ops/index.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/pool.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/cuda/against_cpu.h"

namespace tenon {
namespace {

using emulated::expect_the_cpus;
using emulated::Function;
using emulated::scattered;

/// Whole numbers of [0, below), some of them often.
Tensor numbers(const Shape& size, int64_t below) {
  Tensor t = empty(size, DType::i64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = (i * i * 31 + i / 7) % below;
  return t;
}

TEST(CudaSizes, SumsOverAnyAxes) {
  const std::vector<std::string> ops = {"sum", "mean", "amax", "mul", "expand"};
  const auto over = [](const Dims& axes) {
    return [axes](const std::vector<Tensor>& in) { return sum(mul(in[0], in[0]), axes, false); };
  };
  expect_the_cpus("all", over({}), {scattered({70, 33, 41}, 1)}, ops);
  expect_the_cpus("rows", over({1}), {scattered({300, 700}, 1)}, ops);
  expect_the_cpus("few long rows", over({1}), {scattered({3, 40000}, 1)}, ops);
  expect_the_cpus("columns", over({0}), {scattered({3000, 37}, 1)}, ops);
  expect_the_cpus("first and last of f64", over({0, 2}), {scattered({40, 19, 60}, 1, DType::f64)}, ops);
}

TEST(CudaSizes, RowsOfAllLengths) {
  for (const int64_t n : {3, 37, 700, 5000}) {
    expect_the_cpus("softmax", [](const auto& in) { return softmax(in[0], -1); }, {scattered({9, n}, 1)},
                    {"softmax", "softmax_backward"});
    expect_the_cpus("layer norm", [n](const auto& in) { return layer_norm(in[0], {n}, in[1], in[2]); },
                    {scattered({9, n}, 1), scattered({n}, 2), scattered({n}, 3)},
                    {"layer_norm", "layer_norm_backward"});
    expect_the_cpus("cross entropy",
                    [n](const auto& in) { return cross_entropy(in[0], to_device(numbers({9}, n), in[0].device())); },
                    {scattered({9, n}, 1)}, {"cross_entropy", "cross_entropy_backward"});
  }
}

TEST(CudaSizes, CopiesThatTurn) {
  const std::vector<std::string> ops = {"copy", "add"};
  const Function turned = [](const auto& in) { return contiguous(transpose(in[0], 0, 1)); };
  expect_the_cpus("a transpose", turned, {scattered({40, 70}, 1)}, ops);
  expect_the_cpus("a transpose of halves", turned, {scattered({70, 45}, 1, DType::bf16)}, ops);
  expect_the_cpus(
      "images to channels last",
      [](const auto& in) {
        return contiguous(permute(in[0], {0, 2, 3, 1}));
      },
      {scattered({3, 20, 9, 11}, 1)}, ops);
}

TEST(CudaSizes, RowsThatManySourcesWant) {
  expect_the_cpus("the gradient of an embedding",
                  [](const auto& in) {
                    return embedding(to_device(numbers({60, 9}, 50), in[0].device()), in[0]);
                  },
                  {scattered({50, 33}, 1)}, {"embedding", "scatter_rows"});
  expect_the_cpus("gathered along an axis",
                  [](const auto& in) {
                    return gather(in[0], 0, to_device(numbers({200, 7}, 40), in[0].device()));
                  },
                  {scattered({40, 7}, 1)}, {"gather", "scatter_add"});
  expect_the_cpus("gathered of one axis",
                  [](const auto& in) { return gather(in[0], 0, to_device(numbers({300}, 20), in[0].device())); },
                  {scattered({20}, 1)}, {"gather", "scatter_add"});
}

}  // namespace
}  // namespace tenon
