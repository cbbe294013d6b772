#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/nn/norm.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"

namespace tenon::nn {
namespace {

// A single value a channel has no unbiased variance: the running one would become NaN.
TEST(Norms, RefuseToTrainOnASingleValueAChannel) {
  BatchNorm batch(1, 4, {});
  batch.initialize(1, "norm");
  EXPECT_THROW(batch(ones({1, 4})), Error);
  for (const Named& b : batch.buffers()) EXPECT_EQ(item(sum(isnan(b.tensor))), 0) << b.name;
  EXPECT_NO_THROW(batch(ones({2, 4})));
  batch.train(false);
  EXPECT_NO_THROW(batch(ones({1, 4})));
  InstanceNorm instance(1, 4, {.track = true});
  instance.initialize(1, "norm");
  EXPECT_THROW(instance(ones({3, 4, 1})), Error);
}

}  // namespace
}  // namespace tenon::nn
