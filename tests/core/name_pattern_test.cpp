#include "core/name_pattern.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

std::vector<std::string> stars(std::string_view pattern, std::string_view text) {
  std::vector<std::string_view> found;
  if (!fits_pattern(pattern, text, &found)) return {"no"};
  return {found.begin(), found.end()};
}

TEST(NamePattern, a_star_stands_for_any_text_and_the_whole_name_is_meant) {
  EXPECT_TRUE(fits_pattern("fc.weight", "fc.weight"));
  EXPECT_FALSE(fits_pattern("fc", "fc.weight"));
  EXPECT_FALSE(fits_pattern("fc.weight", "fc"));
  EXPECT_TRUE(fits_pattern("*", ""));
  EXPECT_TRUE(fits_pattern("", ""));
  EXPECT_FALSE(fits_pattern("", "a"));
  EXPECT_TRUE(fits_pattern("*.bias", "a.b.bias"));
  EXPECT_FALSE(fits_pattern("*.bias", "a.b.bias2"));
  EXPECT_TRUE(fits_pattern("a*b*c", "a.b.b.c"));
  EXPECT_FALSE(fits_pattern("a*b*c", "a.c.b"));
  // Every way to lay many stars out would take longer than anyone waits.
  EXPECT_FALSE(fits_pattern("*a*a*a*a*a*a*a*a*a*a*a*ab", std::string(4000, 'a')));
}

TEST(NamePattern, says_what_each_star_stands_for) {
  using List = std::vector<std::string>;
  EXPECT_EQ(stars("module.*", "module.fc.weight"), List{"fc.weight"});
  EXPECT_EQ(stars("*.layers.*.w", "enc.layers.3.w"), (List{"enc", "3"}));
  EXPECT_EQ(stars("**", "ab"), (List{"", "ab"}));
  EXPECT_EQ(stars("a*b*", "axxb"), (List{"xx", ""}));
  EXPECT_EQ(stars("a*", "b"), List{"no"});
}

TEST(NamePattern, a_list_is_cut_at_semicolons) {
  EXPECT_EQ(split_list(" a.* ;;b ; "), (std::vector<std::string>{"a.*", "b"}));
  EXPECT_TRUE(split_list("").empty());
}

}  // namespace
}  // namespace tenon
