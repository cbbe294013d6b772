#include "engine/ops/embedding.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/backend.h"
#include "core/parallel.h"
#include "engine/autograd/composite.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"

namespace tenon {
namespace {

using ops::dense;
using ops::float_or_double;

void check_index(const Meta& index) {
  if (index.dtype != DType::i64)
    throw Error(std::string("row numbers are i64, not ") + name(index.dtype),
                "cast() them; an Input layer of tokens has dtype i64");
}
void check_range(const Tensor& index, int64_t rows) {
  const int64_t* at = index.data<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i)
    if (at[i] < 0 || at[i] >= rows)
      throw Error("number " + std::to_string(at[i]) + " at place " + std::to_string(i) + " is no row of 0.." +
                      std::to_string(rows - 1),
                  "num_embeddings must be above the largest number");
}

struct EmbeddingAttrs {
  int64_t rows;         ///< of the weight
  int64_t padding_idx;  ///< this row gets no gradient; -1: none
  bool zero_padding;    ///< embedding: that row counts as 0 (in the adjoint's adjoint)
  template <class F>
  void fields(F&& f) const {
    f("rows", rows);
    f("padding_idx", padding_idx);
    f("zero_padding", zero_padding, false);
  }
};

/// Inputs weight, index.
struct Embedding {
  static constexpr OpInfo info{"embedding", "Gather", OpKind::index};
  using Attrs = EmbeddingAttrs;
  static Meta infer(const Attrs&, const Meta& w, const Meta& index) {
    check_index(index);
    if (w.shape.n != 2) throw Error("its weight has size " + to_string(w.shape) + "; it must be [rows, width]");
    if (index.shape.n >= kMaxDims) throw Error("an index of size " + to_string(index.shape) + " has too many axes");
    Meta m = w;
    m.shape = index.shape;
    m.shape.push_back(w.shape[1]);
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0, 1}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor w = dense(c.in[0], room), index = dense(c.in[1], room);
    check_range(index, w.size(0));
    size_t width = static_cast<size_t>(w.size(1)) * itemsize(w.dtype());
    const int64_t* at = index.data<int64_t>();
    const char* from = static_cast<const char*>(w.raw());
    char* to = static_cast<char*>(c.out[0].raw());
    parallel_for(index.numel(), std::max<int64_t>(1, 65536 / std::max<int64_t>(1, static_cast<int64_t>(width))),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     if (a.zero_padding && at[i] == a.padding_idx)
                       std::memset(to + static_cast<size_t>(i) * width, 0, width);
                     else
                       std::memcpy(to + static_cast<size_t>(i) * width, from + static_cast<size_t>(at[i]) * width,
                                   width);
                   }
                 });
  }
  static constexpr Saves saves{.inputs = 0b10};
  static void backward(Grad& d) {
    if (d.needs(0)) d.in(0) = scatter_rows(d.out(), d.x(1), d.meta(0).shape[0], d.as<Attrs>().padding_idx);
  }
  static void onnx(const Attrs& a, OnnxOp& o) {
    if (a.zero_padding) o.unsupported = "a gradient of a gradient";
    o.set("axis", int64_t{0});
  }
  static void samples(Samples& s) {
    s.add("matrix of numbers", Attrs{5, -1, false}, {s.values({5, 3}), s.indices({2, 4}, 5)});
    s.add("with padding", Attrs{5, 2, true}, {s.values({5, 3}), s.indices({6}, 5)});
  }
};

