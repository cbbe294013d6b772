#include <cmath>

#include "engine/cuda/row_lists.h"

// Lookups: reading rows, or elements of rows, whose numbers are data.
namespace tenon::cuda {
namespace {

constexpr int kIndexThreads = 256;

/// What a read out of range gives.
uint64_t missing_bits(DType t) {
  uint64_t bits = 0;
  if (is_floating(t)) element::put(&bits, t, 0, std::nan(""));
  return bits;
}

/// The plan is of y, of x as far as y's axes say where an element lies, and of the numbers, which say the rest.
template <class T>
__global__ void read_rows(const T* x, RowNumbers rows, T* y, T missing, Strided<3> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[3];
    p.find(i, at);
    const int64_t row = rows(at[2]);
    y[at[0]] = row == RowNumbers::kNowhere ? missing : row == RowNumbers::kBlank ? T(0) : x[at[1] + row];
  }
}
void read_by(const Args& c, const Operand& y, const Operand& x, const Operand& numbers, const RowNumbers& rows) {
  const Strided<3> p = strided_of<3>({y, x, numbers});
  with_width(y.type(), [&]<class T>(T) {
    launch(read_rows<T>, blocks_for(p.numel, kIndexThreads), kIndexThreads, c, x.at<const T>(), rows, y.at<T>(),
           static_cast<T>(missing_bits(y.type())), p);
  });
}

/// An operand of y's size whose axes have these strides.
Operand seen_as(const Operand& y, const Operand& of) {
  Operand o = y;
  o.data = of.data;
  o.dtype = of.dtype;
  for (int d = 0; d < kDims; ++d) o.stride[d] = 0;
  return o;
}

void run_embedding(Args& c) {
  const Operand w = c.in(0), index = c.in(1), y = c.out(0);
  c.want(index.is(DType::i64));
  Operand x = seen_as(y, w), numbers = seen_as(y, index);
  x.stride[y.ndim - 1] = w.stride[1];
  for (int d = 0; d < index.ndim; ++d) numbers.stride[d] = index.stride[d];
  RowNumbers rows = numbers_of(index, w.size[0], w.stride[0]);
  rows.from_end = false;
  if (c.flag("zero_padding")) rows.blank = c.whole("padding_idx");
  read_by(c, y, x, numbers, rows);
}

void run_gather(Args& c) {
  const auto axis = static_cast<int>(c.whole("axis"));
  const Operand x = c.in(0), index = c.in(1), y = c.out(0);
  Operand seen = seen_as(y, x);
  for (int d = 0; d < y.ndim; ++d) seen.stride[d] = d == axis ? 0 : x.stride[d];
  read_by(c, y, seen, index, numbers_of(index, x.size[axis], x.stride[axis]));
}

void run_index(Args& c) {
  const auto first = static_cast<int>(c.whole("first"));
  const int count = c.inputs() - 1;
  const Operand x = c.in(0), y = c.out(0);
  Operand index = c.in(1), seen = seen_as(y, x);
  RowNumbers rows = numbers_of(index, x.size[first], x.stride[first]);
  if (count > 1) {
    index = combined_rows(c, 1, x.size + first, x.stride + first);
    rows = numbers_of(index, -1, 0);
  }
  Operand numbers = seen_as(y, index);
  for (int d = 0; d < first; ++d) seen.stride[d] = x.stride[d];
  for (int d = 0; d < index.ndim; ++d) numbers.stride[first + d] = index.stride[d];
  for (int d = first + count; d < x.ndim; ++d) seen.stride[d - count + index.ndim] = x.stride[d];
  read_by(c, y, seen, numbers, rows);
}

/// The plan is of y and of the index.
template <class T>
__global__ void one_hot_rows(const int64_t* index, T* y, Divider classes, Strided<2> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[2];
    p.find(i, at);
    y[at[0]] = index[at[1]] == i - classes.of(i) * classes.by ? T(1) : T(0);
  }
}
void run_one_hot(Args& c) {
  const Operand index = c.in(0), y = c.out(0);
  c.want(y.is(DType::f32) || y.is(DType::f64));
  Operand seen = seen_as(y, index);
  for (int d = 0; d < index.ndim; ++d) seen.stride[d] = index.stride[d];
  const Strided<2> p = strided_of<2>({y, seen}, Count::row_major);
  with_compute_type(y.type(), [&]<class T>(T) {
    launch(one_hot_rows<T>, blocks_for(p.numel, kIndexThreads), kIndexThreads, c, index.at<const int64_t>(), y.at<T>(),
           Divider(y.size[y.ndim - 1]), p);
  });
}

