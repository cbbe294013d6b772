#include "engine/train/metric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tenon {
namespace {

TEST(Metric, TheBestClassIsTheFirstOfTheHighestScores) {
  std::mt19937 random(11);
  for (int64_t classes : {1, 2, 3, 10, 15, 16, 17, 33, 256})
    for (int64_t apart : {1, 3})
      for (int round = 0; round < 60; ++round) {
        std::vector<float> scores(static_cast<size_t>(classes * apart));
        for (float& s : scores) s = static_cast<float>(random() % 9);  // many are equal
        if (round % 7 == 0) scores[random() % scores.size()] = std::nanf("");
        if (round % 5 == 0) scores[random() % scores.size()] = -std::numeric_limits<float>::infinity();
        int64_t best = 0;
        bool number = true;
        for (int64_t i = 0; i < classes; ++i) {
          number &= !std::isnan(scores[i * apart]);
          if (scores[i * apart] > scores[best * apart]) best = i;
        }
        for (int64_t answer = -2; answer <= classes; ++answer)
          EXPECT_EQ(is_best_class(scores.data(), classes, apart, answer), number && answer == best)
              << classes << " classes, answer " << answer;
      }
}

}  // namespace
}  // namespace tenon
