#include "engine/data/transform.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/data/loader.h"
#include "engine/data/sampler.h"
#include "engine/ops/create.h"
#include "tests/engine/files.h"

namespace tenon::data {
namespace {

using testing_files::error_of;
using I = int64_t;

/// Row r is an image of values that say where they were: r * 1000 + 10 i + j (+ 100 a channel), class r % 3, or a mask
/// with the same places.
class Places : public Dataset {
 public:
  explicit Places(bool masks = false, Shape size = {2, 6, 8}) : masks_(masks), size_(size) {}
  I size() const override { return 20; }
  Meta input() const override { return {DType::f32, {}, size_}; }
  Meta target() const override { return {DType::i64, {}, masks_ ? Shape{6, 8} : Shape{}}; }
  I classes() const override { return masks_ ? 100 : 3; }
  void fetch(const I* rows, I count, void* x, void* y) const override {
    auto* to = static_cast<float*>(x);
    auto* t = static_cast<I*>(y);
    for (I n = 0; n < count; ++n) {
      for (I c = 0; c < 2; ++c)
        for (I i = 0; i < 6; ++i)
          for (I j = 0; j < 8; ++j) *to++ = static_cast<float>(rows[n] * 1000 + c * 100 + 10 * i + j);
      if (masks_)
        for (I i = 0; i < 6; ++i)
          for (I j = 0; j < 8; ++j) *t++ = 10 * i + j;
      else
        *t++ = rows[n] % 3;
    }
  }

