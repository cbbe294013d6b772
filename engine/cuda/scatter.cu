#include "engine/cuda/row_lists.h"

// Writing and adding to rows, or to elements of rows, whose numbers are data: Note [Who writes a row that many sources
// want].
namespace tenon::cuda {
namespace {

constexpr int kScatterThreads = 256;

/// A thread walks so many sources where the columns are few; more where sorting all of them would take longer.
constexpr int64_t kWalk = 64, kWalkShare = 8192;

DType joined_in(DType t) {
  if (t == DType::f16 || t == DType::bf16) return DType::f32;
  return t < DType::i32 ? DType::i32 : t;  // of small integers the low bits are the same
}

/// Columns of sources and where they go, as a kernel walks them.
struct ColumnWalk {
  RowNumbers rows;
  int64_t length;
  int64_t number_step, source_step;  ///< along the walk
  Strided<3> columns;                ///< of y, of the numbers, of the sources
};

/// `met` has a byte for every element of y where what y holds does not count: whether it was written.
template <class T, Join How>
__global__ void walk_columns(const T* source, T* y, uint8_t* met, ColumnWalk w) {
  for (int64_t t = first_of_thread(); t < w.columns.numel; t += threads_of_grid()) {
    int64_t at[3];
    w.columns.find(t, at);
    for (int64_t k = 0; k < w.length; ++k) {
      const int64_t row = w.rows(at[1] + k * w.number_step);
      if (row == RowNumbers::kNowhere) continue;
      const T v = source[at[2] + k * w.source_step];
      const int64_t to = at[0] + row;
      const bool first = met && !met[to];
      if (first) met[to] = 1;
      y[to] = first ? v : joined<T, How>(y[to], v);
    }
  }
}

void walk_all(const Args& c, const ColumnWalk& w, const Operand& source, const Operand& y, Join how, bool fresh) {
  uint8_t* met = nullptr;
  if (fresh && how != Join::last) {
    const Operand bytes = row_major(c, y, DType::u8);
    fill_elements(c, bytes, 0);
    met = bytes.at<uint8_t>();
  }
  const unsigned blocks = blocks_for(w.columns.numel, kScatterThreads);
  if (how == Join::last) {
    with_width(y.type(), [&]<class T>(T) {
      launch(walk_columns<T, Join::last>, blocks, kScatterThreads, c, source.at<const T>(), y.at<T>(), nullptr, w);
    });
    return;
  }
  with_compute_type<true>(y.type(), [&]<class T>(T) {
    const auto run = [&](auto* kernel) {
      launch(kernel, blocks, kScatterThreads, c, source.at<const T>(), y.at<T>(), met, w);
    };
    if (how == Join::sum) run(walk_columns<T, Join::sum>);
    if (how == Join::prod) run(walk_columns<T, Join::prod>);
    if (how == Join::amax) run(walk_columns<T, Join::amax>);
    if (how == Join::amin) run(walk_columns<T, Join::amin>);
  });
}

bool walks(int64_t length, int64_t sources, int64_t rows) {
  return length <= kWalk + sources / kWalkShare || !sortable(sources, rows);
}

/// Every source's row for sorting, in the order of the sources: what `numbers` gives, moved to where its column begins.
/// The plan is row-major, of the numbers and of y without the axis.
__global__ void list_rows(RowNumbers numbers, uint32_t* row, uint32_t rows, Strided<2> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[2];
    p.find(i, at);
    const int64_t r = numbers(at[0]);
    row[i] = r < 0 ? rows : static_cast<uint32_t>(at[1] + r);
  }
}
RowLists lists_of(const Args& c, const RowNumbers& numbers, const Operand& index, const Operand& column, int64_t rows) {
  const Strided<2> p = strided_of<2>({index, column}, Count::row_major);
  auto* row = c.scratch<uint32_t>(p.numel);
  launch(list_rows, blocks_for(p.numel, kScatterThreads), kScatterThreads, c, numbers, row, static_cast<uint32_t>(rows),
         p);
  return row_lists(c, row, p.numel, rows);
}

/// Inputs x, index, source, of which the result is x joined with the source's elements.
void scatter_by(Args& c, Join how, bool fresh) {
  const auto axis = static_cast<int>(c.whole("axis"));
  const Operand x = c.in(0), index = c.in(1), out = c.out(0);
  const DType t = how == Join::last ? out.type() : joined_in(out.type());
  const Operand y = target_of(c, out, t);
  if (y.data != x.data) copy_elements(c, y, x);
  const int64_t sources = index.numel(), length = index.size[axis];
  if (sources > 0) {
    const RowNumbers numbers = numbers_of(index, y.size[axis], y.stride[axis]);
    Operand column = index;  // y's strides but along the axis
    for (int d = 0; d < y.ndim; ++d) column.stride[d] = d == axis ? 0 : y.stride[d];
    if (walks(length, sources, y.numel())) {
      const Operand source = c.in(2).is(t) ? c.in(2) : dense_of(c, c.in(2), t);
      ColumnWalk w{numbers, length, index.stride[axis], source.stride[axis], {}};
      Operand of[3] = {column, index, source};
      for (Operand& o : of) o.size[axis] = 1;
      w.columns = strided_of<3>(of);
      walk_all(c, w, source, y, how, fresh);
    } else {
      join_lists(c, lists_of(c, numbers, index, column, y.numel()), 1, 1, dense_of(c, c.in(2), t), y, how, fresh);
    }
  }
  finish(c, out, y);
}

void run_scatter(Args& c) { scatter_by(c, Join::last, false); }
void run_scatter_add(Args& c) { scatter_by(c, Join::sum, false); }
void run_scatter_reduce(Args& c) {
  constexpr Join by_number[] = {Join::sum, Join::prod, Join::last, Join::amax, Join::amin};
  const int64_t how = c.whole("reduce");
  c.want(how >= 0 && how < 5 && how != 2);  // a mean is not reduced here
  scatter_by(c, by_number[how], !c.flag("include_self"));
}

/// Inputs x, values, indices.
void run_index_put(Args& c) {
  const auto first = static_cast<int>(c.whole("first"));
  const bool adds = c.flag("accumulate");
  const int indices = c.inputs() - 2;
  const Operand x = c.in(0), out = c.out(0), index = c.in(2);
  const DType t = adds ? joined_in(out.type()) : out.type();
  const Join how = adds ? Join::sum : Join::last;
  const Operand y = target_of(c, out, t);
  if (y.data != x.data) copy_elements(c, y, x);
  int64_t outer = 1, rows = 1, inner = 1;
  const int64_t count = index.numel();
  for (int d = 0; d < y.ndim; ++d) (d < first ? outer : d < first + indices ? rows : inner) *= y.size[d];
  if (outer * count * inner > 0) {
    // y is [outer, rows, inner] here, and the values [outer, count, inner].
    const Operand values = dense_of(c, c.in(1), t);
    const bool walked_all = walks(count, outer * count * inner, rows) || !sortable(count, rows);
    int64_t step[kDims];
    step[indices - 1] = walked_all ? inner : 1;
    for (int k = indices - 2; k >= 0; --k) step[k] = step[k + 1] * y.size[first + k + 1];
    const Operand row = combined_rows(c, 2, y.size + first, step);
    const RowNumbers ready{row.data, true, false, -1};
    if (walked_all) {
      const auto cols = [&](const Operand& like, int64_t outer_step, int64_t inner_step) {
        Operand o = like;
        o.ndim = 2;
        o.size[0] = outer;
        o.size[1] = inner;
        o.stride[0] = outer_step;
        o.stride[1] = inner_step;
        return o;
      };
      ColumnWalk w{ready, count, 1, inner, {}};
      w.columns = strided_of<3>({cols(y, rows * inner, 1), cols(row, 0, 0), cols(values, count * inner, 1)});
      walk_all(c, w, values, y, how, false);
    } else {
      Operand flat = row, none = row;
      flat.ndim = none.ndim = 1;
      flat.size[0] = none.size[0] = count;
      flat.stride[0] = 1;
      none.stride[0] = 0;
      join_lists(c, lists_of(c, ready, flat, none, rows), outer, inner, values, y, how, false);
    }
  }
  finish(c, out, y);
}

/// Inputs x [.., width], index [..]: the rows of x added up by their numbers.
void run_scatter_rows(Args& c) {
  const Operand index = c.in(1), out = c.out(0);
  const int64_t rows = c.whole("rows"), width = out.size[1], count = index.numel();
  c.want(index.is(DType::i64) && (out.is(DType::f32) || out.is(DType::f64)) && sortable(count, rows));
  const Operand y = target_of(c, out, out.type());
  fill_elements(c, y, 0);
  if (count * width > 0) {
    RowNumbers numbers{index.data, true, false, rows, 1};
    numbers.blank = c.whole("padding_idx");
    Operand none = index;
    for (int64_t& s : none.stride) s = 0;
    join_lists(c, lists_of(c, numbers, index, none, rows), 1, width, dense_of(c, c.in(0), y.type()), y, Join::sum,
               false);
  }
  finish(c, out, y);
}

const KernelOf scatter_entry{"scatter", run_scatter};
const KernelOf scatter_add_entry{"scatter_add", run_scatter_add};
const KernelOf scatter_reduce_entry{"scatter_reduce", run_scatter_reduce};
const KernelOf index_put_entry{"index_put", run_index_put};
const KernelOf scatter_rows_entry{"scatter_rows", run_scatter_rows};

}  // namespace
}  // namespace tenon::cuda
