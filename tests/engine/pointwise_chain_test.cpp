#include "engine/op/pointwise_chain.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "tests/engine/normal_values.h"
#include "tests/engine/same_bits.h"

namespace tenon {
namespace {

using testing_values::normal_values;

const OpDef& op(const char* name) { return *all_ops().find(name); }

TEST(PointwiseChain, gives_the_bits_of_its_ops) {
  constexpr int64_t kRows = 701, kColumns = 7;  // several tiles, of which none ends with a row
  const Tensor x = normal_values({kRows, kColumns}, 1), other = normal_values({kRows, kColumns}, 2),
               row = normal_values({kColumns}, 3);
  PointwiseChain chain;
  const auto s = chain.step(op("sigmoid"), {PointwiseChain::kValue});
  const auto m = chain.step(op("mul"), {PointwiseChain::kValue, s});
  const auto r = chain.step(op("add"), {m, chain.repeated(row.data<float>(), kColumns)});
  const auto b = chain.step(op("sub"), {chain.beside(), r});
  chain.step(op("maximum"), {b, chain.number(-0.25f)});
  const Tensor expected = maximum(sub(other, add(mul(x, sigmoid(x)), row)), -0.25);
  Tensor y = empty(x.size());
  const float* beside[] = {other.data<float>()};
  for (const int64_t piece : {x.numel(), int64_t{1}, int64_t{97}}) {
    for (int64_t i = 0; i < x.numel(); i += piece)
      chain.run(x.data<float>() + i, y.data<float>() + i, beside, i, std::min(piece, x.numel() - i));
    EXPECT_TRUE(same_bits(y, expected)) << "in pieces of " << piece;
  }
  Tensor in_place = clone(x);
  chain.run(in_place.data<float>(), in_place.data<float>(), beside, 0, x.numel());
  EXPECT_TRUE(same_bits(in_place, expected));
}

TEST(PointwiseChain, refuses_what_has_no_loop) {
  PointwiseChain chain;
  EXPECT_THROW(chain.step(op("matmul"), {PointwiseChain::kValue, PointwiseChain::kValue}), Error);
  EXPECT_THROW(chain.step(op("relu"), {PointwiseChain::kValue, PointwiseChain::kValue}), Error);
  EXPECT_THROW(chain.repeated(nullptr, 0), Error);
}

}  // namespace
}  // namespace tenon