/// Inputs x, index. Pieces are ranges of result rows: every piece looks at all numbers and adds its own, in their
/// order.
struct ScatterRows {
  static constexpr OpInfo info{"scatter_rows", "", OpKind::other};
  using Attrs = EmbeddingAttrs;
  static Meta infer(const Attrs& a, const Meta& x, const Meta& index) {
    check_index(index);
    ops::common_float({&x});
    Shape s = index.shape;
    int64_t width = x.shape.n > 0 ? x.shape[x.shape.n - 1] : 0;
    s.push_back(width);
    if (!(s == x.shape))
      throw Error("rows of size " + to_string(x.shape) + " do not fit numbers of size " + to_string(index.shape));
    Meta m = x;
    m.shape = {a.rows, width};
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0, 1}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor x = dense(c.in[0], room), index = dense(c.in[1], room);
    check_range(index, a.rows);
    int64_t width = x.size(-1), count = index.numel();
    const int64_t* at = index.data<int64_t>();
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      const T* from = x.data<T>();
      T* to = c.out[0].data<T>();
      int64_t pieces = std::clamp<int64_t>(count * width / 32768, 1, 16),
              grain = std::max<int64_t>(1, (a.rows + pieces - 1) / pieces);
      parallel_for(a.rows, grain, [&](int64_t begin, int64_t end) {
        std::fill(to + begin * width, to + end * width, T(0));
        for (int64_t i = 0; i < count; ++i) {
          int64_t r = at[i];
          if (r < begin || r >= end || r == a.padding_idx) continue;
          const T* __restrict v = from + i * width;
          T* __restrict sum = to + r * width;
          for (int64_t j = 0; j < width; ++j) sum[j] += v[j];
        }
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b10};
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    if (d.needs(0)) d.in(0) = apply<Embedding>({a.rows, a.padding_idx, a.padding_idx >= 0}, d.out(), d.x(1));
  }
  static void samples(Samples& s) {
    s.add("repeated numbers", Attrs{4, -1, false}, {s.values({6, 3}), s.indices({6}, 4)});
    s.add("with padding", Attrs{4, 1, false}, {s.values({2, 3, 2}), s.indices({2, 3}, 4)});
  }
};

struct BagAttrs {
  int64_t mode, padding_idx;
  bool last;  ///< include_last_offset
  template <class F>
  void fields(F&& f) const {
    f("mode", mode);
    f("padding_idx", padding_idx);
    f("include_last_offset", last);
  }
};
int64_t bag_count(const Shape& offsets, bool last) { return std::max<int64_t>(0, offsets[0] - (last ? 1 : 0)); }

/// Where the bags begin and end. Throws where offsets fall or lie outside.
std::vector<int64_t> bounds_of(const Tensor& offsets, int64_t count, bool last) {
  std::vector<int64_t> b(offsets.data<int64_t>(), offsets.data<int64_t>() + offsets.numel());
  if (!last) b.push_back(count);
  int64_t before = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    if (i == 0 && b[0] != 0 && !(b.size() == 1))
      throw Error("the first offset is " + std::to_string(b[0]) + "; it must be 0");
    if (b[i] < before || b[i] > count)
      throw Error("offset " + std::to_string(i) + " is " + std::to_string(b[i]) +
                  "; offsets must not fall, nor lie beyond the " + std::to_string(count) + " numbers");
    before = b[i];
  }
  return b;
}