struct Bags {
  const int64_t *index, *offsets;
  int64_t index_step, offset_step, count, last_offset;  ///< last_offset: how many offsets there are
  int64_t rows, row_step, column_step;                  ///< of the weight
  int64_t bags, scale_step, padding, mode;
  Divider width;
  int64_t y_step[2], winner_step[2];

  /// Where a bag begins; one past the last ends with the numbers. Offsets out of range, at which the CPU throws, are
  /// brought inside.
  __device__ int64_t begin(int64_t bag) const {
    const int64_t at = bag < last_offset ? offsets[bag * offset_step] : count;
    return at < 0 ? 0 : at > count ? count : at;
  }
};
enum BagMode : int { bag_sum, bag_mean, bag_max };

/// A thread for an element of a bag, which takes the bag's numbers in order.
template <class T>
__global__ void embedding_bags(const T* weight, const T* scale, T* y, int64_t* winner, T missing, Bags b) {
  for (int64_t t = first_of_thread(); t < b.bags * b.width.by; t += threads_of_grid()) {
    const int64_t bag = b.width.of(t), j = t - bag * b.width.by, end = b.begin(bag + 1);
    T sum = 0;
    int64_t used = 0, won = -1;
    bool lost = false;
    for (int64_t i = b.begin(bag); i < end; ++i) {
      const int64_t row = b.index[i * b.index_step];
      if (row == b.padding) continue;
      if (row < 0 || row >= b.rows) {
        lost = true;
        continue;
      }
      const T v = weight[row * b.row_step + j * b.column_step];
      if (b.mode != bag_max) {
        sum += scale ? scale[i * b.scale_step] * v : v;
      } else if (used == 0 || v > sum) {
        sum = v;
        won = row;
      }
      ++used;
    }
    if (b.mode == bag_mean && used > 0) sum /= static_cast<T>(used);
    y[bag * b.y_step[0] + j * b.y_step[1]] = lost ? missing : sum;
    if (b.mode == bag_max) winner[bag * b.winner_step[0] + j * b.winner_step[1]] = won;
  }
}

void run_embedding_bag(Args& c) {
  const Operand w = c.in(0), index = c.in(1), offsets = c.in(2), scale = c.in(3), y = c.out(0), winner = c.out(1);
  c.want(index.is(DType::i64) && offsets.is(DType::i64));
  Bags b;
  b.index = index.at<const int64_t>();
  b.offsets = offsets.at<const int64_t>();
  b.index_step = index.stride[0];
  b.offset_step = offsets.stride[0];
  b.count = index.size[0];
  b.last_offset = offsets.size[0];
  b.rows = w.size[0];
  b.row_step = w.stride[0];
  b.column_step = w.stride[1];
  b.bags = y.size[0];
  b.scale_step = scale.there() ? scale.stride[0] : 0;
  b.padding = c.whole("padding_idx");
  b.mode = c.whole("mode");
  b.width = Divider(y.size[1]);
  for (int k = 0; k < 2; ++k) {
    b.y_step[k] = y.stride[k];
    b.winner_step[k] = b.mode == bag_max ? winner.stride[k] : 0;
  }
  with_compute_type(w.type(), [&]<class T>(T) {
    launch(embedding_bags<T>, blocks_for(y.numel(), kIndexThreads), kIndexThreads, c, w.at<const T>(),
           scale.there() ? scale.at<const T>() : nullptr, y.at<T>(), winner.at<int64_t>(),
           std::numeric_limits<T>::quiet_NaN(), b);
  });
}

const KernelOf embedding_entry{"embedding", run_embedding};
const KernelOf gather_entry{"gather", run_gather};
const KernelOf index_entry{"index", run_index};
const KernelOf one_hot_entry{"one_hot", run_one_hot};
const KernelOf embedding_bag_entry{"embedding_bag", run_embedding_bag};

}  // namespace
}  // namespace tenon::cuda
