#pragma once
#include "core/tensor.h"

namespace tenon {

/// Rows of weight [rows, width] by number: index (i64, any size) -> [index's size, width]. Numbers out of range throw.
/// The row padding_idx
/// (-1: none) gets no gradient. torch.nn.functional.embedding.
Tensor embedding(const Tensor& index, const Tensor& weight, int64_t padding_idx = -1);
/// The adjoint: row index[i] of a [rows, width] result is the sum of the rows of x [index's size, width] with that
/// number.
Tensor scatter_rows(const Tensor& x, const Tensor& index, int64_t rows, int64_t padding_idx = -1);

enum class BagMode : uint8_t { sum, mean, max };
struct EmbeddingBagOptions {
  BagMode mode = BagMode::mean;
  int64_t padding_idx = -1;          ///< rows of that number are no part of their bag; -1: none
  bool include_last_offset = false;  ///< the last offset is the end of the last bag
};
/// Sums (means, maxima) of bags of rows, without the rows in between. index [bags, n], or [all] with offsets [bags]
/// where each bag begins; per_sample_weights of index's size, for sums only. -> [bags, width]; an empty bag is 0.
/// torch.nn.functional.embedding_bag.
Tensor embedding_bag(const Tensor& index, const Tensor& weight, const Tensor& offsets = {},
                     const EmbeddingBagOptions& options = {}, const Tensor& per_sample_weights = {});

}  // namespace tenon
