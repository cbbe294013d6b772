// ROC and precision-recall: by hand, by scikit-learn's figures, and by counting every pair.
#include "engine/train/ranking.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tenon {
namespace {

Ranking ranked(const std::vector<double>& shares, const std::vector<int>& truth, int of = 1) {
  std::vector<Ranking::Share> all;
  for (size_t i = 0; i < shares.size(); ++i) all.push_back({shares[i], truth[i] == of});
  return rank_shares(std::move(all));
}

TEST(Ranking, the_example_that_everybody_knows) {
  const Ranking r = ranked({0.1, 0.4, 0.35, 0.8}, {0, 0, 1, 1});
  EXPECT_EQ(r.positives, 2);
  EXPECT_EQ(r.negatives, 2);
  EXPECT_DOUBLE_EQ(r.auroc, 0.75);
  EXPECT_DOUBLE_EQ(r.average_precision, 0.5 * 1 + 0.5 * 2 / 3);
  const std::vector<Ranking::Point> points = {{0.8, 1, 0}, {0.4, 1, 1}, {0.35, 2, 1}, {0.1, 2, 2}};
  EXPECT_EQ(r.points, points);
  EXPECT_DOUBLE_EQ(r.true_positive_rate(r.points[1]), 0.5);
  EXPECT_DOUBLE_EQ(r.false_positive_rate(r.points[2]), 0.5);
  EXPECT_DOUBLE_EQ(r.points[2].precision(), 2.0 / 3);
}

TEST(Ranking, equal_shares_stand_or_fall_together) {
  const Ranking r = ranked({0.5, 0.5, 0.5, 0.5}, {0, 1, 0, 1});
  EXPECT_DOUBLE_EQ(r.auroc, 0.5);
  EXPECT_DOUBLE_EQ(r.average_precision, 0.5);
  EXPECT_EQ(r.points, (std::vector<Ranking::Point>{{0.5, 2, 2}}));
  // In whichever order they come.
  EXPECT_DOUBLE_EQ(ranked({0.9, 0.5, 0.5}, {0, 1, 0}).auroc, 0.25);
  EXPECT_DOUBLE_EQ(ranked({0.5, 0.5, 0.9}, {0, 1, 0}).auroc, 0.25);
}

// Twelve samples of three classes with shares in quarters; the figures are those of scikit-learn 1.9.1.
TEST(Ranking, three_classes_have_the_figures_of_scikit_learn) {
  const std::vector<std::vector<double>> shares = {{.5, .25, .25}, {.5, .5, 0},    {.25, .5, .25}, {0, .75, .25},
                                                   {.25, .25, .5}, {.5, .25, .25}, {.75, .25, 0},  {.25, .5, .25},
                                                   {.25, .25, .5}, {0, .5, .5},    {.5, 0, .5},    {.25, .75, 0}};
  const std::vector<int> truth = {0, 1, 1, 1, 2, 2, 0, 0, 2, 1, 0, 1};
  const double auroc[] = {0.8125, 0.9571428571428571, 0.7777777777777777};
  const double precision[] = {0.65, 0.9, 0.4444444444444444};
  std::vector<Ranking> all;
  for (int c = 0; c < 3; ++c) {
    std::vector<double> of;
    for (const auto& s : shares) of.push_back(s[static_cast<size_t>(c)]);
    all.push_back(ranked(of, truth, c));
    EXPECT_DOUBLE_EQ(all.back().auroc, auroc[c]) << c;
    EXPECT_DOUBLE_EQ(all.back().average_precision, precision[c]) << c;
  }
  EXPECT_DOUBLE_EQ(mean_auroc(all), 0.8491402116402117);
  EXPECT_DOUBLE_EQ(mean_average_precision(all), 0.6648148148148149);
  const std::vector<Ranking::Point> points = {{0.5, 2, 2}, {0.25, 3, 6}, {0, 3, 9}};
  EXPECT_EQ(all[2].points, points);
}

TEST(Ranking, a_class_that_does_not_occur_has_no_areas) {
  const Ranking none = ranked({0.2, 0.7}, {0, 0}), all = ranked({0.2, 0.7}, {1, 1}), empty = rank_shares({});
  EXPECT_TRUE(std::isnan(none.auroc) && std::isnan(none.average_precision));
  EXPECT_TRUE(std::isnan(all.auroc));
  EXPECT_DOUBLE_EQ(all.average_precision, 1);
  EXPECT_TRUE(std::isnan(empty.auroc) && empty.points.empty());
  EXPECT_DOUBLE_EQ(mean_auroc({none, ranked({0.2, 0.7}, {0, 1}), all}), 1) << "the mean is over those that have one";
  EXPECT_TRUE(std::isnan(mean_auroc({none, all})));
}

TEST(Ranking, is_what_counting_every_pair_and_every_threshold_gives) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const int n = 2 + round * 7, levels = 1 + round % 9 * 5;
    std::vector<Ranking::Share> all;
    for (int i = 0; i < n; ++i)
      all.push_back({static_cast<double>(random() % static_cast<unsigned>(levels)) / 7, random() % 3 == 0});
    all[0].positive = true, all[1].positive = false;
    double won = 0, pairs = 0, area = 0, recall = 0;
    for (const Ranking::Share& p : all)
      for (const Ranking::Share& q : all)
        if (p.positive && !q.positive) ++pairs, won += p.value > q.value ? 1 : p.value == q.value ? 0.5 : 0;
    for (int level = levels; level >= 0; --level) {
      double taken = 0, right = 0, positives = 0;
      for (const Ranking::Share& s : all) {
        positives += s.positive;
        if (s.value >= static_cast<double>(level) / 7) ++taken, right += s.positive;
      }
      if (taken > 0) area += (right / positives - recall) * right / taken;
      recall = right / positives;
    }
    const Ranking r = rank_shares(all);
    EXPECT_NEAR(r.auroc, won / pairs, 1e-12) << round;
    EXPECT_NEAR(r.average_precision, area, 1e-12) << round;
  }
}

/// The area under the points that were kept, as a picture of them has it.
double drawn_area(const Ranking& r) {
  double area = 0, x = 0, y = 0;
  for (const Ranking::Point& p : r.points) {
    const double to_x = r.false_positive_rate(p), to_y = r.true_positive_rate(p);
    area += (to_x - x) * (y + to_y) / 2;
    x = to_x, y = to_y;
  }
  return area;
}

TEST(Ranking, few_points_are_kept_of_many_and_draw_the_same_curve) {
  std::mt19937 random(3);
  std::normal_distribution<double> bell(0, 1);
  std::vector<Ranking::Share> all;
  for (int i = 0; i < 60000; ++i) all.push_back({bell(random) + (i % 10 == 0), i % 10 == 0});
  const Ranking r = rank_shares(all);
  EXPECT_LT(r.points.size(), 4000u);
  EXPECT_EQ(r.points.back().true_positives, 6000);
  EXPECT_EQ(r.points.back().false_positives, 54000);
  EXPECT_NEAR(drawn_area(r), r.auroc, Ranking::kResolution);
  EXPECT_NEAR(r.auroc, 0.76, 0.01) << "Phi(1 / sqrt 2)";
  // A large tie among many single ones stays a straight line.
  for (int i = 0; i < 60000; ++i) all.push_back({-9, i % 2 == 0});
  const Ranking tied = rank_shares(all);
  EXPECT_NEAR(drawn_area(tied), tied.auroc, Ranking::kResolution);
}

}  // namespace
}  // namespace tenon
