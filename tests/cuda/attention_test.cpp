// Attention of sizes that the registry's samples do not reach: several tiles, and halves, which tensor cores multiply.
#include <gtest/gtest.h>

#include "engine/op/op.h"
#include "engine/ops/attention.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "tests/cuda/against_cpu.h"
#include "tests/cuda/emulated.h"

namespace tenon {
namespace {

using emulated::expect_the_cpus;
using emulated::Function;
using emulated::scattered;

const std::vector<std::string> kAttentionOps = {"scaled_dot_product_attention", "attention_backward"};

struct AttentionCase {
  const char* name;
  int64_t lq, lk, d, dv;
  bool causal = false;
  double p = 0;
};

void expect_attention(const AttentionCase& x, DType t, bool tensor_cores) {
  SCOPED_TRACE(std::string(name(t)));
  const Function f = [=](const std::vector<Tensor>& in) {
    const Tensor key = x.p > 0 ? random_key(3, 5, in[0].device()) : Tensor();
    return scaled_dot_product_attention(in[0], in[1], in[2], {}, {x.p, x.causal, 0, {key, 7, 11}});
  };
  const bool used = emulated::uses_tensor_cores(
      [&] {
        expect_the_cpus(x.name, f,
                        {scattered({2, 2, x.lq, x.d}, 1, t), scattered({2, 2, x.lk, x.d}, 2, t),
                         scattered({2, 2, x.lk, x.dv}, 3, t)},
                        kAttentionOps);
      },
      tensor_cores);
  EXPECT_EQ(used, tensor_cores) << x.name;
}

TEST(CudaAttention, Singles) {
  expect_attention({"several tiles", 70, 130, 20, 33}, DType::f32, false);
  expect_attention({"causal", 130, 200, 70, 20, true}, DType::f32, false);
  expect_attention({"dropout", 66, 67, 8, 8, false, 0.3}, DType::f32, false);
  expect_attention({"wide rows", 20, 30, 140, 150, true}, DType::f64, false);
}

TEST(CudaAttention, HalvesOnTensorCores) {
  for (const DType t : {DType::f16, DType::bf16})
    for (const AttentionCase& x : {
             AttentionCase{"one query", 1, 1, 8, 8},
             {"less than a tile", 5, 19, 40, 16},
             {"a tile of queries, many of keys", 64, 200, 64, 64},
             {"several tiles", 70, 130, 24, 40},
             {"wide heads", 80, 70, 128, 128},
             {"values wider than keys", 33, 47, 40, 104},
             {"keys wider than values", 33, 47, 72, 8},
             {"causal", 100, 100, 64, 64, true},
             {"causal, fewer keys", 150, 70, 32, 32, true},
             {"causal, more keys", 70, 150, 88, 96, true},
             {"dropout", 66, 67, 16, 16, false, 0.3},
             {"dropout, causal, wide heads", 70, 68, 80, 80, true, 0.5},
             {"everything is dropped", 20, 20, 8, 8, false, 1},
         })
      expect_attention(x, t, true);
}

/// Rows that are not read in pieces of 16 bytes, and heads beyond the tiles' width.
TEST(CudaAttention, HalvesThatNoTensorCoreTakes) {
  for (const DType t : {DType::f16, DType::bf16}) {
    expect_attention({"odd widths", 70, 66, 20, 33, true}, t, false);
    expect_attention({"wide heads", 66, 70, 136, 136, false, 0.2}, t, false);
    expect_the_cpus(
        "heads apart in memory",
        [](const auto& in) {
          return scaled_dot_product_attention(transpose(in[0], 1, 2), transpose(in[1], 1, 2), in[2]);
        },
        {scattered({2, 16, 67}, 1, t), scattered({2, 16, 70}, 2, t), scattered({2, 70, 16}, 3, t)}, kAttentionOps);
  }
}

TEST(CudaAttention, HeadsOfOneTensorAndGroupsOfHeads) {
  for (const DType t : {DType::f16, DType::bf16}) {
    // [batch, row, (q, k, v), head, d]: heads of all three by the strides of one product's result.
    const Function of_one = [](const std::vector<Tensor>& in) {
      const auto part = [&](int64_t i) { return transpose(squeeze(narrow(in[0], 2, i, 1), 2), 1, 2); };
      return scaled_dot_product_attention(part(0), part(1), part(2), {}, {0, true});
    };
    expect_the_cpus("one tensor", of_one, {scattered({2, 70, 3, 2, 16}, 1, t)}, kAttentionOps);
    const Function grouped = [](const std::vector<Tensor>& in) {
      const auto shared = [](const Tensor& x) { return expand(unsqueeze(x, 2), {2, 2, 3, x.size(2), x.size(3)}); };
      return scaled_dot_product_attention(in[0], shared(in[1]), shared(in[2]), {}, {0, true});
    };
    expect_the_cpus(
        "groups", grouped,
        {scattered({2, 2, 3, 40, 16}, 1, t), scattered({2, 2, 90, 16}, 2, t), scattered({2, 2, 90, 24}, 3, t)},
        kAttentionOps);
  }
}

TEST(CudaAttention, MasksOfHalves) {
  for (const DType t : {DType::f16, DType::bf16}) {
    Tensor keep = empty({2, 1, 70, 67}, DType::boolean);
    for (int64_t i = 0; i < keep.numel(); ++i)
      keep.data<bool>()[i] = i % 67 == 0 || (i * 7 % 11 < 6 && i / 67 % 70 != 3);  // one query sees one key
    for (int64_t j = 0; j < 67; ++j) keep.data<bool>()[5 * 67 + j] = false;        // and one none
    const Tensor added = scattered({70, 1}, 4, t);
    for (const Tensor& mask : {keep, added})
      for (const bool causal : {false, true})
        expect_the_cpus(
            name(mask.dtype()),
            [&](const auto& in) {
              return scaled_dot_product_attention(in[0], in[1], in[2], to_device(mask, in[0].device()), {0, causal});
            },
            {scattered({2, 2, 70, 8}, 1, t), scattered({2, 2, 67, 8}, 2, t), scattered({2, 2, 67, 8}, 3, t)},
            kAttentionOps);
  }
}

}  // namespace
}  // namespace tenon
