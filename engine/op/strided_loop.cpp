#include "engine/op/strided_loop.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "core/parallel.h"
#include "engine/op/element.h"

namespace tenon {
namespace {

thread_local LoopWatch* t_loops = nullptr;

template <class To, class From>
void convert_loop(char* to, int64_t ts, const char* from, int64_t fs, int64_t n) {
  if (ts == static_cast<int64_t>(sizeof(To)) && fs == static_cast<int64_t>(sizeof(From))) {
    for (int64_t i = 0; i < n; ++i)
      element::store<To>(to + i * static_cast<int64_t>(sizeof(To)),
                         element::load<From>(from + i * static_cast<int64_t>(sizeof(From))));
    return;
  }
  for (int64_t i = 0; i < n; ++i) element::store<To>(to + i * ts, element::load<From>(from + i * fs));
}

// The loop in a form with few axes: axis 0 is innermost.
struct Plan {
  int ndim = 0, operands = 0;
  int64_t size[kMaxDims];
  int64_t stride[kMaxDims][kMaxOperands];  // bytes
  char* data[kMaxOperands];
  DType have[kMaxOperands], want[kMaxOperands];
  bool converts = false;
  InnerLoop loop;
};

constexpr int64_t kTile = 1024;

void run_tile(const Plan& p, char* const* data, const int64_t* strides, int64_t n) {
  if (!p.converts) return p.loop(data, strides, n);
  alignas(64) char buffer[kMaxOperands][kTile * 8];
  for (int64_t b = 0; b < n; b += kTile) {
    int64_t m = std::min(kTile, n - b);
    char* at[kMaxOperands];
    int64_t step[kMaxOperands];
    for (int k = 0; k < p.operands; ++k) {
      at[k] = data[k] + b * strides[k];
      step[k] = strides[k];
      if (p.have[k] == p.want[k]) continue;
      auto width = static_cast<int64_t>(itemsize(p.want[k]));
      if (k > 0) convert(buffer[k], p.want[k], width, at[k], p.have[k], step[k], m);
      at[k] = buffer[k];
      step[k] = width;
    }
    p.loop(at, step, m);
    if (p.have[0] != p.want[0]) convert(data[0] + b * strides[0], p.have[0], strides[0], at[0], p.want[0], step[0], m);
  }
}

// Elements [begin, end) of the flattened loop.
void run_range(const Plan& p, int64_t begin, int64_t end) {
  int64_t index[kMaxDims], rest = begin;
  char* base[kMaxOperands];
  std::copy(p.data, p.data + p.operands, base);
  for (int d = 0; d < p.ndim; ++d) {
    index[d] = rest % p.size[d];
    rest /= p.size[d];
    for (int k = 0; k < p.operands; ++k) base[k] += index[d] * p.stride[d][k];
  }
  for (int64_t i = begin; i < end;) {
    int64_t n = std::min(p.size[0] - index[0], end - i);
    run_tile(p, base, p.stride[0], n);
    i += n;
    for (int k = 0; k < p.operands; ++k) base[k] -= index[0] * p.stride[0][k];
    index[0] = 0;
    for (int d = 1; d < p.ndim; ++d) {
      for (int k = 0; k < p.operands; ++k) base[k] += p.stride[d][k];
      if (++index[d] < p.size[d]) break;
      for (int k = 0; k < p.operands; ++k) base[k] -= p.size[d] * p.stride[d][k];
      index[d] = 0;
    }
  }
}

void make_plan(Plan& p, const Tensor& out, const Tensor* in, int inputs) {
  const Shape& shape = out.size();
  int order[kMaxDims], n = 0;
  for (int d = shape.n - 1; d >= 0; --d)
    if (shape[d] != 1) order[n++] = d;
  // Innermost first: smallest output stride; insertion sort keeps the natural order of equals.
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && std::abs(out.stride()[order[j]]) < std::abs(out.stride()[order[j - 1]]); --j)
      std::swap(order[j], order[j - 1]);
  auto stride_of = [&](const Tensor& t, int d) -> int64_t {
    int k = d - (shape.n - t.ndim());
    return k < 0 || t.size()[k] == 1 ? 0 : t.stride()[k] * static_cast<int64_t>(itemsize(t.dtype()));
  };
  p.ndim = 0;
  for (int i = 0; i < n; ++i) {
    int d = order[i];
    int64_t s[kMaxOperands];
    s[0] = stride_of(out, d);
    for (int k = 0; k < inputs; ++k) s[k + 1] = stride_of(in[k], d);
    bool joins = p.ndim > 0;
    for (int k = 0; joins && k < p.operands; ++k) joins = s[k] == p.stride[p.ndim - 1][k] * p.size[p.ndim - 1];
    if (joins) {
      p.size[p.ndim - 1] *= shape[d];
    } else {
      p.size[p.ndim] = shape[d];
      std::copy(s, s + p.operands, p.stride[p.ndim++]);
    }
  }
  if (p.ndim == 0) {
    p.ndim = 1;
    p.size[0] = 1;
    std::fill(p.stride[0], p.stride[0] + p.operands, 0);
    for (int k = 0; k < p.operands; ++k) p.stride[0][k] = static_cast<int64_t>(itemsize(p.have[k]));
  }
}

// Note [Blocks of a transposed operand]
// Where the output runs along one axis and an input along another, a walk along the output touches a new cache line of
// that input with every element, and lines a power of two apart push each other out before their other elements are
// read. So such a loop goes in blocks of 64 x 32 elements: of a block, each run of such an input is read once, whole,
// into a buffer that lies as the output does. Every element is computed by the same loop from the same values.
constexpr int64_t kRows = 64, kColumns = 32;
constexpr int64_t kFar = 256;  // bytes between neighbours from which blocks pay

struct Blocked {
  int axis = 0;  // along which those inputs run; 0: none does
  bool packed[kMaxOperands] = {};
};

Blocked blocks_of(const Plan& p) {
  Blocked b;
  if (p.converts || p.size[0] < 16 || p.stride[0][0] != static_cast<int64_t>(itemsize(p.have[0]))) return b;
  for (int k = 1; k < p.operands; ++k) {
    if (std::abs(p.stride[0][k]) < kFar) continue;
    for (int d = 1; d < p.ndim; ++d)
      if (p.stride[d][k] == static_cast<int64_t>(itemsize(p.have[k])) && p.size[d] >= 16 && (!b.axis || b.axis == d)) {
        b.axis = d;
        b.packed[k] = true;
      }
  }
  return b;
}

template <class T>
void pack(const char* from, int64_t stride, int64_t rows, int64_t columns, char* to) {
  for (int64_t c = 0; c < columns; ++c) {
    const char* run = from + c * stride;
    for (int64_t r = 0; r < rows; ++r)
      __builtin_memcpy(to + (r * kColumns + c) * static_cast<int64_t>(sizeof(T)),
                       run + r * static_cast<int64_t>(sizeof(T)), sizeof(T));
  }
}
void pack(size_t width, const char* from, int64_t stride, int64_t rows, int64_t columns, char* to) {
  if (width == 1) return pack<uint8_t>(from, stride, rows, columns, to);
  if (width == 2) return pack<uint16_t>(from, stride, rows, columns, to);
  if (width == 4) return pack<uint32_t>(from, stride, rows, columns, to);
  pack<uint64_t>(from, stride, rows, columns, to);
}

/// Up to kRows places of the axis, from `base` on, along all of axis 0.
void run_band(const Plan& p, const Blocked& b, char* const* base, int64_t rows) {
  alignas(64) char buffer[kMaxOperands][kRows * kColumns * 8];
  for (int64_t c = 0; c < p.size[0]; c += kColumns) {
    const int64_t columns = std::min(kColumns, p.size[0] - c);
    char* at[kMaxOperands];
    int64_t step[kMaxOperands], down[kMaxOperands];
    for (int k = 0; k < p.operands; ++k) {
      at[k] = base[k] + c * p.stride[0][k];
      step[k] = p.stride[0][k];
      down[k] = p.stride[b.axis][k];
      if (!b.packed[k]) continue;
      const size_t width = itemsize(p.have[k]);
      pack(width, at[k], p.stride[0][k], rows, columns, buffer[k]);
      at[k] = buffer[k];
      step[k] = static_cast<int64_t>(width);
      down[k] = kColumns * static_cast<int64_t>(width);
    }
    for (int64_t r = 0; r < rows; ++r) {
      p.loop(at, step, columns);
      for (int k = 0; k < p.operands; ++k) at[k] += down[k];
    }
  }
}

void run_blocked(const Plan& p, const Blocked& b, int64_t n) {
  const int64_t bands = (p.size[b.axis] + kRows - 1) / kRows, outer = n / p.size[0] / p.size[b.axis];
  const int64_t grain = std::max<int64_t>(1, kLoopGrain / (kRows * p.size[0]));
  parallel_for(outer * bands, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % bands * kRows;
      char* base[kMaxOperands];
      for (int k = 0; k < p.operands; ++k) base[k] = p.data[k] + first * p.stride[b.axis][k];
      int64_t rest = i / bands;
      for (int d = 1; d < p.ndim; ++d) {
        if (d == b.axis) continue;
        for (int k = 0; k < p.operands; ++k) base[k] += rest % p.size[d] * p.stride[d][k];
        rest /= p.size[d];
      }
      run_band(p, b, base, std::min(kRows, p.size[b.axis] - first));
    }
  });
}

