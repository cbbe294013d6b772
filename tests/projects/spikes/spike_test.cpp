#include "projects/spikes/spike.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/messages.h"

namespace tenon::projects {
namespace {

using testing_words::has;
using testing_words::message_of;

/// Losses that fall slowly, with a little noise.
std::vector<MetricPoint> calm_losses(int64_t steps) {
  std::vector<MetricPoint> all;
  for (int64_t s = 1; s <= steps; ++s)
    all.push_back({s, 0.1 * static_cast<double>(s),
                   0.5 + 1.5 / (1 + 0.1 * static_cast<double>(s)) + 0.02 * std::sin(static_cast<double>(s * s))});
  return all;
}

TEST(Spike, is_the_first_of_the_steps_that_stand_out) {
  auto loss = calm_losses(120);
  EXPECT_FALSE(find_spike(loss));
  loss[69].value = 4;
  loss[70].value = 9;
  loss[71].value = 5;
  loss[20].value = 6;  // a smaller one
  const auto s = find_spike(loss);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->step, 70);
  EXPECT_EQ(s->loss, 4);
  EXPECT_GT(s->usual, 0.5);
  EXPECT_LT(s->usual, 1);
  EXPECT_NEAR(s->limit, s->usual + 0.35 * (s->loss - s->usual), 1e-12);
}

TEST(Spike, is_also_a_loss_that_is_no_number) {
  auto loss = calm_losses(60);
  loss[40].value = std::numeric_limits<double>::infinity();
  const auto s = find_spike(loss);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->step, 41);
  EXPECT_TRUE(std::isfinite(s->limit));
  EXPECT_GT(s->limit, s->usual);
}

TEST(Spike, of_the_first_steps_is_held_against_what_follows) {
  auto loss = calm_losses(60);
  EXPECT_FALSE(find_spike(loss)) << "a loss that falls as it should";
  loss[0].value = 60;
  loss[1].value = 40;
  const auto s = find_spike(loss);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->step, 1);
}

TEST(Spike, may_be_named) {
  auto loss = calm_losses(60);
  loss[40].value = 1.5;
  EXPECT_EQ(spike_at(loss, 41).loss, 1.5);
  EXPECT_TRUE(has(message_of([&] { spike_at(loss, 39); }), "does not stand out"));
  EXPECT_TRUE(has(message_of([&] { spike_at(loss, 61); }), "no loss of step 61"));
}

}  // namespace
}  // namespace tenon::projects
