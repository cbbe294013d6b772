#pragma once
#include "engine/cuda/strided.h"

// Note [Who writes a row that many sources want]
// Scatters and the gradients of lookups join sources into rows whose numbers are data. Each element of a row is joined
// by one thread in the order of the sources, as on the CPU. There are two ways to that. Where a column (sources that
// differ only in their place along the indexed axis) is short, or there are very many of them, a thread walks its
// column and reads and writes what it meets. Else the sources are sorted by their rows (a stable radix sort), and a
// thread takes an element of a row and walks that row's sources.
//
// Numbers that are out of range: the CPU's op throws, which a kernel cannot. Here a read gives NaN (0 where the type
// has none), and a write is left out; nothing outside of the operands is touched.
namespace tenon::cuda {

/// What becomes of a row that several sources want.
enum class Join : int { last, sum, prod, amax, amin };

template <class T, Join How>
TENON_HD T joined(T a, T b) {
  if constexpr (How == Join::sum) return a + b;
  if constexpr (How == Join::prod) return a * b;
  if constexpr (How == Join::amax) return b > a || b != b ? b : a;
  if constexpr (How == Join::amin) return b < a || b != b ? b : a;
  return b;
}

/// Numbers along an axis as an operand holds them, and what a kernel makes of them.
struct RowNumbers {
  static constexpr int64_t kNowhere = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kBlank = kNowhere + 1;

  const void* at = nullptr;
  bool wide = true;        ///< i64, else i32
  bool from_end = true;    ///< -1 is the last
  int64_t size = 0;        ///< of the axis; -1: the numbers are results already
  int64_t step = 1;        ///< from one number to the next
  int64_t blank = kBlank;  ///< the number that stands for nothing

  TENON_HD int64_t operator()(int64_t i) const {
    const int64_t v = wide ? static_cast<const int64_t*>(at)[i] : static_cast<const int32_t*>(at)[i];
    if (size < 0) return v;
    if (v == blank) return kBlank;
    if (v < (from_end ? -size : 0) || v >= size) return kNowhere;
    return (v < 0 ? v + size : v) * step;
  }
};

RowNumbers numbers_of(const Operand& index, int64_t size, int64_t step);
/// What the inputs from `from` on, numbers along axes of these sizes and steps, name together: i64, row-major, each
/// kNowhere where one of them is. To be read with size -1.
Operand combined_rows(const Args& c, int from, const int64_t* size, const int64_t* step);

/// Sources by their rows: places [0, count) hold them by rising row, those of one row by rising number.
struct RowLists {
  const uint32_t* row;
  const uint32_t* source;
  int64_t count, rows;
};
/// Rows below 2^31 - 1 and as many sources at most. `row` holds a number for each source and is written over; what is
/// no row stands as `rows` and comes last.
RowLists row_lists(const Args& c, uint32_t* row, int64_t count, int64_t rows);
bool sortable(int64_t count, int64_t rows);

/// y [outer, rows, inner] = each row joined with those of values [outer, count, inner] that the lists give it. Both are
/// row-major and of one type: f32, f64, i32 or i64, and for Join::last any. `fresh`: what y holds does not count.
void join_lists(const Args& c, const RowLists& lists, int64_t outer, int64_t inner, const Operand& values,
                const Operand& y, Join how, bool fresh);

}  // namespace tenon::cuda
