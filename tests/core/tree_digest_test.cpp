#include "core/tree_digest.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tenon
