#include "engine/cuda/strided.h"

// Moving and converting elements. What moves without a change of dtype does so in the widest units that sizes, strides
// and addresses allow; a transpose goes through tiles in shared memory, so that both sides run along their own memory.
namespace tenon::cuda {
namespace {

constexpr int kMoveThreads = 256, kMoveEach = 4;  // loads of a thread that are under way at once
constexpr int kMoveTile = 32, kMoveRows = 8;
constexpr int64_t kMoveTilesFrom = 16;  // shorter axes would leave most of a tile empty

unsigned move_blocks(int64_t n) { return blocks_for(n, kMoveThreads * kMoveEach); }

/// Calls load(number) and then store(number, value) for every number below n.
template <class Load, class Store>
__device__ void each_moved(int64_t n, const Load& load, const Store& store) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kMoveThreads * kMoveEach;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kMoveThreads * kMoveEach + threadIdx.x; first < n;
       first += step) {
    decltype(load(int64_t{})) v[kMoveEach] = {};
#pragma unroll
    for (int k = 0; k < kMoveEach; ++k)
      if (first + k * kMoveThreads < n) v[k] = load(first + k * kMoveThreads);
#pragma unroll
    for (int k = 0; k < kMoveEach; ++k)
      if (first + k * kMoveThreads < n) store(first + k * kMoveThreads, v[k]);
  }
}

template <class T>
__global__ void move_elements(const T* from, T* to, Strided<2> p) {
  each_moved(
      p.numel,
      [&](int64_t i) {
        int64_t at[2];
        p.find(i, at);
        return from[at[1]];
      },
      [&](int64_t i, const T& v) {
        int64_t at[2];
        p.find(i, at);
        to[at[0]] = v;
      });
}

template <class T>
__global__ void fill_strided(T* to, T value, Strided<1> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[1];
    p.find(i, at);
    to[at[0]] = value;
  }
}

/// Whole numbers pass as i64, halves as f32: both hold every value.
struct ReadWhole {
  DType type;
  __device__ int64_t operator()(const void* p, int64_t i) const {
    switch (type) {
      case DType::boolean:
        return static_cast<const bool*>(p)[i];
      case DType::u8:
        return static_cast<const uint8_t*>(p)[i];
      case DType::i8:
        return static_cast<const int8_t*>(p)[i];
      case DType::i16:
        return static_cast<const int16_t*>(p)[i];
      case DType::i32:
        return static_cast<const int32_t*>(p)[i];
      default:
        return static_cast<const int64_t*>(p)[i];
    }
  }
};
struct ReadFloat {
  DType type;
  __device__ float operator()(const void* p, int64_t i) const {
    if (type == DType::f32) return static_cast<const float*>(p)[i];
    if (type == DType::f16) return element::number(static_cast<const element::Half*>(p)[i]);
    return element::number(static_cast<const element::Bfloat*>(p)[i]);
  }
};
struct ReadDouble {
  DType type;
  __device__ double operator()(const void* p, int64_t i) const { return static_cast<const double*>(p)[i]; }
};

template <class To, class Read>
__global__ void convert_elements(const void* from, Read read, To* to, Strided<2> p) {
  each_moved(
      p.numel,
      [&](int64_t i) {
        int64_t at[2];
        p.find(i, at);
        return read(from, at[1]);
      },
      [&](int64_t i, const auto& v) {
        int64_t at[2];
        p.find(i, at);
        to[at[0]] = element::made<To>(v);
      });
}

/// A transpose: the output runs along one axis, the input along another. The rest numbers the matrices.
struct Transposed {
  Strided<2> matrices;
  int64_t across, down;        ///< sizes along the output's run, and along the input's
  int64_t to_step, from_step;  ///< of the output along `down`, of the input along `across`
  Divider tiles_across, tiles_down;
  int64_t tiles;
};