bool same_shape_and_stride(const Tensor& a, const Tensor& b) {
  return a.size() == b.size() && a.stride() == b.stride();
}

}  // namespace

void convert(void* to, DType to_type, int64_t to_stride, const void* from, DType from_type, int64_t from_stride,
             int64_t n) {
  element::with_type(to_type, [&]<class To>(To) {
    element::with_type(from_type, [&]<class From>(From) {
      convert_loop<To, From>(static_cast<char*>(to), to_stride, static_cast<const char*>(from), from_stride, n);
    });
  });
}

LoopWatch::LoopWatch() : before_(t_loops) { t_loops = this; }
LoopWatch::~LoopWatch() { t_loops = before_; }

void LoopWatch::note(const Tensor& out, const Tensor* in, int inputs, DType in_type, DType out_type, InnerLoop loop) {
  Seen s{out.impl(), {}, in_type, out_type, loop};
  for (int k = 0; k < inputs; ++k) {
    Operand o{in[k].impl()};
    o.one_number = in[k].numel() == 1 && in[k].dtype() == DType::f32;
    if (o.one_number) std::memcpy(&o.number, in[k].raw(), sizeof o.number);
    s.in.push_back(o);
  }
  seen.push_back(std::move(s));
}

void strided_loop(const Tensor& out, const Tensor* in, int inputs, DType in_type, DType out_type, InnerLoop loop) {
  if (t_loops) [[unlikely]]
    t_loops->note(out, in, inputs, in_type, out_type, loop);
  Plan p;
  p.operands = inputs + 1;
  p.loop = loop;
  bool flat = out.dtype() == out_type && out.is_contiguous();
  p.data[0] = static_cast<char*>(out.raw());
  p.have[0] = out.dtype();
  p.want[0] = out_type;
  for (int k = 0; k < inputs; ++k) {
    p.data[k + 1] = static_cast<char*>(in[k].raw());
    p.have[k + 1] = in[k].dtype();
    p.want[k + 1] = in_type;
    flat = flat && in[k].dtype() == in_type && same_shape_and_stride(in[k], out);
  }
  int64_t n = out.numel();
  if (n == 0) return;
  if (flat) {
    p.ndim = 1;
    p.size[0] = n;
    p.stride[0][0] = static_cast<int64_t>(itemsize(out_type));
    for (int k = 0; k < inputs; ++k) p.stride[0][k + 1] = static_cast<int64_t>(itemsize(in_type));
    if (n <= kLoopGrain) return loop(p.data, p.stride[0], n);
  } else {
    for (int k = 0; k < p.operands; ++k) p.converts |= p.have[k] != p.want[k];
    make_plan(p, out, in, inputs);
    if (const Blocked b = blocks_of(p); b.axis) return run_blocked(p, b, n);
  }
  parallel_for(n, kLoopGrain, [&](int64_t b, int64_t e) { run_range(p, b, e); });
}

}  // namespace tenon
