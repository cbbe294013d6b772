// Classes of which there are few: their weights and their share of the batches.
#include "engine/train/class_balance.h"

#include <gtest/gtest.h>

#include "core/number.h"
#include "engine/data/dataset.h"
#include "engine/data/loader.h"
#include "engine/spec/chain.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "engine/train/task.h"
#include "tests/engine/files.h"

namespace tenon {
namespace {

using testing_files::error_of;
using testing_files::Folder;
using I = int64_t;
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Of 400 rows 40 are "rare" and 360 "usual", evenly spread, as are the rows kept for the test.
struct FewOfAClass : ::testing::Test {
  Folder folder;
  std::string file = folder.file("t.csv");
  void SetUp() override {
    std::string text = "x,y,kind\n";
    for (int i = 0; i < 400; ++i)
      text += std::to_string(i % 17) + "," + std::to_string((i * 7) % 13) + (i / 5 % 10 == 3 ? ",rare\n" : ",usual\n");
    testing_files::write(file, text);
  }
  Recipe recipe(const Settings& set = {}) const {
    Recipe r;
    for (const auto& [key, value] : Settings{{"data.dataset", "csv"}, {"data.dir", file}, {"data.batch_size", "32"}})
      r.set(key, value);
    for (const auto& [key, value] : set) r.set(key, value);
    return r;
  }
  ModelSpec model() const { return Chain("t", {2}).add("fc", "Linear", {{"out_features", I{2}}}).done(); }
  data::Split split() const { return data::open_dataset("csv", {.dir = file}); }
};

TEST(BalancedWeights, are_those_of_scikit_learn) {
  // sklearn.utils.class_weight.compute_class_weight("balanced", classes=[0, 1, 2], y=[0] * 6 + [1] * 3 + [2])
  const std::vector<double> w = balanced_weights({6, 3, 1});
  EXPECT_DOUBLE_EQ(w[0], 10.0 / 18);
  EXPECT_DOUBLE_EQ(w[1], 10.0 / 9);
  EXPECT_DOUBLE_EQ(w[2], 10.0 / 3);
  EXPECT_EQ(balanced_weights({5, 0, 5}), (std::vector<double>{1, 1, 1})) << "a class that does not occur";
}

TEST_F(FewOfAClass, are_counted_in_the_training_split) {
  const data::Split s = split();
  const std::vector<I> counts = class_counts(*s.train), test = class_counts(*s.test);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0] + counts[1], s.train->size());
  EXPECT_EQ(counts[0] + test[0], 40);
  EXPECT_GT(counts[0], 20);
  std::vector<I> by_hand(2, 0);
  for (I r = 0; r < s.train->size(); ++r) ++by_hand[static_cast<size_t>(data::fetch(*s.train, {r}).y.data<I>()[0])];
  EXPECT_EQ(counts, by_hand);
  // Part of the rows, and transforms that leave the class alone.
  EXPECT_EQ(class_counts(*data::subset(s.train, {0, 1, 2})), class_counts(*data::subset(s.train, {2, 1, 0})));
}

TEST_F(FewOfAClass, balanced_is_the_same_as_its_numbers) {
  const std::vector<double> w = balanced_weights(class_counts(*split().train));
  EXPECT_GT(w[0], 3);
  EXPECT_LT(w[1], 1);
  TrainingSession by_word(model(), recipe({{"loss.weight", "balanced"}})),
      by_numbers(model(), recipe({{"loss.weight", std::to_string(w[0]) + "," + std::to_string(w[1])}})),
      plain(model(), recipe());
  const double loss = by_word.step().loss;
  EXPECT_NEAR(loss, by_numbers.step().loss, 1e-5);
  EXPECT_NE(loss, plain.step().loss);
  EXPECT_NE(by_word.evaluate().loss, plain.evaluate().loss);
}

TEST_F(FewOfAClass, balanced_sampling_draws_each_class_as_often) {
  const Recipe r = recipe({{"data.sampling", "balanced"}});
  const data::Split s = split();
  const auto sampler = sampler_of(r, *s.train);
  ASSERT_TRUE(sampler);
  EXPECT_EQ(sampler_of(recipe(), *s.train), nullptr);
  EXPECT_EQ(sampler->size(), s.train->size());
  const std::vector<I> labels = s.train->labels();
  I rare = 0, all = 0;
  for (I epoch = 0; epoch < 30; ++epoch)
    for (I row : sampler->order(3, epoch)) rare += labels[static_cast<size_t>(row)] == 0, ++all;
  EXPECT_NEAR(static_cast<double>(rare) / static_cast<double>(all), 0.5, 0.02);
  EXPECT_EQ(sampler->order(3, 4), sampler->order(3, 4));
  EXPECT_NE(sampler->order(3, 4), sampler->order(3, 5));
  // A session takes them, and goes on anywhere with the same rows.
  TrainingSession through(model(), r), first(model(), r), second(model(), r);
  std::vector<I> seen, again;
  for (int i = 0; i < 25; ++i) seen = through.step().rows;
  for (int i = 0; i < 13; ++i) first.step();
  second.load(first.save());
  for (int i = 13; i < 25; ++i) again = second.step().rows;
  EXPECT_EQ(seen, again);
  EXPECT_EQ(through.steps_per_epoch(), (s.train->size() + 31) / 32);
}

TEST_F(FewOfAClass, what_cannot_be_balanced_is_refused) {
  const auto of = [&](const Settings& set) { return error_of([&] { TrainingSession s(model(), recipe(set)); }); };
  EXPECT_SAYS(of({{"data.sampling", "balanced"}, {"data.shuffle", "false"}}), "data.shuffle is false");
  EXPECT_SAYS(of({{"loss.type", "bce_with_logits"}, {"loss.pos_weight", "balanced"}}), "classes, no zeros and ones");
  const data::Split values = data::open_dataset("series", {.attrs = {{"samples", I{50}}}});
  EXPECT_SAYS(error_of([&] {
                sampler_of(recipe({{"data.sampling", "balanced"}}), *values.train);
              }),
              "have no class of their own");
}

TEST(BalancedWeights, of_zeros_and_ones) {
  Recipe r;
  r.set("data.dataset", "clicks");
  r.set("loss.type", "bce_with_logits");
  r.set("loss.pos_weight", "balanced");
  const auto train = data::open_dataset("clicks", {.attrs = {{"samples", I{2000}}}}).train;
  const std::vector<I> counts = class_counts(*train);
  ASSERT_EQ(counts.size(), 2u);
  ASSERT_GT(counts[1], 0);
  EXPECT_EQ(counts[0] + counts[1], train->size());
  for (const Attr& a : loss_attrs(r, *train))
    if (a.name == "pos_weight") {
      EXPECT_NEAR(number_of(std::get<std::string>(a.value)).value(),
                  static_cast<double>(counts[0]) / static_cast<double>(counts[1]), 1e-12);
    }
  r.set("loss.pos_weight", "");
  r.set("loss.weight", "balanced");
  EXPECT_SAYS(error_of([&] { loss_attrs(r, *train); }), "zeros and ones");
}

}  // namespace
}  // namespace tenon
