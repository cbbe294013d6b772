#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tenon::views {

/// A two-dimensional slice of a tensor in as many cells as a picture has, each the mean of a block of values; of a
/// large block, of some rows of it and the first values in them, so that a slice of any size is read at once. What has
/// one axis, or none, is laid in rows.
struct ValueSlice {
  static constexpr int64_t kMostCells = 64;  ///< along a side

  int row_axis = -1, col_axis = -1;
  Dims index;                              ///< along the other axes
  int64_t rows = 0, cols = 0;              ///< values of the slice
  int64_t block_rows = 1, block_cols = 1;  ///< values of a cell
  int cell_rows = 0, cell_cols = 0;
  std::vector<double> cells;  ///< row by row; NaN where a value of the block is not finite
  double scale = 0;           ///< the largest size of a cell

  int64_t read_rows() const;  ///< of a block
  int64_t read_cols() const;
  /// "each cell is the mean of 16 × 16 values"; nothing where each is a value.
  std::string blocks() const;
  /// Which values a cell is of: "[3, 5]", "[0 to 15, 32 to 47]".
  std::string place(int cell_row, int cell_col) const;
};
/// `index`: an entry an axis; those of the slice's own axes are not looked at.
ValueSlice read_slice(const Tensor& t, int row_axis, int col_axis, const Dims& index);

}  // namespace tenon::views
