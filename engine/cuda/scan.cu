#include <algorithm>
#include <cstdlib>

#include "engine/cuda/rows.h"

// Running sums, products, extremes and recurrences along an axis. Each is a way to join what came before with what
// comes after. Where there are many columns beside each other a thread goes down each; else groups of threads go along
// rows, and few long rows are cut into pieces: what each comes to, what comes before each, and then its values.
namespace tenon::cuda {
namespace {

/// Up to two inputs and two outputs, of which elements are `step` apart along the axis.
struct ScanTask {
  const void *x, *b;
  void* y;
  int64_t* places;
  DType x_type, y_type;
  int width;  ///< bytes of an element of x
  rows::Walk<4> kept;
  int64_t n, step[4];
};

// A way to scan has a State, the state before the first element, what an element is alone, the state of two runs one
// after the other, and what is written of a state.
template <class T>
__device__ T scan_up(T v, int by) {
  return __shfl_up_sync(0xffffffffu, v, by);
}
template <class T>
__device__ T scan_from(T v, int lane) {
  return __shfl_sync(0xffffffffu, v, lane);
}

template <class Acc>
struct ScanSum {
  using State = Acc;
  static __device__ State none() { return 0; }
  static __device__ State alone(const ScanTask& t, const int64_t (&at)[4], int64_t) {
    return element::at<Acc>(t.x, t.x_type, at[0]);
  }
  static __device__ State join(State a, State b) { return a + b; }
  static __device__ void write(const ScanTask& t, const int64_t (&at)[4], State v, int64_t) {
    element::put(t.y, t.y_type, at[2], v);
  }
};
template <class Acc>
struct ScanProduct : ScanSum<Acc> {
  static __device__ Acc none() { return 1; }
  static __device__ Acc join(Acc a, Acc b) { return a * b; }
};
struct ScanLogSumExp : ScanSum<double> {
  static __device__ double none() { return -std::numeric_limits<double>::infinity(); }
  static __device__ double join(double a, double b) {
    const bool second = b > a || b != b;
    const double hi = second ? b : a, lo = second ? a : b;
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    return lo == -kInfinite || hi == kInfinite ? hi : hi + std::log1p(std::exp(lo - hi));
  }
};

/// last -> a * last + b.
template <class Acc>
struct ScanStep {
  Acc a, b;
};
template <class Acc>
__device__ ScanStep<Acc> scan_up(ScanStep<Acc> v, int by) {
  return {scan_up(v.a, by), scan_up(v.b, by)};
}
template <class Acc>
__device__ ScanStep<Acc> scan_from(ScanStep<Acc> v, int lane) {
  return {scan_from(v.a, lane), scan_from(v.b, lane)};
}
/// The product of many finite factors stays finite: one after the other they would leave a zero zero.
template <class Acc>
struct ScanRecurrence {
  using State = ScanStep<Acc>;
  static __device__ State none() { return {1, 0}; }
  static __device__ State alone(const ScanTask& t, const int64_t (&at)[4], int64_t) {
    return {element::at<Acc>(t.x, t.x_type, at[0]), element::at<Acc>(t.b, t.x_type, at[1])};
  }
  static __device__ State join(State a, State b) {
    constexpr Acc kLargest = std::numeric_limits<Acc>::max();
    const auto finite = [](Acc v) { return v >= -kLargest && v <= kLargest; };
    Acc both = a.a * b.a;
    if (!finite(both) && finite(a.a) && finite(b.a)) both = both > 0 ? kLargest : -kLargest;
    return {both, b.a * a.b + b.b};
  }
  static __device__ void write(const ScanTask& t, const int64_t (&at)[4], State v, int64_t) {
    element::put(t.y, t.y_type, at[2], v.b);
  }
};

/// An element and its place; none yet where the place is -1.
template <class T>
struct ScanBest {
  T value;
  int64_t at;
};
template <class T>
__device__ ScanBest<T> scan_up(ScanBest<T> v, int by) {
  return {scan_up(v.value, by), scan_up(v.at, by)};
}
template <class T>
__device__ ScanBest<T> scan_from(ScanBest<T> v, int lane) {
  return {scan_from(v.value, lane), scan_from(v.at, lane)};
}
/// Of equal elements the last counts; after a NaN only another.
template <bool Max, class T>
struct ScanExtreme {
  using State = ScanBest<T>;
  static __device__ State none() { return {T(0), -1}; }
  static __device__ State alone(const ScanTask& t, const int64_t (&at)[4], int64_t i) {
    return {element::at<T>(t.x, t.x_type, at[0]), i};
  }
  static __device__ State join(State a, State b) {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    const bool later = b.value != b.value || (a.value == a.value && (Max ? b.value >= a.value : b.value <= a.value));
    return later ? b : a;
  }
  static __device__ void write(const ScanTask& t, const int64_t (&at)[4], State v, int64_t i) {
    t.places[at[3]] = v.at;
    rows::copy_element(t.y, at[2], t.x, at[0] + (v.at - i) * t.step[0], t.width);
  }
};

/// The places of element i of the column that begins at `first`.
struct ScanAt {
  int64_t at[4];
  __device__ ScanAt(const ScanTask& t, const int64_t (&first)[4], int64_t i) {
    for (int k = 0; k < 4; ++k) at[k] = first[k] + i * t.step[k];
  }
};

template <class S>
__global__ void scan_columns(ScanTask task) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; c < task.kept.count; c += step) {
    int64_t first[4];
    task.kept.at(c, first);
    typename S::State state = S::none();
    for (int64_t i = 0; i < task.n; ++i) {
      const ScanAt here(task, first, i);
      state = S::join(state, S::alone(task, here.at, i));
      S::write(task, here.at, state, i);
    }
  }
}

