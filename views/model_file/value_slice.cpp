#include "views/model_file/value_slice.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/backend.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr int64_t kMostRows = 16, kMostCols = 64, kMostInRows = 1024;  // of a block that are read

int64_t blocks_of(int64_t n, int64_t most) { return std::max<int64_t>((n + most - 1) / most, 1); }
/// While it lives the system reads nothing ahead of what is touched: a slice of a large file touches a page here and
/// there, and reading ahead of each would read most of the file.
class FewPages {
 public:
  explicit FewPages(const Tensor& t) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<uintptr_t>(t.storage()->data);
    begin_ = from / page * page;
    bytes_ = t.storage()->bytes + (from - begin_);
    ::madvise(reinterpret_cast<void*>(begin_), bytes_, MADV_RANDOM);
  }
  ~FewPages() { ::madvise(reinterpret_cast<void*>(begin_), bytes_, MADV_NORMAL); }
  FewPages(const FewPages&) = delete;

 private:
  uintptr_t begin_;
  size_t bytes_;
};

std::string stretch(int64_t from, int64_t count, int64_t end) {
  return count <= 1 || from + 1 >= end ? std::to_string(from) : tr("{} to {}", from, std::min(from + count, end) - 1);
}
}  // namespace

int64_t ValueSlice::read_rows() const { return blocks_of(block_rows, blocks_of(block_rows, kMostRows)); }
int64_t ValueSlice::read_cols() const { return std::min(block_cols, row_axis < 0 ? kMostInRows : kMostCols); }

std::string ValueSlice::blocks() const {
  const int64_t all = block_rows * block_cols, read = read_rows() * read_cols();
  if (all <= 1) return {};
  if (read < all) return tr("each cell is the mean of {} of its {} values", format_grouped(read), format_grouped(all));
  return row_axis < 0 ? tr("each cell is the mean of {} values", block_cols)
                      : tr("each cell is the mean of {} × {} values", block_rows, block_cols);
}

std::string ValueSlice::place(int r, int c) const {
  if (row_axis < 0) return fmt::format("[{}]", stretch((int64_t{r} * cell_cols + c) * block_cols, block_cols, cols));
  std::string out = "[";
  for (int a = 0; a < index.n; ++a)
    out += (a ? ", " : "") + (a == row_axis   ? stretch(r * block_rows, block_rows, rows)
                              : a == col_axis ? stretch(c * block_cols, block_cols, cols)
                                              : std::to_string(index[a]));
  return out + "]";
}

ValueSlice read_slice(const Tensor& given, int row_axis, int col_axis, const Dims& index) {
  constexpr int64_t kMost = ValueSlice::kMostCells;
  ValueSlice s;
  if (!given.defined() || given.is_meta() || given.numel() == 0) return s;
  const Tensor t = to_host(given);
  const Layout l = t.layout();
  s.index = index;
  s.row_axis = row_axis;
  s.col_axis = col_axis;
  s.rows = row_axis >= 0 ? l.size[row_axis] : 1;
  s.cols = col_axis >= 0 ? l.size[col_axis] : 1;
  int64_t start = l.offset;
  for (int a = 0; a < l.ndim(); ++a)
    if (a != row_axis && a != col_axis) start += index[a] * l.stride[a];
  if (row_axis >= 0) {
    s.block_rows = blocks_of(s.rows, kMost);
    s.block_cols = blocks_of(s.cols, kMost);
    s.cell_rows = static_cast<int>(blocks_of(s.rows, s.block_rows));
    s.cell_cols = static_cast<int>(blocks_of(s.cols, s.block_cols));
  } else {
    s.block_cols = blocks_of(s.cols, kMost * kMost);
    const int64_t cells = blocks_of(s.cols, s.block_cols);
    s.cell_cols = static_cast<int>(std::min(cells, kMost));
    s.cell_rows = static_cast<int>(blocks_of(cells, kMost));
  }
  const FewPages few(t);
  const int64_t row_step = row_axis >= 0 ? l.stride[row_axis] : 0, col_step = col_axis >= 0 ? l.stride[col_axis] : 0;
  for (int r = 0; r < s.cell_rows; ++r)
    for (int c = 0; c < s.cell_cols; ++c) {
      const int64_t row = row_axis >= 0 ? r * s.block_rows : 0,
                    col = (row_axis >= 0 ? int64_t{c} : int64_t{r} * s.cell_cols + c) * s.block_cols;
      if (col >= s.cols) {  // behind the end of what is laid in rows
        s.cells.push_back(0);
        continue;
      }
      const int64_t row_end = std::min(row + s.block_rows, s.rows), col_end = std::min(col + s.read_cols(), s.cols),
                    every = blocks_of(s.block_rows, kMostRows);
      double sum = 0;
      int64_t count = 0;
      for (int64_t i = row; i < row_end; i += every)
        for (int64_t k = col; k < col_end; ++k, ++count) sum += storage_value(t, start + i * row_step + k * col_step);
      const double mean = sum / static_cast<double>(count);
      s.cells.push_back(std::isfinite(mean) ? mean : std::numeric_limits<double>::quiet_NaN());
      if (std::isfinite(mean)) s.scale = std::max(s.scale, std::fabs(mean));
    }
  return s;
}

}  // namespace tenon::views
