#include "core/sha256.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

// FIPS 180-4 examples.
TEST(Sha256, known_digests) {
  EXPECT_EQ(hex(sha256("", 0)), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc", 3)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a').data(), 1000000)),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, pieces_give_the_same_as_the_whole) {
  const std::string text(100000, 'q');
  Sha256 h;
  for (size_t at = 0; at < text.size(); at += 777) h.update(text.data() + at, std::min<size_t>(777, text.size() - at));
  EXPECT_EQ(h.finish(), sha256(text.data(), text.size()));
}

TEST(Sha256, a_signature_is_that_of_rfc_4231) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace tenon