/// Gives each thread of a group the state of the group's elements up to its own, and of all.
template <class S, class State = typename S::State>
__device__ void scan_group(State& mine, State& all, int lanes, State* shared) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  for (int by = 1; by < 32; by *= 2) {
    const State before = scan_up(mine, by);
    if (lane >= by) mine = S::join(before, mine);
  }
  all = scan_from(mine, 31);
  if (lanes == 32) return;
  if (lane == 31) shared[warp] = mine;
  __syncthreads();
  State before = S::none();
  all = S::none();
  for (int w = 0; w < lanes / 32; ++w) {
    if (w == warp) before = all;
    all = S::join(all, shared[w]);
  }
  mine = S::join(before, mine);
  __syncthreads();
}

enum class ScanPass { whole, totals, values };

/// Rows are cut into pieces of `length`. totals: parts[row, piece] becomes what the piece comes to; values: it is what
/// comes before the piece.
template <class S, class State = typename S::State>
__global__ void __launch_bounds__(256)
    scan_rows(ScanTask task, int64_t pieces, int64_t length, State* parts, ScanPass pass, int lanes) {
  TENON_SHARED(State, shared, 8);
  for (rows::RowLoop r(task.kept.count * pieces, 0, lanes); r.more(); r.next()) {
    const int64_t begin = r.row % pieces * length, end = begin + length < task.n ? begin + length : task.n;
    int64_t first[4];
    task.kept.at(r.row / pieces, first);
    State state = pass == ScanPass::values ? parts[r.row] : S::none();
    for (int64_t base = begin; base < begin + length; base += lanes) {
      const int64_t i = base + r.lane;
      const bool there = r.there && i < end;
      const ScanAt here(task, first, there ? i : 0);
      State mine = there ? S::alone(task, here.at, i) : S::none(), all;
      scan_group<S>(mine, all, lanes, shared);
      if (there && pass != ScanPass::totals) S::write(task, here.at, S::join(state, mine), i);
      state = S::join(state, all);
    }
    if (pass == ScanPass::totals && r.there && r.lane == 0) parts[r.row] = state;
  }
}
/// What comes before each piece, of what each comes to.
template <class S, class State = typename S::State>
__global__ void scan_parts(State* parts, int64_t count, int64_t pieces) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= count) return;
  State before = S::none();
  for (int64_t p = 0; p < pieces; ++p) {
    const State next = S::join(before, parts[row * pieces + p]);
    parts[row * pieces + p] = before;
    before = next;
  }
}

