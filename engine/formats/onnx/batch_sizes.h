#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/layout.h"

namespace tenon::formats {

// Note [Sizes that hold the batch]
// A file asks Reshape and Expand for sizes, and one of them may be the batch, or some of its samples below each other:
// computed from the size of what arrives, or as the number of samples that the exporter saw. Each value is known at two
// batches, so what is computed differs between them, and is read from that. A number that was written down shows itself
// in that the sizes hold another number of elements than arrives: their quotient is the batch it was written for. Where
// it stands follows from the order of the elements, which Reshape keeps: as many of them lie before a sample as before.

/// What is known at each of two batches.
template <class T>
struct AtTwoBatches {
  T at, again;
};

/// Sizes that fit any batch.
struct BatchSizes {
  std::vector<int64_t> sizes;          ///< Reshape: -1 for what the batch is in; Expand: 1
  std::optional<int64_t> written_for;  ///< the number of samples that stood in them
};

/// Of the sizes `to` that Reshape is asked for (-1: what is left; a 0 was looked up). `written_for`: the batch that the
/// file says elsewhere. Throws Error where the batch stands in several of them, or which one it is does not follow.
BatchSizes reshape_of_any_batch(const AtTwoBatches<Shape>& from, const AtTwoBatches<std::vector<int64_t>>& to,
                                const AtTwoBatches<int64_t>& batch, std::optional<int64_t> written_for = {});
/// The same of Expand.
BatchSizes expand_of_any_batch(const AtTwoBatches<Shape>& from, const AtTwoBatches<std::vector<int64_t>>& to,
                               const AtTwoBatches<int64_t>& batch);

}  // namespace tenon::formats