 private:
  bool masks_;
  Shape size_;
};

Split split(const std::string& list, bool masks = false) {
  auto set = std::make_shared<Places>(masks);
  return transformed({set, set}, list, 7);
}

TEST(Transforms, EveryOneIsAPureFunctionOfSeedEpochAndRow) {
  for (const TransformDef& def : transforms()) {
    SCOPED_TRACE(def.name);
    std::string list = def.name;
    if (def.name == "random_crop") list += " padding=2";
    if (def.name == "crop" || def.name == "resize") list += " height=4";
    if (def.name == "cutout") list += " size=3";
    if (def.name == "normalise") list += " mean=3 std=2";
    if (def.name == "log_mel") list += " window=16 hop=8 bands=4";
    if (def.name == "shift") list += " most=20";
    // The same values as a picture, or as a sound.
    const bool sound = def.name == "log_mel" || def.name == "shift";
    const auto open = [&] {
      auto set = std::make_shared<Places>(false, sound ? Shape{1, 96} : Shape{2, 6, 8});
      return transformed({set, set}, list, 7);
    };
    Split a = open(), b = open();
    auto values = [](const Split& s, std::vector<I> rows, I epoch) {
      Batch t = fetch(*s.train, std::move(rows), epoch);
      return std::vector<float>(t.x.data<float>(), t.x.data<float>() + t.x.numel());
    };
    // Alone or among others, in whatever order.
    auto all = values(a, {3, 4, 5}, 2), one = values(b, {4}, 2);
    size_t n = one.size();
    EXPECT_EQ(one, std::vector<float>(all.begin() + static_cast<I>(n), all.begin() + 2 * static_cast<I>(n)));
    // Evaluation changes nothing at random.
    EXPECT_EQ(fetch(*a.test, {4}, 0).x.data<float>()[5], fetch(*a.test, {4}, 1).x.data<float>()[5]);
    bool random = def.name != "crop" && def.name != "resize" && def.name != "normalise" && def.name != "log_mel";
    std::vector<I> rows(20);
    std::iota(rows.begin(), rows.end(), I{0});
    EXPECT_EQ(values(a, rows, 0) != values(a, rows, 1), random) << "another epoch, another view";
    EXPECT_EQ(to_string(a.train->input().shape), to_string(a.test->input().shape));
  }
}

TEST(Transforms, AMaskGoesWhereItsImageGoes) {
  for (const char* list :
       {"random_crop height=4 width=5", "flip p=1", "flip p=1 vertical=true", "crop height=2 width=2; flip"}) {
    Split s = split(list, true);
    Batch b = fetch(*s.train, {1, 2, 3}, 4);
    const I pixels = b.y.numel() / 3;
    for (I n = 0; n < 3; ++n)
      for (I p = 0; p < pixels; ++p)
        EXPECT_EQ(static_cast<I>(b.x.data<float>()[n * 2 * pixels + p]), (n + 1) * 1000 + b.y.data<I>()[n * pixels + p])
            << list;
  }
}

TEST(Transforms, MixedSamplesShareTheirClasses) {
  for (const char* list : {"mixup alpha=0.4", "cutmix", "mixup alpha=5", "mixup; cutmix"}) {
    Split s = split(list);
    EXPECT_EQ(s.train->target().dtype, DType::f32);
    EXPECT_EQ(s.test->target().dtype, DType::i64);
    std::vector<I> rows(20);
    std::iota(rows.begin(), rows.end(), I{0});
    Batch b = fetch(*s.train, rows, 1);
    double own = 0;
    for (I n = 0; n < 20; ++n) {
      const float* y = b.y.data<float>() + n * 3;
      EXPECT_NEAR(y[0] + y[1] + y[2], 1, 1e-5);
      own += static_cast<double>(y[n % 3]);
    }
    EXPECT_GT(own, 3) << list;
    EXPECT_LT(own, 19.9) << list;
  }
  EXPECT_SAYS(error_of([] { split("mixup", true); }), "one class each");
}

TEST(Transforms, BadListsSayWhatThereIs) {
  EXPECT_SAYS(error_of([] { split("flop"); }), "no transform is called \"flop\" (did you mean flip");
  EXPECT_SAYS(error_of([] { split("flip q=1"); }), "flip has no \"q\"");
  EXPECT_SAYS(error_of([] { split("flip p=2"); }), "at most 1");
  EXPECT_SAYS(error_of([] { split("flip p"); }), "no NAME=VALUE");
  EXPECT_SAYS(error_of([] { split("random_crop height=9"); }), "does not fit");
}

TEST(Samplers, VisitTheRowsTheyShould) {
  EXPECT_EQ(sequential(4)->order(1, 2), (std::vector<I>{0, 1, 2, 3}));
  EXPECT_EQ(random(50)->order(3, 1), epoch_order(50, 3, 1));
  // Chances in proportion to the weights, and never a row of weight 0.
  auto rows = weighted({1, 0, 3}, 8000)->order(5, 0);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), 1), 0);
  EXPECT_NEAR(static_cast<double>(std::count(rows.begin(), rows.end(), 2)) / 8000, 0.75, 0.03);
  EXPECT_NE(rows, weighted({1, 0, 3}, 8000)->order(5, 1));
  EXPECT_SAYS(error_of([] { weighted({0, 0}, 3); }), "all 0");
  EXPECT_SAYS(error_of([] { weighted({1, -1}, 3); }), "at least 0");
  // Ranks share an order without overlap, and all have as many.
  for (bool drop : {false, true}) {
    std::vector<I> seen;
    for (I rank = 0; rank < 4; ++rank) {
      auto mine = distributed(random(10), rank, 4, drop);
      EXPECT_EQ(mine->size(), drop ? 2 : 3);
      auto order = mine->order(1, 0);
      seen.insert(seen.end(), order.begin(), order.end());
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()) - seen.begin(), drop ? 8 : 10);
  }
  EXPECT_SAYS(error_of([] { distributed(random(10), 4, 4); }), "rank 4 of 4");
  EXPECT_EQ(batches({5, 6, 7}, 2).back(), (std::vector<I>{7}));
  EXPECT_EQ(batches({5, 6, 7}, 2, true).size(), 1u);
  // A loader goes by its sampler, from anywhere.
  LoaderOptions o{.batch = 2, .workers = 2, .seed = 8};
  o.sampler = distributed(random(20), 1, 3);
  Loader l(std::make_shared<Places>(), o);
  EXPECT_EQ(l.batches_per_epoch(), 4);
  auto want = o.sampler->order(8, 1);
  l.seek(1, 2);
  EXPECT_EQ(l.next().rows, (std::vector<I>{want[4], want[5]}));
  EXPECT_EQ(l.next().rows, (std::vector<I>{want[6]}));
}

TEST(Pad, FillsUpShorterOnes) {
  Tensor a = full({2, 3}, 1), b = full({4, 3}, 2);
  Padded p = pad({a, b}, -1);
  EXPECT_EQ(to_string(p.values.size()), "[2, 4, 3]");
  EXPECT_EQ(p.lengths.data<I>()[0], 2);
  EXPECT_EQ(p.values.data<float>()[5], 1);
  EXPECT_EQ(p.values.data<float>()[6], -1);
  EXPECT_EQ(p.values.data<float>()[23], 2);
  EXPECT_SAYS(error_of([&] { pad({a, full({2, 4}, 1)}); }), "only that axis may differ");
  EXPECT_SAYS(error_of([] { pad({}); }), "nothing to pad");
}

}  // namespace
}  // namespace tenon::data
