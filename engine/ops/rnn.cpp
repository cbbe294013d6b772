#include "engine/ops/rnn.h"

#include <cstring>

#include "engine/autograd/composite.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/join.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

using kernels::Cell;
using ops::data_or_null;
using ops::dense;
using ops::float_or_double;

enum Input { kGx, kH0, kC0, kWh, kBh, kLengths, kInputs };

struct RnnAttrs {
  int64_t cell;
  bool reverse;
  bool forgets = false;  ///< what the backward op needs is not kept: no gradient is asked for
  template <class F>
  void fields(F&& f) const {
    f("cell", cell);
    f("reverse", reverse);
    f("forgets", forgets, forgets);
  }
  Cell kind() const { return static_cast<Cell>(cell); }
};

kernels::RnnShape rnn_shape(const RnnAttrs& a, const Shape& gx, int64_t h, const Tensor& lengths) {
  return {a.kind(), a.reverse, gx[0], gx[1], h, lengths ? lengths.data<int64_t>() : nullptr};
}
/// The operands of a kernel, in order and without gaps; absent states are 0.
void operands(const RnnAttrs& a, const Call& c, int count, kernels::Room& room, Tensor* in) {
  for (int i = 0; i < count; ++i) in[i] = dense(c.in[i], room);
  const Shape state{c.in[kGx].size(1), c.in[kWh].size(1)};
  for (int i : {kH0, kC0}) {
    if (in[i] || (i == kC0 && a.kind() != Cell::lstm)) continue;
    const size_t bytes = static_cast<size_t>(state.product()) * itemsize(c.in[kGx].dtype());
    char* at = room.take<char>(static_cast<int64_t>(bytes));
    if (!at) continue;
    std::memset(at, 0, bytes);
    in[i] = from_blob(at, bytes, Layout::contiguous(state), c.in[kGx].dtype(), [](Storage* s) { delete s; });
  }
}
size_t operand_bytes(const RnnAttrs& a, const Call& c, int count) {
  kernels::Room room;
  Tensor in[kInputs + 5];
  operands(a, c, count, room, in);
  return room.used();
}
/// Absent states are 0.
Tensor state_or_zeros(const Tensor& given, const Tensor& gx, const Tensor& wh) {
  return given ? given : zeros({gx.size(1), wh.size(1)}, gx.dtype(), gx.device());
}
double rnn_flops(const Shape& gx, const Shape& wh) {
  return 2.0 * static_cast<double>(gx[0] * gx[1]) * static_cast<double>(wh.product());
}

/// Inputs as the forward op's, then y, c, kept, gy?, gc?; outputs ggx, gh0, gc0 (of lstm) or gbh, gwh. With
/// create_graph the composite runs.
struct RnnBackward {
  static constexpr OpInfo info{"rnn_sequence_backward", "", OpKind::matmul, 4};
  using Attrs = RnnAttrs;
  static void infer(const Attrs& a, const Tensor* in, int, Meta* out) {
    for (int i = 0; i < 4; ++i) out[i] = in[kGx].meta();
    out[1].shape = {in[kGx].size(1), in[kWh].size(1)};
    out[2].shape = a.kind() == Cell::lstm ? out[1].shape : in[kBh] ? in[kBh].size() : Shape{0};
    out[3].shape = in[kWh].size();
  }
  static size_t workspace(const Attrs& a, const Call& c) {
    const kernels::RnnShape s = rnn_shape(a, c.in[kGx].size(), c.in[kWh].size(1), {});
    return operand_bytes(a, c, kInputs + 5) + (c.out[0].dtype() == DType::f64
                                                   ? kernels::rnn_backward_workspace<double>(s)
                                                   : kernels::rnn_backward_workspace<float>(s));
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    Tensor in[kInputs + 5];
    kernels::Room room(c.workspace);
    operands(a, c, kInputs + 5, room, in);
    bool lstm = a.kind() == Cell::lstm;
    float_or_double(c.out[0].dtype(), [&](auto one) {
      using T = decltype(one);
      kernels::rnn_backward<T>(rnn_shape(a, in[kGx].size(), in[kWh].size(1), in[kLengths]), in[kH0].data<T>(),
                               data_or_null<T>(in[kC0]), in[kWh].data<T>(), in[kInputs].data<T>(),
                               data_or_null<T>(in[kInputs + 1]), data_or_null<T>(in[kInputs + 2]),
                               data_or_null<T>(in[kInputs + 3]), data_or_null<T>(in[kInputs + 4]), c.out[0].data<T>(),
                               c.out[1].data<T>(), lstm ? c.out[2].data<T>() : nullptr, c.out[3].data<T>(),
                               lstm ? nullptr : data_or_null<T>(c.out[2]), room.rest());
    });
  }
  static Cost cost(const Attrs&, const Call& c) { return {2 * rnn_flops(c.in[kGx].size(), c.in[kWh].size())}; }
};