/// Inputs weight, index [n], offsets, weights of the samples?; outputs the bags and, for max, the number whose row won
/// each element (-1: none).
struct EmbeddingBag {
  static constexpr OpInfo info{"embedding_bag", "", OpKind::other, 2};
  using Attrs = BagAttrs;
  static void infer(const Attrs& a, const Tensor* in, int n, Meta* out) {
    const Meta &w = in[0].meta(), &index = in[1].meta(), &offsets = in[2].meta();
    check_index(index);
    check_index(offsets);
    if (w.shape.n != 2 || index.shape.n != 1 || offsets.shape.n != 1)
      throw Error("it needs a weight [rows, width], numbers [n] and offsets [bags]; they have sizes " +
                  to_string(w.shape) + ", " + to_string(index.shape) + " and " + to_string(offsets.shape));
    bool weighted = n > 3 && in[3];
    ops::common_float({&w});
    if (weighted) {
      ops::common_float({&w, &in[3].meta()});
      if (a.mode != 0) throw Error("weights of the samples are for sums only");
      if (!(in[3].size() == index.shape))
        throw Error("weights of size " + to_string(in[3].size()) + " do not fit numbers of size " +
                    to_string(index.shape));
    }
    out[0] = out[1] = w;
    out[0].shape = {bag_count(offsets.shape, a.last), w.shape[1]};
    out[1].dtype = DType::i64;
    out[1].shape = a.mode == 2 ? out[0].shape : Shape{0};
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0, 1, 2, 3}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor w = dense(c.in[0], room), index = dense(c.in[1], room), offsets = dense(c.in[2], room),
           scale = c.inputs > 3 ? dense(c.in[3], room) : Tensor();
    check_range(index, w.size(0));
    std::vector<int64_t> bounds = bounds_of(offsets, index.numel(), a.last);
    int64_t width = w.size(1), bags = c.out[0].size(0);
    const int64_t* at = index.data<int64_t>();
    int64_t* winner = c.out[1].data<int64_t>();
    float_or_double(w.dtype(), [&](auto one) {
      using T = decltype(one);
      const T *rows = w.data<T>(), *s = scale ? scale.data<T>() : nullptr;
      parallel_for(bags, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width)), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          T* __restrict y = c.out[0].data<T>() + b * width;
          std::fill_n(y, width, T(0));
          if (a.mode == 2) std::fill_n(winner + b * width, width, int64_t{-1});
          int64_t used = 0;
          for (int64_t i = bounds[static_cast<size_t>(b)]; i < bounds[static_cast<size_t>(b) + 1]; ++i) {
            if (at[i] == a.padding_idx) continue;
            const T* __restrict v = rows + at[i] * width;
            if (a.mode == 2) {
              for (int64_t j = 0; j < width; ++j)
                if (used == 0 || v[j] > y[j]) {
                  y[j] = v[j];
                  winner[b * width + j] = at[i];
                }
            } else if (s) {
              for (int64_t j = 0; j < width; ++j) y[j] += s[i] * v[j];
            } else {
              for (int64_t j = 0; j < width; ++j) y[j] += v[j];
            }
            ++used;
          }
          if (a.mode == 1 && used > 0)
            for (int64_t j = 0; j < width; ++j) y[j] /= static_cast<T>(used);
        }
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b1111, .outputs = 0b10};
  static Tensor decompose(const Attrs& a, const std::vector<Tensor>& in);
  static void backward(Grad& d);
  static void samples(Samples& s) {
    Tensor offsets = s.indices({3}, 1);
    offsets.data<int64_t>()[1] = 2;
    offsets.data<int64_t>()[2] = 2;
    s.add("sum", Attrs{0, -1, false}, {s.values({5, 3}), s.indices({6}, 5), offsets, Tensor()});
    s.add("weighted", Attrs{0, -1, false}, {s.values({5, 3}), s.indices({6}, 5), offsets, s.values({6})});
    s.add("mean, padded", Attrs{1, 2, false}, {s.values({5, 3}), s.indices({6}, 5), offsets, Tensor()});
    s.add("max", Attrs{2, -1, true}, {s.values({5, 3}), s.indices({6}, 5), offsets, Tensor()});
  }
};

/// For every number its bag, and the share its row has in it: 1 / the size of the bag for means, else 1; 0 (in bag 0)
/// where it is padding or lies in no bag.
void bags_of(const Tensor& index, const Tensor& given, const BagAttrs& a, DType t, int64_t bags, Tensor& bag,
             Tensor& share) {
  Tensor offsets = to_host(contiguous(given)), numbers = to_host(contiguous(index));
  std::vector<int64_t> bounds = bounds_of(offsets, numbers.numel(), a.last);
  bag = empty({numbers.numel()}, DType::i64);
  share = empty({numbers.numel(), 1}, t);
  fill(bag, 0);
  fill(share, 0);
  const int64_t* at = numbers.data<int64_t>();
  for (int64_t b = 0; b < bags; ++b) {
    int64_t begin = bounds[static_cast<size_t>(b)], end = bounds[static_cast<size_t>(b) + 1], used = 0;
    for (int64_t i = begin; i < end; ++i) used += at[i] != a.padding_idx;
    for (int64_t i = begin; i < end; ++i) {
      if (at[i] == a.padding_idx) continue;
      bag.data<int64_t>()[i] = b;
      double part = a.mode == 1 ? 1.0 / static_cast<double>(used) : 1.0;
      if (t == DType::f32)
        share.data<float>()[i] = static_cast<float>(part);
      else
        share.data<double>()[i] = part;
    }
  }
  bag = to_device(bag, index.device());
  share = to_device(share, index.device());
}

