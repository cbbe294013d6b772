#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace tenon {

inline constexpr int kMaxDims = 8;

/// Up to kMaxDims integers with their count: sizes, strides, axes. A plain value without heap memory.
struct Dims {
  uint8_t n = 0;
  int64_t v[kMaxDims];

  Dims() = default;
  Dims(std::initializer_list<int64_t> list);
  explicit Dims(const std::vector<int64_t>& list);
  static Dims filled(int n, int64_t value);

  int64_t& operator[](int i) { return v[i]; }
  int64_t operator[](int i) const { return v[i]; }
  int64_t back() const { return v[n - 1]; }
  int size() const { return n; }
  void push_back(int64_t x);
  void erase(int i);
  void insert(int i, int64_t x);
  const int64_t* begin() const { return v; }
  const int64_t* end() const { return v + n; }
  Dims(const Dims& o) : n(o.n) {
    for (int i = 0; i < n; ++i) v[i] = o.v[i];
  }
  Dims& operator=(const Dims& o) {
    n = o.n;
    for (int i = 0; i < n; ++i) v[i] = o.v[i];
    return *this;
  }
  bool operator==(const Dims& o) const {
    if (n != o.n) return false;
    for (int i = 0; i < n; ++i)
      if (v[i] != o.v[i]) return false;
    return true;
  }
  int64_t product() const {
    int64_t p = 1;
    for (int i = 0; i < n; ++i) p *= v[i];
    return p;
  }
};
using Shape = Dims;

/// Row-major without gaps; axes of size 1 may have any stride.
inline bool contiguous_strides(const Dims& size, const Dims& stride) {
  int64_t step = 1;
  for (int i = size.n - 1; i >= 0; --i) {
    if (size.v[i] == 0) return true;
    if (size.v[i] != 1 && stride.v[i] != step) return false;
    step *= size.v[i];
  }
  return true;
}

/// "[64, 32, 14, 14]"
std::string to_string(const Dims& d);

/// Where the elements of a tensor lie in its storage, in elements: element (i0, i1, ...) is at offset + sum(i_k *
/// stride_k). A pure value; zero, negative and overlapping strides are legal. All view algebra lives here and is tested
/// alone. Every function throws Error naming the sizes and the argument that do not fit. Negative dims count from the
/// end.
struct Layout {
  Shape size;
  Dims stride;
  int64_t offset = 0;

  static Layout contiguous(const Shape& size);
  /// Dense memory with the channel axis (1) innermost, for 4-d sizes; contiguous otherwise.
  static Layout channels_last(const Shape& size);

  int ndim() const { return size.n; }
  int64_t numel() const { return size.product(); }
  bool is_contiguous() const { return contiguous_strides(size, stride); }
  bool is_channels_last() const;
  /// The elements fill one gap-free block, each address used once, in some axis order.
  bool is_dense() const;
  /// Smallest and largest element position touched, [lo, hi]; {0, -1} when empty.
  void extent(int64_t& lo, int64_t& hi) const;
  /// Two indices may share an address (zero strides included).
  bool may_overlap() const;

  Layout permute(const Dims& axes) const;
  Layout transpose(int a, int b) const;
  Layout expand(const Shape& to) const;
  /// Elements start, start+step, ... below end of one axis. A negative step walks backwards from start (NumPy's rule).
  Layout slice(int axis, int64_t start, int64_t end, int64_t step = 1) const;
  Layout select(int axis, int64_t index) const;
  Layout squeeze(int axis) const;
  Layout unsqueeze(int axis) const;
  Layout flip(int axis) const;
  Layout diagonal(int64_t shift, int a, int b) const;
  Layout unfold(int axis, int64_t width, int64_t step) const;
  /// PyTorch's view(): false where no strides without a copy exist. One -1 in `to` is inferred.
  bool view(const Shape& to, Layout& out) const;
};

/// `to` with its -1 replaced; throws where the counts do not match.
Shape infer_view_size(const Shape& from, const Shape& to);
/// The shape two shapes broadcast to; throws naming both and the axis where they do not fit.
Shape broadcast_shape(const Shape& a, const Shape& b);
/// `axis` in [0, ndim); throws naming both.
int wrap_axis(int64_t axis, int ndim);

}  // namespace tenon
