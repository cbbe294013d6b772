#include <cstdlib>

#include "engine/cuda/rows.h"

// Where the largest or smallest element of an axis stands. Of equal ones the first counts, and the first NaN before
// all: an order in which no two elements are alike, so it does not matter how they are put together.
namespace tenon::cuda {
namespace {

using rows::Walk;

/// An element and its place; none yet where the place is -1.
template <class T>
struct Candidate {
  T value;
  int64_t at;
};
template <bool Max, class T>
__device__ Candidate<T> better_of(const Candidate<T>& a, const Candidate<T>& b) {
  if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan ? a : b;
  if (!a_nan && a.value != b.value) return (Max ? a.value > b.value : a.value < b.value) ? a : b;
  return a.at < b.at ? a : b;
}

/// `along` is cut into pieces, whose candidates go to `parts`; the last stage reads those. `kept` walks the input and
/// the outputs; the value is copied as it lies in the input.
struct ExtremeTask {
  const void* x;
  DType dtype;
  int width;  ///< bytes of an element
  Walk<3> kept;
  int64_t n, step;  ///< of the axis
  int64_t pieces, length;
  int64_t* parts;  ///< [pieces, results], places
  void* values;    ///< may be null
  int64_t* indices;
};

template <bool Max, class T>
__device__ Candidate<T> best_of_group(Candidate<T> best, int lanes, T* values, int64_t* places) {
  const auto join = [&](T value, int64_t at) { best = better_of<Max>(best, Candidate<T>{value, at}); };
  for (int by = (lanes < 32 ? lanes : 32) / 2; by > 0; by /= 2) {
    const T value = __shfl_xor_sync(0xffffffffu, best.value, by);
    join(value, __shfl_xor_sync(0xffffffffu, best.at, by));
  }
  if (lanes <= 32) return best;
  const int warps = lanes / 32;
  if (threadIdx.x % 32 == 0) {
    values[threadIdx.x / 32] = best.value;
    places[threadIdx.x / 32] = best.at;
  }
  __syncthreads();
  for (int w = 0; w < warps; ++w) join(values[w], places[w]);
  __syncthreads();
  return best;
}

/// Pieces of one result lie apart by the number of results, so that neighbours in the kept axes are neighbours here.
/// `last`: of the places in `parts`, with task.pieces of them, the one that counts.
template <bool Max, class T>
__global__ void __launch_bounds__(256) find_extremes(ExtremeTask task, int lanes, bool last) {
  TENON_SHARED(T, values, 32);
  TENON_SHARED(int64_t, places, 32);
  const int64_t results = task.kept.count;
  for (rows::RowLoop r(results * (last ? 1 : task.pieces), 0, lanes); r.more(); r.next()) {
    const int64_t result = r.row % results, piece = r.row / results;
    int64_t at[3], i = piece * task.length + r.lane, end = (piece + 1) * task.length;
    task.kept.at(result, at);
    if (end > task.n) end = task.n;
    if (last) i = r.lane, end = task.pieces;
    if (!r.there) end = 0;
    Candidate<T> best{T(0), -1};
    for (; i < end; i += lanes) {
      const int64_t place = last ? task.parts[i * results + result] : i;
      const T value = element::at<T>(task.x, task.dtype, at[0] + place * task.step);
      best = better_of<Max>(best, Candidate<T>{value, place});
    }
    best = best_of_group<Max>(best, lanes, values, places);
    if (!r.there || r.lane != 0) continue;
    if (task.parts && !last) {
      task.parts[r.row] = best.at;
      continue;
    }
    task.indices[at[2]] = best.at;
    if (task.values) rows::copy_element(task.values, at[1], task.x, at[0] + best.at * task.step, task.width);
  }
}

template <bool Max, class T>
void extremes_as(const Args& c, ExtremeTask task) {
  const int64_t results = task.kept.count;
  if (results == 0) return;
  c.want(task.n > 0);
  // Where results lie side by side in memory and the axis does not, a thread goes down each of them.
  const bool columns = task.kept.axes > 0 && std::abs(task.kept.stride[0][task.kept.axes - 1]) < std::abs(task.step);
  const int64_t fill = ceil_div(columns ? 1 << 16 : 1024, results), most = ceil_div(task.n, columns ? 64 : 4096);
  task.pieces = fill < most ? fill : most;
  task.length = ceil_div(task.n, task.pieces);
  task.pieces = ceil_div(task.n, task.length);
  task.parts = task.pieces > 1 ? c.scratch<int64_t>(task.pieces * results) : nullptr;
  const auto lanes_of = [&](int64_t n, int64_t items) {
    return n > 1024 || (n > 128 && items < 2048) ? 256 : rows::power_of_two(n, 32);
  };
  const int64_t items = results * task.pieces;
  const int lanes = columns ? 1 : lanes_of(task.length, items);
  launch(find_extremes<Max, T>, blocks_for(items, 256 / lanes), 256, c, task, lanes, false);
  if (!task.parts) return;
  const int joining = lanes_of(task.pieces, results);
  launch(find_extremes<Max, T>, blocks_for(results, 256 / joining), 256, c, task, joining, true);
}

template <bool Max, class T>
void run_extreme(const Args& c, int axis, bool keep, const Operand* values, const Operand& indices) {
  const Operand x = c.in(0);
  ExtremeTask task{};
  task.x = x.data;
  task.dtype = x.type();
  task.width = static_cast<int>(itemsize(x.type()));
  task.n = x.ndim ? x.size[axis] : 1;
  task.step = x.ndim ? x.stride[axis] : 0;
  task.values = values ? values->data : nullptr;
  task.indices = indices.at<int64_t>();
  for (int d = 0, o = 0; d < x.ndim; ++d) {
    if (d != axis) task.kept.add(x.size[d], {x.stride[d], values ? values->stride[o] : 0, indices.stride[o]});
    if (d != axis || keep) ++o;
  }
  extremes_as<Max, T>(c, task);
}

/// Integers are compared as the CPU does here, as doubles.
void run_argmax(Args& c) {
  const Operand x = c.in(0);
  c.want(x.type() != DType::f16 && x.type() != DType::bf16);
  const int64_t axis = c.whole("axis");
  const int a = static_cast<int>(axis < 0 ? axis + x.ndim : axis);
  if (x.is(DType::f32)) return run_extreme<true, float>(c, a, c.flag("keep"), nullptr, c.out(0));
  run_extreme<true, double>(c, a, c.flag("keep"), nullptr, c.out(0));
}

template <bool Max>
void run_extreme_dim(Args& c) {
  const Operand x = c.in(0), values = c.out(0);
  const int axis = static_cast<int>(c.whole("axis"));
  const bool keep = c.flag("keepdim");
  if (x.is(DType::f64)) return run_extreme<Max, double>(c, axis, keep, &values, c.out(1));
  if (is_floating(x.type())) return run_extreme<Max, float>(c, axis, keep, &values, c.out(1));
  run_extreme<Max, int64_t>(c, axis, keep, &values, c.out(1));
}

const KernelOf argmax_entry{"argmax", run_argmax};
const KernelOf max_dim_entry{"max_dim", run_extreme_dim<true>};
const KernelOf min_dim_entry{"min_dim", run_extreme_dim<false>};

}  // namespace
}  // namespace tenon::cuda