template <class T>
__global__ void move_transposed(const T* from, T* to, Transposed p) {
  TENON_SHARED(T, tile, kMoveTile * (kMoveTile + 1));
  for (int64_t t = blockIdx.x; t < p.tiles; t += gridDim.x) {
    const int64_t q = p.tiles_across.of(t), matrix = p.tiles_down.of(q);
    const int64_t x0 = (t - q * p.tiles_across.by) * kMoveTile, y0 = (q - matrix * p.tiles_down.by) * kMoveTile;
    int64_t at[2];
    p.matrices.find(matrix, at);
    const int x = static_cast<int>(threadIdx.x);
    for (int k = static_cast<int>(threadIdx.y); k < kMoveTile; k += kMoveRows)
      if (x0 + k < p.across && y0 + x < p.down)
        tile[k * (kMoveTile + 1) + x] = from[at[1] + (x0 + k) * p.from_step + y0 + x];
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.y); k < kMoveTile; k += kMoveRows)
      if (y0 + k < p.down && x0 + x < p.across)
        to[at[0] + (y0 + k) * p.to_step + x0 + x] = tile[x * (kMoveTile + 1) + k];
    __syncthreads();
  }
}

/// Whether the plan is a transpose that pays, and then which.
bool transposed_of(const Strided<2>& p, Transposed& t) {
  if (p.stride[0][0] != 1 || p.size[0].by < kMoveTilesFrom) return false;
  int axis = 0;
  for (int d = 1; d < p.ndim && !axis; ++d)
    if (p.stride[d][1] == 1 && p.size[d].by >= kMoveTilesFrom) axis = d;
  if (!axis || p.stride[0][1] == 1) return false;
  t.across = p.size[0].by;
  t.down = p.size[axis].by;
  t.to_step = p.stride[axis][0];
  t.from_step = p.stride[0][1];
  t.matrices.ndim = 0;
  t.matrices.numel = 1;
  for (int d = 1; d < p.ndim; ++d) {
    if (d == axis) continue;
    const int to = t.matrices.ndim++;
    t.matrices.size[to] = p.size[d];
    t.matrices.numel *= p.size[d].by;
    for (int k = 0; k < 2; ++k) t.matrices.stride[to][k] = p.stride[d][k];
  }
  if (t.matrices.ndim == 0) t.matrices.ndim = 1;
  t.tiles_across = Divider(ceil_div(t.across, kMoveTile));
  t.tiles_down = Divider(ceil_div(t.down, kMoveTile));
  t.tiles = t.tiles_across.by * t.tiles_down.by * t.matrices.numel;
  return true;
}

/// Makes two elements one as long as both operands allow it; returns the bytes of a unit.
size_t widen(Strided<2>& p, const void* to, const void* from, size_t bytes) {
  for (; bytes < 16; bytes *= 2) {
    bool fits = p.stride[0][0] == 1 && p.stride[0][1] == 1 && p.size[0].by % 2 == 0 &&
                reinterpret_cast<uintptr_t>(to) % (2 * bytes) == 0 &&
                reinterpret_cast<uintptr_t>(from) % (2 * bytes) == 0;
    for (int d = 1; fits && d < p.ndim; ++d) fits = p.stride[d][0] % 2 == 0 && p.stride[d][1] % 2 == 0;
    if (!fits) break;
    p.size[0] = Divider(p.size[0].by / 2);
    p.numel /= 2;
    for (int d = 1; d < p.ndim; ++d)
      for (int64_t& s : p.stride[d]) s /= 2;
  }
  return bytes;
}

