#include "core/tree_digest.h"

#include <algorithm>
#include <vector>

#include "core/parallel.h"

namespace tenon {

Sha256Digest tree_digest(std::string_view bytes, const std::function<void(std::string_view stretch)>& behind) {
  constexpr size_t kStretch = 64;  // pieces
  const size_t count = std::max<size_t>(1, (bytes.size() + kTreeDigestPiece - 1) / kTreeDigestPiece);
  std::vector<Sha256Digest> pieces(count);
  for (size_t first = 0; first < count; first += kStretch) {
    const size_t here = std::min(kStretch, count - first);
    parallel_for(static_cast<int64_t>(here), 1, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        const std::string_view piece = bytes.substr((first + i) * kTreeDigestPiece, kTreeDigestPiece);
        pieces[first + i] = sha256(piece.data(), piece.size());
      }
    });
    if (behind) behind(bytes.substr(first * kTreeDigestPiece, here * kTreeDigestPiece));
  }
  return sha256(pieces.data(), pieces.size() * sizeof(Sha256Digest));
}

}  // namespace tenon
