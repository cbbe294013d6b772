// Weights that are packed once for several calls: the results, and how long the packed ones live.
#include <gtest/gtest.h>

#include "core/parallel.h"
#include "core/pool.h"
#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/kernels/dnnl_matmul.h"
#include "engine/nn/init.h"
#include "engine/ops/conv.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "tests/engine/same_bits.h"

namespace tenon::kept_weights {
namespace {

Tensor drawn_weights(const Shape& size, const char* name) {
  Tensor t = empty(size);
  nn::init_uniform(t, 1, 7, name);
  return t;
}
Tensor trained(const Shape& size, const char* name) {
  Tensor t = drawn_weights(size, name);
  t.impl()->flags |= TensorImpl::requires_grad;
  return t;
}
bool keeps(const Tensor& t) { return t.storage()->has_forms.load(); }

struct Layer {
  const char* name;
  Tensor x, w;
  std::function<Tensor(const Tensor& x, const Tensor& w)> run;
};
std::vector<Layer> layers() {
  const Conv2dOptions around{.padding = {1, 1}};
  auto conv = [around](const Tensor& x, const Tensor& w) { return conv2d(x, w, {}, around); };
  const Tensor bias = drawn_weights({96}, "bias");
  auto line = [bias](const Tensor& x, const Tensor& w) { return linear(x, w, bias); };
  std::vector<Layer> all{
      {"rows of a large image", drawn_weights({1, 32, 40, 40}, "a"), trained({64, 32, 3, 3}, "b"), conv},
      {"few channels of a small image", drawn_weights({1, 256, 4, 4}, "m"), trained({32, 256, 3, 3}, "n"), conv},
      {"channels of a small image", drawn_weights({2, 128, 6, 6}, "c"), trained({256, 128, 3, 3}, "d"), conv},
      {"a batch with a rest", drawn_weights({9, 16, 12, 12}, "e"), trained({32, 16, 3, 3}, "f"), conv},
      {"transposed", drawn_weights({2, 32, 12, 12}, "g"), trained({32, 16, 2, 2}, "h"),
       [](const Tensor& x, const Tensor& w) {
         return conv2d_transposed(x, w, 24, 24, {.stride = {2, 2}});
       }}};
  if (kernels::packs_products()) {
    all.push_back({"rows", drawn_weights({300, 500}, "i"), trained({96, 500}, "j"), line});
    all.push_back({"few rows", drawn_weights({5, 2000}, "k"), trained({96, 2000}, "l"), line});
  }
  return all;
}

TEST(KeptWeights, GiveTheBitsOfWeightsThatArePackedEachTime) {
  for (const Layer& l : layers()) {
    SCOPED_TRACE(l.name);
    const Tensor wanted = detach(l.run(l.x, l.w));
    EXPECT_FALSE(keeps(l.w));
    NoGrad none;
    for (int time = 0; time < 3; ++time) EXPECT_TRUE(same_bits(l.run(l.x, l.w), wanted));
    EXPECT_TRUE(keeps(l.w));
  }
}

TEST(KeptWeights, FollowTheWeights) {
  std::vector<Layer> all = layers();
  for (Layer& l : all) {
    SCOPED_TRACE(l.name);
    NoGrad none;
    l.run(l.x, l.w);
    mul_(l.w, 2);
    EXPECT_FALSE(keeps(l.w));
    EXPECT_TRUE(same_bits(l.run(l.x, l.w), l.run(l.x, clone(l.w))));
    nn::init_uniform(l.w, 0.5, 8, "other");
    EXPECT_FALSE(keeps(l.w));
    EXPECT_TRUE(same_bits(l.run(l.x, l.w), l.run(l.x, clone(l.w))));
  }
}

TEST(KeptWeights, GoWhereAGradientIsAskedForAndWithTheWeights) {
  std::vector<Layer> all = layers();
  for (Layer& l : all) {
    SCOPED_TRACE(l.name);
    {
      NoGrad none;
      l.run(l.x, l.w);
    }
    EXPECT_TRUE(keeps(l.w));
    l.run(l.x, l.w);
    EXPECT_FALSE(keeps(l.w));
    NoGrad none;
    l.run(l.x, l.w);
    const int64_t before = pool_stats().live_bytes, own = static_cast<int64_t>(l.w.nbytes());
    l.w.reset();
    EXPECT_LE(pool_stats().live_bytes, before - 2 * own);
  }
}

TEST(KeptWeights, AreNotKeptOfWhatIsNotTrained) {
  for (const Layer& l : layers()) {
    SCOPED_TRACE(l.name);
    NoGrad none;
    const Tensor passing = clone(l.w);
    l.run(l.x, passing);
    EXPECT_FALSE(keeps(passing));
  }
}

TEST(KeptWeights, ServeOtherSizesAndViewsOfOneStorage) {
  if (!kernels::packs_products()) GTEST_SKIP() << "this processor's products do not pack their weights beforehand";
  NoGrad none;
  const Tensor w = trained({192, 256}, "w");
  for (const int64_t rows : {4, 64, 5, 700, 64}) {
    const Tensor x = drawn_weights({rows, 256}, "x");
    EXPECT_TRUE(same_bits(linear(x, w, {}), linear(x, clone(w), {}))) << rows;
  }
}

TEST(KeptWeights, TakeNoMoreThanTheWeightsThemselves) {
  NoGrad none;
  const Tensor line = trained({256, 512}, "line"), kernel = trained({256, 64, 3, 3}, "kernel");
  const int64_t before = pool_stats().live_bytes;
  for (const int64_t n : {1, 3, 9, 40, 7, 130, 520}) {
    linear(drawn_weights({n, 512}, "x"), line, {});
    conv2d(drawn_weights({n % 10, 64, 6, 6}, "y"), kernel, {}, {.padding = {1, 1}});
    EXPECT_LE(pool_stats().live_bytes - before, 5 * static_cast<int64_t>(line.nbytes() + kernel.nbytes()) / 4) << n;
  }
}

TEST(KeptWeights, BitsDoNotDependOnTheNumberOfThreads) {
  const int threads = num_threads();
  for (const Layer& l : layers()) {
    SCOPED_TRACE(l.name);
    NoGrad none;
    set_num_threads(1);
    const Tensor wanted = l.run(l.x, l.w);
    set_num_threads(3);
    EXPECT_TRUE(same_bits(l.run(l.x, l.w), wanted));
    l.w.storage()->changed();
    EXPECT_TRUE(same_bits(l.run(l.x, l.w), wanted));
  }
  set_num_threads(threads);
}

}  // namespace
}  // namespace tenon::kept_weights
