#include "core/tree_digest.h"

#include <algorithm>
#include <vector>

#include "core/parallel.h"

namespace tenon {

Sha256Digest tree_digest(std::string_view bytes) {
  const size_t count = std::max<size_t>(1, (bytes.size() + kTreeDigestPiece - 1) / kTreeDigestPiece);
  std::vector<Sha256Digest> pieces(count);
  parallel_for(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const std::string_view piece = bytes.substr(i * kTreeDigestPiece, kTreeDigestPiece);
      pieces[i] = sha256(piece.data(), piece.size());
    }
  });
  return sha256(pieces.data(), pieces.size() * sizeof(Sha256Digest));
}

}  // namespace tenon