/// The same in public ops, one step after the other.
std::vector<Tensor> composite(const RnnAttrs& a, const std::vector<Tensor>& in) {
  const Tensor& gx = in[kGx];
  int64_t steps = gx.size(0), n = gx.size(1), h = in[kWh].size(1);
  Tensor hidden = state_or_zeros(in[kH0], gx, in[kWh]),
         cell = a.kind() == Cell::lstm ? state_or_zeros(in[kC0], gx, in[kWh]) : Tensor();
  std::vector<Tensor> y(static_cast<size_t>(steps)), cells = y, kept = y;
  for (int64_t s = 0; s < steps; ++s) {
    int64_t t = a.reverse ? steps - 1 - s : s;
    Tensor x = select(gx, 0, t), g = linear(hidden, in[kWh], in[kBh]), next, next_cell = cell, keep;
    auto gate = [&](const Tensor& all, int64_t i) { return narrow(all, 1, i * h, h); };
    if (a.kind() == Cell::gru) {
      Tensor r = sigmoid(add(gate(x, 0), gate(g, 0))), z = sigmoid(add(gate(x, 1), gate(g, 1)));
      Tensor fresh = tanh(add(gate(x, 2), mul(r, gate(g, 2))));
      next = add(fresh, mul(z, sub(hidden, fresh)));
      keep = cat({r, z, fresh, gate(g, 2)}, 1);
    } else {
      g = add(g, x);
      if (a.kind() == Cell::lstm) {
        Tensor i = sigmoid(gate(g, 0)), f = sigmoid(gate(g, 1)), u = tanh(gate(g, 2)), o = sigmoid(gate(g, 3));
        next_cell = add(mul(f, cell), mul(i, u));
        next = mul(o, tanh(next_cell));
        keep = cat({i, f, u, o}, 1);
      } else {
        next = a.kind() == Cell::relu ? relu(g) : tanh(g);
      }
    }
    Tensor out = next;
    if (in[kLengths]) {
      Tensor live = reshape(gt(in[kLengths], static_cast<double>(t)), {n, 1});
      out = where(live, next, scalar_like(0, next));
      next = where(live, next, hidden);
      if (keep) keep = where(live, keep, scalar_like(0, keep));
      if (cell) next_cell = where(live, next_cell, cell);
    }
    hidden = next;
    cell = next_cell;
    y[static_cast<size_t>(t)] = out;
    cells[static_cast<size_t>(t)] = cell;
    kept[static_cast<size_t>(t)] = keep;
  }
  return {stack(y, 0), cell ? stack(cells, 0) : Tensor(), kept[0] ? stack(kept, 0) : Tensor()};
}

