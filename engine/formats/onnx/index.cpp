// ONNX operators that choose, move and order elements.
#include "engine/ops/index.h"
#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/gather.h"
#include "engine/ops/join.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/scan.h"
#include "engine/ops/sort.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

int axis_of(const OnnxCall& c, int64_t fallback, int ndim) { return wrap_axis(c.node.integer("axis", fallback), ndim); }

TENON_ONNX(Gather) { return {index_select(c.input(0), axis_of(c, 0, c.input(0).ndim()), c.input(1))}; }
TENON_ONNX(GatherElements) { return {gather(c.input(0), axis_of(c, 0, c.input(0).ndim()), c.input(1))}; }

Out scatter_elements(const OnnxCall& c) {
  const Tensor &x = c.input(0), &at = c.input(1), &values = c.input(2);
  const int axis = axis_of(c, 0, x.ndim());
  const std::string how = c.node.text("reduction", "none");
  if (how == "none") return {scatter(x, axis, at, values)};
  if (how == "add") return {scatter_add(x, axis, at, values)};
  if (how == "mul") return {scatter_reduce(x, axis, at, values, Reduce::prod)};
  if (how == "max") return {scatter_reduce(x, axis, at, values, Reduce::amax)};
  if (how == "min") return {scatter_reduce(x, axis, at, values, Reduce::amin)};
  throw Error(fmt::format("there is no reduction \"{}\"", how));
}
TENON_ONNX(ScatterElements) { return scatter_elements(c); }
TENON_ONNX(Scatter) { return scatter_elements(c); }

// The last axis of the indices is a point; points become one list an axis.
std::vector<Tensor> points(const Tensor& indices, int batch, const Shape& x) {
  if (indices.ndim() == 0) throw Error("the indices have no axes");
  const int depth = static_cast<int>(indices.size(-1));
  if (batch < 0 || batch + depth > x.n || depth < 1)
    throw Error(fmt::format("points of {} numbers do not fit {} axes", depth, x.n - batch));
  std::vector<Tensor> out;
  for (int k = 0; k < batch; ++k) {
    if (k >= indices.ndim() - 1 || indices.size(k) != x[k])
      throw Error(
          fmt::format("batch axis {} of the indices {} does not fit {}", k, to_string(indices.size()), to_string(x)));
    Shape s = Shape::filled(indices.ndim() - 1, 1);
    s[k] = x[k];
    out.push_back(reshape(arange(x[k]), s));
  }
  for (int k = 0; k < depth; ++k) out.push_back(select(indices, -1, k));
  return out;
}
TENON_ONNX(GatherND) {
  const int batch = static_cast<int>(c.node.integer("batch_dims", 0));
  return {index(c.input(0), points(c.input(1), batch, c.input(0).size()))};
}
TENON_ONNX(ScatterND) {
  const Tensor &x = c.input(0), &values = c.input(2);
  const std::vector<Tensor> at = points(c.input(1), 0, x.size());
  const std::string how = c.node.text("reduction", "none");
  if (how == "none" || how == "add") return {index_put(x, at, values, how == "add")};
  const Reduce join = how == "mul" ? Reduce::prod : how == "max" ? Reduce::amax : Reduce::amin;
  if (how != "mul" && how != "max" && how != "min") throw Error(fmt::format("there is no reduction \"{}\"", how));
  // Rows of one flat axis: the points as one number each.
  int64_t n = 1, inner = 1;
  Tensor flat = zeros(at[0].size(), DType::i64);
  for (size_t k = 0; k < at.size(); ++k) {
    const int64_t d = x.size(static_cast<int>(k));
    Tensor i = cast(at[k], DType::i64);
    flat = add(mul(flat, static_cast<double>(d)), where(lt(i, 0), add(i, static_cast<double>(d)), i));
    n *= d;
  }
  for (int k = static_cast<int>(at.size()); k < x.ndim(); ++k) inner *= x.size(k);
  const int64_t rows = flat.numel();
  return {reshape(scatter_reduce(reshape(x, {n, inner}), 0, expand(reshape(flat, {rows, 1}), {rows, inner}),
                                 reshape(values, {rows, inner}), join),
                  x.size())};
}

TENON_ONNX(Concat) {
  if (c.in.empty()) throw Error("there is nothing to join");
  return {cat(c.inputs(), axis_of(c, 1, c.input(0).ndim()))};
}
TENON_ONNX(Trilu) {
  const int64_t shift = c.has(1) ? c.whole(1) : 0;
  return {c.node.integer("upper", 1) ? triu(c.input(0), shift) : tril(c.input(0), shift)};
}