// In public ops in either case: rows of gradients are as small as the bags, and what is large (the weight) is written
// once.
void EmbeddingBag::backward(Grad& d) {
  const auto& a = d.as<Attrs>();
  if (!d.out(0)) return;
  Tensor w = d.x(0), index = d.x(1);
  int64_t rows = w.size(0), width = w.size(1), bags = d.out(0).size(0);
  if (a.mode == 2) {
    if (!d.needs(0)) return;
    // Element (r, j) of the weight is row r * width + j of a weight of one column; what no row won goes to one row
    // behind all.
    Tensor winner = d.y(1),
           place = add(mul(where(lt(winner, 0), scalar_like(static_cast<double>(rows), winner), winner),
                           static_cast<double>(width)),
                       arange(width, DType::i64, winner.device()));
    Tensor column =
        scatter_rows(reshape(d.out(0), {bags * width, 1}), reshape(place, {bags * width}), (rows + 1) * width);
    d.in(0) = reshape(narrow(column, 0, 0, rows * width), {rows, width});
    return;
  }
  Tensor bag, share;
  bags_of(index, d.x(2), a, w.dtype(), bags, bag, share);
  if (bags == 0) return;  // the gradient is 0
  Tensor g = mul(embedding(bag, d.out(0)), share);
  Tensor scale = d.x(3);
  if (d.needs(0)) {
    d.in(0) = scatter_rows(scale ? mul(g, unsqueeze(scale, 1)) : g, index, rows, a.padding_idx);
  }
  if (scale && d.needs(3)) d.in(3) = sum(mul(g, embedding(index, w)), {1});
}

const Register<Embedding> embedding_op;
const Register<ScatterRows> scatter_rows_op;
const Register<EmbeddingBag> embedding_bag_op;
// Bags of one size are the rows of a matrix of numbers.
Tensor EmbeddingBag::decompose(const Attrs& a, const std::vector<Tensor>& in) {
  Tensor offsets = to_host(contiguous(in[2]));
  int64_t bags = offsets.numel(), count = in[1].numel(), each = bags > 0 ? count / bags : 0;
  bool alike = !a.last && bags > 0 && each > 0 && count == bags * each && (a.mode < 2 || a.padding_idx < 0);
  for (int64_t i = 0; alike && i < bags; ++i) alike = offsets.data<int64_t>()[i] == i * each;
  if (!alike) {
    Tensor out[2];
    apply_many<EmbeddingBag>(a, in.data(), static_cast<int>(in.size()), out);
    return out[0];
  }
  Tensor index = reshape(in[1], {bags, each}), rows = embedding(index, in[0]);
  if (in.size() > 3 && in[3]) rows = mul(rows, unsqueeze(reshape(in[3], {bags, each}), 2));
  if (a.mode == 2) return amax(rows, {1});
  if (a.padding_idx < 0) return a.mode == 1 ? mean(rows, {1}) : sum(rows, {1});
  Tensor counts = cast(logical_not(eq(index, static_cast<double>(a.padding_idx))), rows.dtype()),
         total = sum(mul(rows, unsqueeze(counts, 2)), {1});
  return a.mode == 1 ? div(total, unsqueeze(maximum(sum(counts, {1}), scalar_like(1, counts)), 1)) : total;
}

}  // namespace

Tensor embedding(const Tensor& index, const Tensor& weight, int64_t padding_idx) {
  return apply<Embedding>({weight.ndim() == 2 ? weight.size(0) : 0, padding_idx, false}, weight, index);
}
Tensor scatter_rows(const Tensor& x, const Tensor& index, int64_t rows, int64_t padding_idx) {
  return apply<ScatterRows>({rows, padding_idx, false}, x, index);
}

Tensor embedding_bag(const Tensor& index, const Tensor& weight, const Tensor& offsets, const EmbeddingBagOptions& o,
                     const Tensor& per_sample_weights) {
  Tensor numbers = index, begins = offsets, scale = per_sample_weights;
  bool last = o.include_last_offset;
  if (index.ndim() == 2) {
    if (offsets)
      throw Error("embedding_bag: numbers of size " + to_string(index.size()) +
                  " are bags by themselves; offsets go with numbers of one axis");
    begins = mul(arange(index.size(0), DType::i64, index.device()), static_cast<double>(index.size(1)));
    numbers = reshape(index, {index.numel()});
    if (scale) scale = reshape(scale, {index.numel()});
    last = false;
  } else if (!offsets) {
    throw Error("embedding_bag: numbers of size " + to_string(index.size()) +
                " need offsets that say where the bags begin");
  }
  const Tensor in[] = {weight, numbers, begins, scale};
  Tensor out[2];
  apply_many<EmbeddingBag>({static_cast<int64_t>(o.mode), o.padding_idx, last}, in, 4, out);
  return out[0];
}

}  // namespace tenon
