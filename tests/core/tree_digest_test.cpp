#include "core/tree_digest.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tenon {
namespace {

std::string tree(const std::string& bytes) { return hex(tree_digest(bytes)); }

TEST(TreeDigest, is_the_digest_of_the_digests_of_pieces) {
  const auto by_hand = [](const std::string& bytes) {
    std::string digests;
    size_t at = 0;
    do {
      const std::string piece = bytes.substr(at, kTreeDigestPiece);
      const Sha256Digest d = sha256(piece.data(), piece.size());
      digests.append(reinterpret_cast<const char*>(d.data()), d.size());
      at += kTreeDigestPiece;
    } while (at < bytes.size());
    return hex(sha256(digests.data(), digests.size()));
  };
  for (const size_t size : {size_t{0}, size_t{1}, kTreeDigestPiece - 1, kTreeDigestPiece, 2 * kTreeDigestPiece + 5}) {
    std::string bytes(size, 'x');
    for (size_t i = 0; i < size; i += 1000) bytes[i] = static_cast<char>(i / 1000);
    EXPECT_EQ(tree(bytes), by_hand(bytes)) << size;
    if (size == 0) continue;
    std::string other = bytes;
    other[size - 1] = static_cast<char>(other[size - 1] ^ 1);
    EXPECT_NE(tree(other), tree(bytes));
    EXPECT_NE(tree(bytes + '\0'), tree(bytes));
  }
}

TEST(TreeDigest, what_is_done_is_told_and_what_that_throws_ends_it) {
  const std::string bytes(70 * kTreeDigestPiece + 3, 'x');
  std::string_view seen(bytes.data(), 0);
  int calls = 0;
  const Sha256Digest digest = tree_digest(bytes, [&](std::string_view stretch) {
    EXPECT_EQ(stretch.data(), seen.data() + seen.size()) << "stretches follow each other";
    seen = {bytes.data(), seen.size() + stretch.size()};
    ++calls;
  });
  EXPECT_EQ(seen.size(), bytes.size());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(hex(digest), tree(bytes));
  EXPECT_THROW(tree_digest(bytes, [](std::string_view) { throw std::runtime_error("enough"); }), std::runtime_error);
}

}  // namespace
}  // namespace tenon