/// Outputs y, the cells of every step (of lstm), and what backward needs.
struct Rnn {
  static constexpr OpInfo info{"rnn_sequence", "", OpKind::matmul, 3};
  using Attrs = RnnAttrs;
  static void infer(const Attrs& a, const Tensor* in, int, Meta* out) {
    const Meta &x = in[kGx].meta(), &w = in[kWh].meta();
    int64_t gates = kernels::gates_of(a.kind());
    ops::common_float({&x, &w});
    if (x.shape.n != 3 || w.shape.n != 2 || w.shape[0] != gates * w.shape[1] || x.shape[2] != w.shape[0] ||
        x.shape[0] < 1)
      throw Error("gates of size " + to_string(x.shape) + " and a weight of size " + to_string(w.shape) +
                  " do not fit: [steps, batch, " + std::to_string(gates) + " h] and [" + std::to_string(gates) +
                  " h, h]");
    Shape state{x.shape[1], w.shape[1]};
    bool lstm = a.kind() == Cell::lstm;
    for (int i : {kH0, kC0}) {
      if (!in[i]) continue;
      ops::common_float({&x, &in[i].meta()});
      if (!(in[i].size() == state) || (i == kC0 && !lstm))
        throw Error("a state of size " + to_string(in[i].size()) + " does not fit; it must be " + to_string(state));
    }
    if (in[kBh] && !(in[kBh].size() == Shape{w.shape[0]}))
      throw Error("a bias of size " + to_string(in[kBh].size()) + " does not fit a weight of size " +
                  to_string(w.shape));
    if (in[kLengths] && (in[kLengths].dtype() != DType::i64 || !(in[kLengths].size() == Shape{x.shape[1]})))
      throw Error("lengths of size " + to_string(in[kLengths].size()) + " do not fit; they are i64 [" +
                  std::to_string(x.shape[1]) + "]");
    out[0] = out[1] = out[2] = x;
    out[0].shape[2] = w.shape[1];
    out[1].shape = lstm ? out[0].shape : Shape{0};
    out[2].shape = a.forgets ? Shape{0} : Shape{x.shape[0], x.shape[1], kernels::kept_of(a.kind()) * w.shape[1]};
  }
  static size_t workspace(const Attrs& a, const Call& c) {
    const kernels::RnnShape s = rnn_shape(a, c.in[kGx].size(), c.in[kWh].size(1), {});
    return operand_bytes(a, c, kInputs) + (c.out[0].dtype() == DType::f64 ? kernels::rnn_forward_workspace<double>(s)
                                                                          : kernels::rnn_forward_workspace<float>(s));
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    Tensor in[kInputs];
    kernels::Room room(c.workspace);
    operands(a, c, kInputs, room, in);
    if (in[kLengths])
      for (int64_t i = 0; i < in[kLengths].numel(); ++i)
        if (int64_t l = in[kLengths].data<int64_t>()[i]; l < 0 || l > in[kGx].size(0))
          throw Error("length " + std::to_string(l) + " of sequence " + std::to_string(i) + " is not in 0.." +
                      std::to_string(in[kGx].size(0)));
    float_or_double(c.out[0].dtype(), [&](auto one) {
      using T = decltype(one);
      kernels::rnn_forward<T>(rnn_shape(a, in[kGx].size(), in[kWh].size(1), in[kLengths]), in[kGx].data<T>(),
                              in[kH0].data<T>(), data_or_null<T>(in[kC0]), in[kWh].data<T>(), data_or_null<T>(in[kBh]),
                              c.out[0].data<T>(), data_or_null<T>(c.out[1]), data_or_null<T>(c.out[2]), room.rest());
    });
  }
  static constexpr Saves saves{.inputs = 0b111111, .outputs = 0b111};
  static Tensor decompose(const Attrs& a, const std::vector<Tensor>& in);
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    std::vector<Tensor> in;
    for (int i = 0; i < kInputs; ++i) in.push_back(d.x(i));
    if (grad_enabled() || d.out(2) || a.forgets)
      return composite_gradient(d, in, [&](const std::vector<Tensor>& x) { return composite(a, x); });
    for (int i = 0; i < 3; ++i) in.push_back(d.y(i));
    in.push_back(d.out(0));
    in.push_back(d.out(1));
    Tensor out[4];
    apply_many<RnnBackward>(a, in.data(), kInputs + 5, out);
    d.in(kGx) = out[0];
    if (d.needs(kH0)) d.in(kH0) = out[1];
    if (a.kind() == Cell::lstm && d.needs(kC0)) d.in(kC0) = out[2];
    if (d.needs(kWh)) d.in(kWh) = out[3];
    // Where a bias belongs to the gates alone, its gradient is the sum of theirs.
    if (d.needs(kBh))
      d.in(kBh) = a.kind() == Cell::lstm
                      ? sum_to(reshape(out[0], {out[0].size(0) * out[0].size(1), out[0].size(2)}), in[kBh].size())
                      : out[2];
  }
  static Cost cost(const Attrs&, const Call& c) { return {rnn_flops(c.in[kGx].size(), c.in[kWh].size())}; }
  static void samples(Samples& s) {
    constexpr int64_t steps = 3, n = 2, h = 3;
    Tensor lengths = s.indices({n}, 1);
    lengths.data<int64_t>()[0] = 2;
    lengths.data<int64_t>()[1] = 3;
    auto add = [&](const char* name, Cell cell, bool reverse, bool bias, const Tensor& l) {
      int64_t g = kernels::gates_of(cell) * h;
      s.add(name, Attrs{static_cast<int64_t>(cell), reverse},
            {s.values({steps, n, g}), s.values({n, h}), cell == Cell::lstm ? s.values({n, h}) : Tensor(),
             s.values({g, h}), bias ? s.values({g}) : Tensor(), l});
    };
    add("lstm", Cell::lstm, false, true, {});
    add("lstm, backwards, lengths", Cell::lstm, true, false, lengths);
    add("gru", Cell::gru, true, true, {});
    add("gru, lengths", Cell::gru, false, true, lengths);
    add("tanh, lengths", Cell::tanh, true, true, lengths);
    add("relu", Cell::relu, false, false, {});
    s.add("lstm from nothing", Attrs{static_cast<int64_t>(Cell::lstm), false},
          {s.values({steps, n, 4 * h}), Tensor(), Tensor(), s.values({4 * h, h}), Tensor(), Tensor()});
  }
};

const Register<Rnn> rnn_op;
const Register<RnnBackward> rnn_backward_op;
// Step by step. States that are 0 come from the gates' own batch axis, so that the result serves any batch.
Tensor Rnn::decompose(const Attrs& a, const std::vector<Tensor>& in) {
  std::vector<Tensor> given = in;
  given.resize(kInputs);
  Tensor none = mul(narrow(select(in[kGx], 0, 0), 1, 0, in[kWh].size(1)), 0);
  if (!given[kH0]) given[kH0] = none;
  if (a.kind() == Cell::lstm && !given[kC0]) given[kC0] = none;
  return composite(a, given)[0];
}

}  // namespace

RnnSequence rnn_sequence(Cell cell, bool reverse, const Tensor& gx, const Tensor& h0, const Tensor& c0,
                         const Tensor& wh, const Tensor& bh, const Tensor& lengths) {
  const Tensor in[] = {gx, h0, c0, wh, bh, lengths};
  Tensor out[3];
  bool asked = false;
  for (const Tensor& t : in) asked = asked || (t && t.requires_grad());
  apply_many<Rnn>({static_cast<int64_t>(cell), reverse, !(asked && grad_enabled())}, in, kInputs, out);
  return {out[0], cell == Cell::lstm ? out[1] : Tensor()};
}

}  // namespace tenon
