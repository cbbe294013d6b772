#include "core/utf8.h"

#include <gtest/gtest.h>

#include <utility>

namespace tenon {
namespace {

TEST(Utf8, WellFormedBytesAreTold) {
  for (const char* text : {"", "plain",
                           "gr\xC3\xB6\xC3\x9F"
                           "e",
                           "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "eight letters and more"})
    EXPECT_TRUE(is_utf8(text)) << text;
  const std::pair<const char*, size_t> bad[] = {{"\xFF", 0},         {"abc\x80", 3},
                                                {"\xC0\xAF", 0},     {"12345678\xE2\x82", 8},
                                                {"\xED\xA0\x80", 0}, {"\xF4\x90\x80\x80", 0}};
  for (const auto& [text, place] : bad) {
    size_t at = 99;
    EXPECT_FALSE(is_utf8(text, at)) << text;
    EXPECT_EQ(at, place);
  }
}

TEST(Utf8, BytesOfNoCharacterAreShownAsSuch) {
  EXPECT_EQ(as_utf8("gr\xC3\xBCn"), "gr\xC3\xBCn");
  EXPECT_EQ(as_utf8("caf\xE9 and \xC3"), "caf\xEF\xBF\xBD and \xEF\xBF\xBD");
  EXPECT_EQ(as_utf8(""), "");
  EXPECT_TRUE(is_utf8(as_utf8("\xF4\x90\x80\x80")));
}

}  // namespace
}  // namespace tenon
