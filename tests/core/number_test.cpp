#include "core/number.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/comma_locale.h"

namespace tenon {
namespace {

TEST(Number, a_whole_text_or_nothing) {
  for (const char* half : {"0.5", " 0.5", "+0.5", "0.5 \t", "5e-1", ".5"}) EXPECT_EQ(number_of(half), 0.5) << half;
  EXPECT_EQ(number_of("-3"), -3);
  EXPECT_TRUE(std::isinf(number_of("inf").value_or(0)));
  for (const char* none : {"", " ", "+", "+-1", "1,5", "0.5x", "0x10", "1 2", "1e999", "-"})
    EXPECT_FALSE(number_of(none)) << none;
}

TEST(Number, a_point_is_a_point_under_every_desktop) {
  const testing_locale::CommaLocale comma;
  if (!comma) GTEST_SKIP() << testing_locale::CommaLocale::kMissing;
  EXPECT_EQ(number_of("0.5"), 0.5);
  EXPECT_FALSE(number_of("0,5"));
}

}  // namespace
}  // namespace tenon