TENON_ONNX(TopK) {
  const std::vector<int64_t> k = c.opset >= 10 ? c.list(1, "") : std::vector<int64_t>{c.node.integer("k", 0)};
  if (k.size() != 1) throw Error("k is not one number");
  const Ordered o = topk(c.input(0), k[0], axis_of(c, -1, c.input(0).ndim()), c.node.integer("largest", 1) != 0);
  return {o.values, o.indices};
}

/// A running sum or product; exclusive: of the elements before, starting from `start`.
Out running(const OnnxCall& c, Tensor (*f)(const Tensor&, int), double start) {
  const Tensor& x = c.input(0);
  const int axis = wrap_axis(c.whole(1), x.ndim());
  const bool reverse = c.node.integer("reverse", 0), exclusive = c.node.integer("exclusive", 0);
  Tensor y = reverse ? flip(x, axis) : x;
  if (exclusive && y.size(axis) > 0) {
    Shape one = y.size();
    one[axis] = 1;
    y = cat({full(one, start, y.dtype()), narrow(y, axis, 0, y.size(axis) - 1)}, axis);
  }
  y = cast(f(y, axis), x.dtype());
  return {reverse ? flip(y, axis) : y};
}
TENON_ONNX(CumSum) { return running(c, cumsum, 0); }
TENON_ONNX(CumProd) { return running(c, cumprod, 1); }

TENON_ONNX(NonZero) { return {transpose(nonzero(c.input(0)), 0, 1)}; }

TENON_ONNX(Compress) {
  Tensor mask = c.input(1);
  if (mask.ndim() != 1) throw Error(fmt::format("a condition of size {}; it has one axis", to_string(mask.size())));
  const bool flat = !c.node.find("axis");
  Tensor x = flat ? reshape(c.input(0), {c.input(0).numel()}) : c.input(0);
  return {index_select(x, flat ? 0 : axis_of(c, 0, x.ndim()), select(nonzero(mask), 1, 0))};
}

TENON_ONNX(Unique) {
  const int axis = c.node.find("axis") ? axis_of(c, 0, c.input(0).ndim()) : kFlat;
  const Unique u = unique(c.input(0), axis, c.node.integer("sorted", 1) != 0);
  return {u.values, u.first, axis == kFlat ? reshape(u.inverse, {u.inverse.numel()}) : u.inverse, u.counts};
}

TENON_ONNX(OneHot) {
  Tensor at = cast(c.input(0), DType::i64);
  const int64_t depth = c.whole(1);
  if (depth < 0 || depth > (int64_t{1} << 31)) throw Error(fmt::format("a depth of {}", depth));
  const int axis = wrap_axis(c.node.integer("axis", -1), at.ndim() + 1);
  if (c.input(2).numel() != 2) throw Error("the values are not a pair: off, on");
  Shape row = Shape::filled(at.ndim() + 1, 1);
  row[axis] = depth;
  Tensor wrapped = where(lt(at, 0), add(at, static_cast<double>(depth)), at);
  return {where(eq(unsqueeze(wrapped, axis), reshape(arange(depth), row)), select(c.input(2), 0, 1),
                select(c.input(2), 0, 0))};
}

TENON_ONNX(Tile) {
  const std::vector<int64_t> counts = c.list(1, "");
  if (static_cast<int>(counts.size()) != c.input(0).ndim())
    throw Error(fmt::format("{} counts for {} axes", counts.size(), c.input(0).ndim()));
  return {repeat(c.input(0), Dims(counts))};
}

TENON_ONNX(ReverseSequence) {
  const Tensor& x = c.input(0);
  const int time = wrap_axis(c.node.integer("time_axis", 0), x.ndim()),
            batch = wrap_axis(c.node.integer("batch_axis", 1), x.ndim());
  const std::vector<int64_t> lengths = c.list(1, "");
  if (time == batch || static_cast<int64_t>(lengths.size()) != x.size(batch))
    throw Error("there is not one length for each sequence of the batch");
  Shape size = Shape::filled(x.ndim(), 1);
  size[time] = x.size(time);
  size[batch] = x.size(batch);
  Tensor at = empty({x.size(batch), x.size(time)}, DType::i64);
  for (int64_t b = 0; b < x.size(batch); ++b)
    for (int64_t t = 0; t < x.size(time); ++t) {
      const int64_t n = lengths[static_cast<size_t>(b)];
      if (n < 0 || n > x.size(time))
        throw Error(fmt::format("sequence {} has length {}, the axis has {}", b, n, x.size(time)));
      at.data<int64_t>()[b * x.size(time) + t] = t < n ? n - 1 - t : t;
    }
  return {take_along_dim(x, reshape(time > batch ? at : transpose(at, 0, 1), size), time)};
}

}  // namespace
}  // namespace tenon::formats