template <class T>
void move_as(const Args& c, const Operand& to, const Operand& from, const Strided<2>& p) {
  launch(move_elements<T>, move_blocks(p.numel), kMoveThreads, c, from.at<const T>(), to.at<T>(), p);
}
void move_all(const Args& c, const Operand& to, const Operand& from, Strided<2> p) {
  if (Transposed t; transposed_of(p, t)) {
    with_width(to.type(), [&]<class T>(T) {
      launch(move_transposed<T>, blocks_for(t.tiles, 1, 1 << 20), dim3(kMoveTile, kMoveRows), c, from.at<const T>(),
             to.at<T>(), t);
    });
    return;
  }
  switch (widen(p, to.data, from.data, itemsize(to.type()))) {
    case 1:
      return move_as<uint8_t>(c, to, from, p);
    case 2:
      return move_as<uint16_t>(c, to, from, p);
    case 4:
      return move_as<uint32_t>(c, to, from, p);
    case 8:
      return move_as<uint64_t>(c, to, from, p);
    default:
      return move_as<Unit16>(c, to, from, p);
  }
}

void run_copy(Args& c) { copy_elements(c, c.out(0), c.in(0)); }
void run_overwrite(Args& c) { copy_elements(c, c.out(0), c.in(1)); }

void run_cat(Args& c) {
  const auto axis = static_cast<int>(c.whole("axis"));
  const Operand out = c.out(0);
  int64_t at = 0;
  for (int i = 0; i < c.inputs(); ++i) {
    const Operand x = c.in(i);
    if (x.numel() == 0) continue;
    Operand part = moved_by(out, at * out.stride[axis]);
    part.size[axis] = x.size[axis];
    copy_elements(c, part, x);
    at += x.size[axis];
  }
}

const KernelOf copy_entry{"copy", run_copy};
const KernelOf cast_entry{"cast", run_copy};
const KernelOf overwrite_entry{"overwrite", run_overwrite};
const KernelOf cat_entry{"cat", run_cat};

}  // namespace

void copy_elements(const Args& c, const Operand& to, const Operand& from) {
  const Strided<2> p = strided_of<2>({to, from});
  if (p.numel == 0) return;
  if (to.dtype == from.dtype) return move_all(c, to, from, p);
  element::with_type(to.type(), [&]<class To>(To) {
    const auto run = [&](auto read) {
      launch(convert_elements<To, decltype(read)>, move_blocks(p.numel), kMoveThreads, c,
             static_cast<const void*>(from.data), read, to.at<To>(), p);
    };
    if (!is_floating(from.type()))
      run(ReadWhole{from.type()});
    else if (from.is(DType::f64))
      run(ReadDouble{});
    else
      run(ReadFloat{from.type()});
  });
}

void fill_elements(const Args& c, const Operand& to, uint64_t bits) {
  const Strided<1> p = strided_of<1>({to});
  if (p.numel == 0) return;
  with_width(to.type(), [&]<class T>(T) {
    launch(fill_strided<T>, blocks_for(p.numel, 256), 256, c, to.at<T>(), static_cast<T>(bits), p);
  });
}

Operand row_major(const Args& c, const Operand& like, DType t) {
  Operand o = like;
  o.dtype = static_cast<int32_t>(t);
  int64_t step = 1;
  for (int d = o.ndim - 1; d >= 0; --d) {
    o.stride[d] = step;
    step *= o.size[d] > 1 ? o.size[d] : 1;
  }
  o.data = c.scratch<char>(o.numel() * static_cast<int64_t>(itemsize(t)));
  return o;
}
Operand dense_of(const Args& c, const Operand& x, DType t) {
  if (x.is(t) && x.contiguous()) return x;
  const Operand y = row_major(c, x, t);
  copy_elements(c, y, x);
  return y;
}
Operand target_of(const Args& c, const Operand& out, DType t) {
  return out.is(t) && out.contiguous() ? out : row_major(c, out, t);
}
void finish(const Args& c, const Operand& out, const Operand& target) {
  if (target.data != out.data) copy_elements(c, out, target);
}
Operand moved_by(Operand o, int64_t elements) {
  o.data = o.at<char>() + elements * static_cast<int64_t>(itemsize(o.type()));
  return o;
}

}  // namespace tenon::cuda
