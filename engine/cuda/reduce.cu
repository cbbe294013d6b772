#include <algorithm>
#include <cstdlib>

#include "engine/cuda/rows.h"

// Sums, products and extremes over any axes. Axes are put in the order of memory first, reduced and kept ones apart;
// what lies innermost says whether results are rows, which groups of threads read side by side, or columns.
namespace tenon::cuda {
namespace {

using rows::Walk;

struct ReduceSum {
  template <class T>
  static __device__ T start() {
    return T(0);
  }
  template <class T>
  static __device__ T join(T a, T b) {
    return a + b;
  }
};
struct ReduceProduct {
  template <class T>
  static __device__ T start() {
    return T(1);
  }
  template <class T>
  static __device__ T join(T a, T b) {
    return a * b;
  }
};
struct ReduceMax {
  template <class T>
  static __device__ T start() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  template <class T>
  static __device__ T join(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct ReduceMin {
  template <class T>
  static __device__ T start() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class T>
  static __device__ T join(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

/// What is read of element i, and how the results of pieces are read again. kOne: all is reduced to one value.
template <class T>
struct ReadPlain {
  using Type = T;
  static constexpr bool kOne = false;
  static ReadPlain again(const T* parts) { return {parts}; }
  const T* x;
  __device__ T operator()(int64_t i) const { return x[i]; }
};
struct ReadWhole {
  using Type = int64_t;
  static constexpr bool kOne = false;
  static ReadWhole again(const int64_t* parts) { return {parts, DType::i64}; }
  const void* x;
  DType dtype;
  __device__ int64_t operator()(int64_t i) const { return element::at<int64_t>(x, dtype, i); }
};
template <class T>
struct ReadSquare {
  using Type = double;
  static constexpr bool kOne = true;
  static ReadPlain<double> again(const double* parts) { return {parts}; }
  const T* x;
  __device__ double operator()(int64_t i) const {
    const auto v = static_cast<double>(x[i]);
    return v * v;
  }
};
/// The squared difference of elements that two operands have at one place.
template <class T>
struct ReadDistance {
  using Type = double;
  static constexpr bool kOne = true;
  static ReadPlain<double> again(const double* parts) { return {parts}; }
  const T *x, *y;
  Walk<2> both;
  bool alike;
  __device__ double operator()(int64_t i) const {
    int64_t at[2] = {i, i};
    if (!alike) both.at(i, at);
    const auto d = static_cast<double>(x[at[0]] - y[at[1]]);
    return d * d;
  }
};

/// A reduction as a kernel sees it: `kept` walks input and output, `along` the input. Where there is more than one
/// piece, what they come to goes to `parts`.
template <class T>
struct ReduceTask {
  Walk<2> kept;
  Walk<1> along;
  int64_t pieces, length;
  T* parts;
  void* out;
  DType out_type;
  T divide_by;

  __device__ void write(int64_t part, int64_t at, T v) const {
    if (parts) {
      parts[part] = v;
      return;
    }
    if constexpr (std::is_floating_point_v<T>)
      if (divide_by != T(1)) v /= divide_by;
    element::put(out, out_type, at, v);
  }
};

/// The values of every step-th element of [i, end) joined. Where one step leads from each to the next they are taken in
/// four runs, so that four are on their way from memory at once.
template <class R, class T, class Read>
__device__ T reduce_run(const Read& read, const Walk<1>& along, int64_t from, int64_t i, int64_t end, int64_t step) {
  T lanes[4];
  for (T& l : lanes) l = R::template start<T>();
  if (along.axes == 2) {  // as images have them that lie side by side: counted on without a division
    const int64_t n = along.size[1], over = along.stride[0][0], in = along.stride[0][1], by_over = step / n,
                  by_in = step % n;
    int64_t a = i / n, b = i % n;
#pragma unroll 4
    for (; i < end; i += step) {
      lanes[0] = R::template join<T>(read(from + a * over + b * in), lanes[0]);
      a += by_over;
      b += by_in;
      if (b >= n) {
        b -= n;
        ++a;
      }
    }
    return lanes[0];
  }
  if (along.axes > 2) {
    for (; i < end; i += step) {
      int64_t at[1];
      along.at(i, at);
      lanes[0] = R::template join<T>(read(from + at[0]), lanes[0]);
    }
    return lanes[0];
  }
  const int64_t by = along.stride[0][0];
  for (; i + 3 * step < end; i += 4 * step) {
#pragma unroll
    for (int k = 0; k < 4; ++k) lanes[k] = R::template join<T>(read(from + (i + k * step) * by), lanes[k]);
  }
#pragma unroll
  for (int k = 0; k < 3; ++k, i += step)
    if (i < end) lanes[k] = R::template join<T>(read(from + i * by), lanes[k]);
  return R::template join<T>(R::template join<T>(lanes[0], lanes[1]), R::template join<T>(lanes[2], lanes[3]));
}

template <class R, class Read, class T = typename Read::Type>
__global__ void __launch_bounds__(256) reduce_rows(Read read, ReduceTask<T> task, int lanes) {
  TENON_SHARED(T, shared, 32);
  for (rows::RowLoop r(task.kept.count * task.pieces, 0, lanes); r.more(); r.next()) {
    const int64_t result = r.row / task.pieces, begin = r.row % task.pieces * task.length;
    int64_t at[2], end = begin + task.length;
    task.kept.at(result, at);
    if (end > task.along.count) end = task.along.count;
    if (!r.there) end = begin;
    T v = reduce_run<R, T>(read, task.along, at[0], begin + r.lane, end, lanes);
    v = rows::over_group<R>(v, lanes, shared);
    if (r.there && r.lane == 0) task.write(r.row, at[1], v);
  }
}

template <class R, class Read, class T = typename Read::Type>
__global__ void __launch_bounds__(256) reduce_columns(Read read, ReduceTask<T> task, int width, int64_t tiles) {
  TENON_SHARED(T, shared, 256);
  const int thread = static_cast<int>(threadIdx.x), across = thread % width, down = thread / width,
            high = static_cast<int>(blockDim.x) / width;
  for (int64_t b = blockIdx.x; b < tiles * task.pieces; b += gridDim.x) {
    const int64_t column = b % tiles * width + across, piece = b / tiles, begin = piece * task.length;
    const bool there = column < task.kept.count;
    int64_t at[2], end = begin + task.length;
    task.kept.at(there ? column : 0, at);
    if (end > task.along.count) end = task.along.count;
    if (!there) end = begin;
    shared[thread] = reduce_run<R, T>(read, task.along, at[0], begin + down, end, high);
    __syncthreads();
    for (int half = high / 2; half > 0; half /= 2) {
      if (down < half) shared[thread] = R::template join<T>(shared[thread], shared[thread + half * width]);
      __syncthreads();
    }
    if (there && down == 0) task.write(piece * task.kept.count + column, at[1], shared[thread]);
    __syncthreads();
  }
}

/// Cuts few long rows: to blocks enough for a large GPU, but not below what makes a block worth its start.
void cut_rows(int64_t results, int64_t n, int64_t& pieces, int64_t& length) {
  const int64_t fill = ceil_div(1024, results), most = ceil_div(n, 4096);
  pieces = std::max<int64_t>({std::min(fill, most), ceil_div(n, int64_t{1} << 18), 1});
  length = std::max<int64_t>(1, ceil_div(n, pieces));
  pieces = std::max<int64_t>(1, ceil_div(n, length));
}

template <class R, class Read, class T = typename Read::Type>
void reduce_walks(const Args& c, const Read& read, ReduceTask<T> task) {
  const int64_t results = task.kept.count, n = task.along.count;
  if (results == 0) return;
  const auto inner = [](const auto& w) { return w.axes ? std::abs(w.stride[0][w.axes - 1]) : INT64_MAX; };
  const bool columns = !Read::kOne && (n > 1 ? inner(task.kept) < inner(task.along) : results > 1);
  const rows::ColumnPlan down(n, results);
  if (columns)
    task.pieces = down.pieces, task.length = down.length;
  else
    cut_rows(results, n, task.pieces, task.length);
  ReduceTask<T> next = task;
  task.parts = task.pieces > 1 ? c.scratch<T>(task.pieces * results) : nullptr;
  if (columns) {
    if constexpr (!Read::kOne)
      launch(reduce_columns<R, Read>, down.blocks(), 256, c, read, task, down.width, down.tiles);
  } else {
    const int64_t items = results * task.pieces;
    const int lanes = task.length > 1024 || (task.length > 128 && items < 2048) ? 256 : rows::power_of_two(n, 32);
    launch(reduce_rows<R, Read>, blocks_for(items, 256 / lanes), 256, c, read, task, lanes);
  }
  if (!task.parts) return;
  // The parts of one result lie one after the other, or as one column.
  int64_t step = columns ? 1 : task.pieces;
  for (int d = next.kept.axes - 1; d >= 0; --d) {
    next.kept.stride[0][d] = step;
    step *= next.kept.size[d];
  }
  next.along = {};
  next.along.add(task.pieces, {columns ? results : 1});
  reduce_walks<R>(c, Read::again(task.parts), next);
}

/// An axis of the input, and how far it leads in the output where it is kept.
struct ReduceAxis {
  int64_t size, in, out;
};
/// The longest steps in the input first; broadcast axes come last.
void put_in_order(ReduceAxis* axes, int n) {
  std::stable_sort(axes, axes + n,
                   [](const ReduceAxis& a, const ReduceAxis& b) { return std::abs(a.in) > std::abs(b.in); });
}

template <class R, class Read, class T = typename Read::Type>
void reduce_axes(const Args& c, const Read& read, bool average) {
  const Operand x = c.in(0), y = c.out(0);
  const AttrArg& axes = c.attr("axes");
  const bool keep = c.flag("keep");
  bool reduced[kDims];
  std::fill_n(reduced, kDims, axes.count == 0);
  for (int i = 0; i < axes.count; ++i)
    if (x.ndim > 0) reduced[axes.list[i] < 0 ? axes.list[i] + x.ndim : axes.list[i]] = true;
  ReduceAxis kept[kDims], along[kDims];
  int kepts = 0, alongs = 0, at = 0;
  for (int d = 0; d < x.ndim; ++d) {
    if (reduced[d])
      along[alongs++] = {x.size[d], x.stride[d], 0}, at += keep;
    else
      kept[kepts++] = {x.size[d], x.stride[d], y.stride[at++]};
  }
  put_in_order(kept, kepts);
  put_in_order(along, alongs);
  ReduceTask<T> task{{}, {}, 1, 0, nullptr, y.data, y.type(), T(1)};
  for (int i = 0; i < kepts; ++i) task.kept.add(kept[i].size, {kept[i].in, kept[i].out});
  for (int i = 0; i < alongs; ++i) task.along.add(along[i].size, {along[i].in});
  if (average) task.divide_by = static_cast<T>(task.kept.count ? task.along.count : 0);
  reduce_walks<R>(c, read, task);
}

template <class R>
void reduce_by_type(const Args& c, bool average = false) {
  const Operand x = c.in(0);
  switch (x.type()) {
    case DType::f32:
      return reduce_axes<R>(c, ReadPlain<float>{x.at<const float>()}, average);
    case DType::f64:
      return reduce_axes<R>(c, ReadPlain<double>{x.at<const double>()}, average);
    default:
      c.want(!is_floating(x.type()));
      return reduce_axes<R>(c, ReadWhole{x.data, x.type()}, false);
  }
}
void run_sum(Args& c) { reduce_by_type<ReduceSum>(c); }
void run_mean(Args& c) { reduce_by_type<ReduceSum>(c, true); }
void run_prod(Args& c) { reduce_by_type<ReduceProduct>(c); }
void run_amax(Args& c) { reduce_by_type<ReduceMax>(c); }
void run_amin(Args& c) { reduce_by_type<ReduceMin>(c); }

/// One double of all elements, in the order of `along`.
template <class Read>
void reduce_all(const Args& c, const Read& read, const Walk<1>& along, double divide_by) {
  const Operand y = c.out(0);
  reduce_walks<ReduceSum>(c, read, ReduceTask<double>{{}, along, 1, 0, nullptr, y.data, y.type(), divide_by});
}

void run_sum_of_squares(Args& c) {
  const Operand x = c.in(0);
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    ReduceAxis axes[kDims];
    for (int d = 0; d < x.ndim; ++d) axes[d] = {x.size[d], x.stride[d], 0};
    put_in_order(axes, x.ndim);
    Walk<1> along;
    for (int d = 0; d < x.ndim; ++d) along.add(axes[d].size, {axes[d].in});
    reduce_all(c, ReadSquare<T>{x.at<const T>()}, along, 1);
  });
}

void run_mse_loss(Args& c) {
  const Operand x = c.in(0), y = c.in(1);
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    const Walk<2> both = rows::walk_of(x, y);
    const bool alike = both.axes == 0 || (both.axes == 1 && both.stride[0][0] == 1 && both.stride[1][0] == 1);
    Walk<1> along;
    along.add(both.count, {1});
    reduce_all(c, ReadDistance<T>{x.at<const T>(), y.at<const T>(), both, alike}, along,
               static_cast<double>(both.count));
  });
}

template <class T>
__global__ void mse_gradient(const T* x, const T* y, const T* g, T factor, T* gx, Walk<3> walk) {
  const T scale = factor * *g;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < walk.count; i += step) {
    int64_t at[3];
    walk.at(i, at);
    gx[at[2]] = (x[at[0]] - y[at[1]]) * scale;
  }
}

void run_mse_loss_backward(Args& c) {
  const Operand x = c.in(0), y = c.in(1), gx = c.out(0);
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    const Walk<3> walk = rows::walk_of(x, y, gx);
    const T factor = static_cast<T>(2.0 / static_cast<double>(walk.count));
    launch(mse_gradient<T>, blocks_for(walk.count, 256), 256, c, x.at<const T>(), y.at<const T>(),
           c.in(2).at<const T>(), factor, gx.at<T>(), walk);
  });
}

const KernelOf sum_entry{"sum", run_sum};
const KernelOf mean_entry{"mean", run_mean};
const KernelOf prod_entry{"prod", run_prod};
const KernelOf amax_entry{"amax", run_amax};
const KernelOf amin_entry{"amin", run_amin};
const KernelOf sum_of_squares_entry{"sum_of_squares", run_sum_of_squares};
const KernelOf mse_loss_entry{"mse_loss", run_mse_loss};
const KernelOf mse_loss_backward_entry{"mse_loss_backward", run_mse_loss_backward};

}  // namespace
}  // namespace tenon::cuda