bool scans_columns(const ScanTask& t) {
  const int axes = t.kept.axes;
  const bool beside = axes > 0 && std::abs(t.kept.stride[0][axes - 1]) < std::abs(t.step[0]);
  return t.n <= 8 || (beside && (t.kept.count >= 2048 || t.n <= 64));
}
template <class S>
void scan_along_rows(const Args& c, const ScanTask& t) {
  using State = typename S::State;
  const int64_t count = t.kept.count;
  const int64_t pieces = std::max<int64_t>(1, std::min(ceil_div(1024, count), ceil_div(t.n, 4096)));
  const int64_t length = ceil_div(t.n, pieces);
  const int lanes = length > 1024 || (length > 128 && count < 2048) ? 256 : 32;
  const unsigned blocks = blocks_for(count * pieces, 256 / lanes);
  if (pieces == 1) {
    State* none = nullptr;
    return launch(scan_rows<S>, blocks, 256, c, t, 1, length, none, ScanPass::whole, lanes);
  }
  auto* parts = c.scratch<State>(count * pieces);
  launch(scan_rows<S>, blocks, 256, c, t, pieces, length, parts, ScanPass::totals, lanes);
  launch(scan_parts<S>, static_cast<unsigned>(ceil_div(count, 64)), 64, c, parts, count, pieces);
  launch(scan_rows<S>, blocks, 256, c, t, pieces, length, parts, ScanPass::values, lanes);
}
/// Column: the way for one thread, which takes the elements one by one; Row: for groups.
template <class Column, class Row = Column>
void scan_with(const Args& c, const ScanTask& t) {
  if (t.kept.count == 0 || t.n == 0) return;
  if (scans_columns(t))
    launch(scan_columns<Column>, blocks_for(t.kept.count, 64), 64, c, t);
  else
    scan_along_rows<Row>(c, t);
}

/// `b` and `places` are operands that may be left out.
ScanTask scan_task(const Args& c, const Operand& b, const Operand& places) {
  const Operand x = c.in(0), y = c.out(0), all[] = {x, b, y, places};
  const auto axis = static_cast<int>(c.whole("axis"));
  ScanTask t{
      x.data, b.data,       y.data, places.at<int64_t>(), x.type(), y.type(), static_cast<int>(itemsize(x.type())),
      {},     x.size[axis], {}};
  int order[kDims], axes = 0;
  for (int d = 0; d < x.ndim; ++d)
    if (d != axis) order[axes++] = d;
  std::stable_sort(order, order + axes, [&](int i, int j) { return std::abs(x.stride[i]) > std::abs(x.stride[j]); });
  const auto step = [&](int k, int d) { return all[k].there() ? all[k].stride[d] : 0; };
  for (int i = 0; i < axes; ++i) {
    const int d = order[i];
    t.kept.add(x.size[d], {step(0, d), step(1, d), step(2, d), step(3, d)});
  }
  for (int k = 0; k < 4; ++k) t.step[k] = step(k, axis);
  return t;
}
bool scan_half(DType t) { return t == DType::f16 || t == DType::bf16; }

template <template <class> class S>
void run_scan(Args& c) {
  const Operand none = c.in(c.inputs());
  c.want(!scan_half(c.in(0).type()));
  const ScanTask t = scan_task(c, none, none);
  if (is_floating(t.y_type))
    scan_with<S<double>>(c, t);
  else
    scan_with<S<int64_t>>(c, t);
}
void run_logcumsumexp(Args& c) {
  const Operand none = c.in(c.inputs());
  c.want(!scan_half(c.in(0).type()));
  scan_with<ScanLogSumExp>(c, scan_task(c, none, none));
}
void run_recurrence(Args& c) {
  c.want(!scan_half(c.in(0).type()));
  const ScanTask t = scan_task(c, c.in(1), c.in(c.inputs()));
  if (t.x_type == DType::f32)
    scan_with<ScanRecurrence<float>, ScanRecurrence<double>>(c, t);
  else
    scan_with<ScanRecurrence<double>>(c, t);
}
template <bool Max>
void run_running_extreme(Args& c) {
  const ScanTask t = scan_task(c, c.in(c.inputs()), c.out(1));
  if (t.x_type == DType::f64) return scan_with<ScanExtreme<Max, double>>(c, t);
  if (is_floating(t.x_type)) return scan_with<ScanExtreme<Max, float>>(c, t);
  scan_with<ScanExtreme<Max, int64_t>>(c, t);
}

const KernelOf cumsum_entry{"cumsum", run_scan<ScanSum>};
const KernelOf cumprod_entry{"cumprod", run_scan<ScanProduct>};
const KernelOf logcumsumexp_entry{"logcumsumexp", run_logcumsumexp};
const KernelOf recurrence_entry{"linear_recurrence", run_recurrence};
const KernelOf cummax_entry{"cummax", run_running_extreme<true>};
const KernelOf cummin_entry{"cummin", run_running_extreme<false>};

}  // namespace
}  // namespace tenon::cuda
