#include "engine/formats/gzip.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tenon::formats {
namespace {

std::string text(size_t n) {
  std::string s(n, ' ');
  for (size_t i = 0; i < n; ++i) s[i] = static_cast<char>('a' + i * i % 23);
  return s;
}

TEST(Gzip, round_trip) {
  for (size_t n : {size_t{0}, size_t{1}, size_t{1000}, size_t{3000000}}) {
    const std::string packed = gzip(text(n));
    EXPECT_TRUE(is_gzip(packed));
    EXPECT_EQ(gunzip(packed, "x"), text(n));
  }
}

TEST(Gzip, several_members_follow_each_other) { EXPECT_EQ(gunzip(gzip("one ") + gzip("two"), "x"), "one two"); }

TEST(Gzip, damaged_cut_and_endless_files_are_refused) {
  const std::string packed = gzip(text(10000));
  for (size_t keep = 3; keep < packed.size(); keep += 7)
    EXPECT_THROW(gunzip(packed.substr(0, keep), "x"), Error) << keep;
  std::string bad = packed;
  bad[bad.size() / 2] ^= 0x55;
  EXPECT_THROW(gunzip(bad, "x"), Error);
  EXPECT_THROW(gunzip(gzip(text(5000000)), "x", 1000000), Error);
  EXPECT_THROW(gunzip("plain text", "x"), Error);
}

}  // namespace
}  // namespace tenon::formats
