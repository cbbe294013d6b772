#include "core/base64.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Base64, rfc_4648_vectors_go_there_and_back) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), std::optional<std::string>(bytes));
  }
  std::string all;
  for (int i = 0; i < 1000; ++i) all += static_cast<char>(i * 7);
  EXPECT_EQ(from_base64(to_base64(all)), std::optional<std::string>(all));
}

TEST(Base64, what_is_none_gives_nothing) {
  for (const char* text : {"Zg=", "Zg", "Z===", "Zm9v\n", "Zm 9", "Zm9*", "=m9v"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tenon
