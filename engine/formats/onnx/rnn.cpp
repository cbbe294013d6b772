// ONNX's recurrent layers, step by step in the operators' own words. Gates lie in ONNX's order: LSTM i o f c, GRU z r
// h.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "core/parallel.h"
#include "engine/formats/onnx/fused_nodes.h"
#include "engine/formats/onnx/operator.h"
#include "engine/kernels/packed_product.h"
#include "engine/kernels/rnn.h"
#include "engine/kernels/scratch.h"
#include "engine/ops/create.h"
#include "engine/ops/dense.h"
#include "engine/ops/join.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

using Activation = std::function<Tensor(const Tensor&)>;

Tensor between(const Tensor& x, double lo, double hi) { return minimum(maximum(x, lo), hi); }

Activation activation_of(const std::string& name, double alpha, double beta) {
  auto given = [](double v, double fallback) { return std::isnan(v) ? fallback : v; };
  if (name == "Sigmoid") return [](const Tensor& x) { return sigmoid(x); };
  if (name == "Tanh") return [](const Tensor& x) { return tanh(x); };
  if (name == "Relu") return [](const Tensor& x) { return relu(x); };
  if (name == "Softplus") return [](const Tensor& x) { return softplus(x); };
  if (name == "Softsign") return [](const Tensor& x) { return div(x, add(abs(x), 1.0)); };
  if (name == "Affine") return [a = given(alpha, 1), b = given(beta, 0)](const Tensor& x) { return add(mul(x, a), b); };
  if (name == "LeakyRelu") return [a = given(alpha, 0.01)](const Tensor& x) { return where(lt(x, 0), mul(x, a), x); };
  if (name == "ThresholdedRelu")
    return [a = given(alpha, 1)](const Tensor& x) { return where(gt(x, a), x, scalar_like(0, x)); };
  if (name == "ScaledTanh")
    return [a = given(alpha, 1), b = given(beta, 1)](const Tensor& x) { return mul(tanh(mul(x, b)), a); };
  if (name == "HardSigmoid")
    return [a = given(alpha, 0.2), b = given(beta, 0.5)](const Tensor& x) { return between(add(mul(x, a), b), 0, 1); };
  if (name == "Elu")
    return [a = given(alpha, 1)](const Tensor& x) { return where(lt(x, 0), mul(sub(exp(x), 1.0), a), x); };
  throw Error(fmt::format("there is no activation \"{}\"", name));
}

/// What one direction works with; every tensor in [batch, ..].
struct Direction {
  Tensor w, r, wb, rb;    ///< [gates * hidden, in], [gates * hidden, hidden], [gates * hidden] each
  Tensor h, c, peephole;  ///< initial states [batch, hidden]; [3 * hidden] or undefined
  std::vector<Activation> f;
  double clip;
  bool flag;  ///< linear_before_reset, or input_forget
};

struct Layer {
  const OnnxCall& call;
  int gates, per_direction;  ///< gates, and activations of a direction
  Tensor x;                  ///< [time, batch, in]
  int64_t time, batch, hidden;
  bool batch_first;
  std::vector<int64_t> lengths;
  std::vector<bool> backward;

  Layer(const OnnxCall& c, int gate_count, int activations) : call(c), gates(gate_count), per_direction(activations) {
    batch_first = c.node.integer("layout", 0);
    x = batch_first ? transpose(c.input(0), 0, 1) : c.input(0);
    if (x.ndim() != 3 || c.input(2).ndim() != 3)
      throw Error(fmt::format("an input of size {}; it has three axes", to_string(x.size())));
    time = x.size(0);
    batch = x.size(1);
    hidden = c.input(2).size(2);
    const std::string way = c.node.text("direction", "forward");
    if (way == "bidirectional")
      backward = {false, true};
    else if (way == "forward" || way == "reverse")
      backward = {way == "reverse"};
    else
      throw Error(fmt::format("there is no direction \"{}\"", way));
    lengths = c.has(4) ? c.list(4, "") : std::vector<int64_t>(static_cast<size_t>(batch), time);
    if (static_cast<int64_t>(lengths.size()) != batch)
      throw Error(fmt::format("{} lengths for a batch of {}", lengths.size(), batch));
    for (int64_t n : lengths)
      if (n < 0 || n > time) throw Error(fmt::format("a sequence of {} in an axis of {}", n, time));
    if (c.input(1).ndim() != 3 || c.input(1).size(0) != static_cast<int64_t>(backward.size()) ||
        c.input(1).size(1) != gates * hidden)
      throw Error(fmt::format("weights of size {} do not fit {} directions of {} hidden units",
                              to_string(c.input(1).size()), backward.size(), hidden));
  }

  Tensor initial(size_t input, int64_t d) const {
    if (!call.has(input)) return zeros({batch, hidden}, x.dtype());
    return batch_first ? select(call.in[input], 1, d) : select(call.in[input], 0, d);
  }
  Direction direction(int64_t d, const std::vector<std::string>& names, const char* flag) const {
    Direction k;
    k.w = select(call.input(1), 0, d);
    k.r = select(call.input(2), 0, d);
    const int64_t n = gates * hidden;
    if (call.has(3)) {
      const Tensor b = select(call.in[3], 0, d);
      k.wb = narrow(b, 0, 0, n);
      k.rb = narrow(b, 0, n, n);
    } else {
      k.wb = k.rb = zeros({n}, x.dtype());
    }
    k.h = initial(5, d);
    k.clip = call.node.number("clip", 0);
    k.flag = call.node.integer(flag, 0);
    std::vector<std::string> all;
    if (const auto* v = call.node.find("activations"))
      if (const auto* list = std::get_if<std::vector<std::string>>(v)) all = *list;
    auto numbers = [&](const char* name) {
      const auto* v = call.node.find(name);
      const auto* list = v ? std::get_if<std::vector<double>>(v) : nullptr;
      return list ? *list : std::vector<double>();
    };
    const std::vector<double> alpha = numbers("activation_alpha"), beta = numbers("activation_beta");
    for (int i = 0; i < per_direction; ++i) {
      const auto at = static_cast<size_t>(d * per_direction + i);
      k.f.push_back(activation_of(at < all.size() ? all[at] : names[static_cast<size_t>(i)],
                                  at < alpha.size() ? alpha[at] : NAN, at < beta.size() ? beta[at] : NAN));
    }
    return k;
  }
  /// step(x [batch, in], h, c) changes the states; those of sequences that have ended stay. Y, Y_h and Y_c.
  template <class Step>
  Out run(const std::vector<std::string>& names, const char* flag, bool cell, const Step& step) const {
    std::vector<Tensor> ys, hs, cs;
    for (size_t d = 0; d < backward.size(); ++d) {
      Direction k = direction(static_cast<int64_t>(d), names, flag);
      Tensor c;
      if (cell) {
        c = initial(6, static_cast<int64_t>(d));
        if (call.has(7)) k.peephole = select(call.in[7], 0, static_cast<int64_t>(d));
      }
      Tensor h = k.h;
      std::vector<Tensor> y(static_cast<size_t>(time));
      for (int64_t i = 0; i < time; ++i) {
        const int64_t t = backward[d] ? time - 1 - i : i;
        Tensor live = empty({batch, 1}, DType::boolean);
        bool all = true;
        for (int64_t b = 0; b < batch; ++b) all = (live.data<bool>()[b] = t < lengths[static_cast<size_t>(b)]) && all;
        Tensor nh = h, nc = c;
        step(k, select(x, 0, t), nh, nc);
        h = all ? nh : where(live, nh, h);
        if (cell) c = all ? nc : where(live, nc, c);
        y[static_cast<size_t>(t)] = all ? h : where(live, h, scalar_like(0, h));
      }
      ys.push_back(time ? stack(y, 0) : zeros({0, batch, hidden}, x.dtype()));
      hs.push_back(h);
      if (cell) cs.push_back(c);
    }
    // [directions, time, batch, hidden]
    const Tensor y = stack(ys, 0), h = stack(hs, 0);
    Out out{batch_first ? permute(y, {2, 1, 0, 3}) : permute(y, {1, 0, 2, 3}), batch_first ? transpose(h, 0, 1) : h};
    if (cell) out.push_back(batch_first ? transpose(stack(cs, 0), 0, 1) : stack(cs, 0));
    return out;
  }
};

Tensor clipped(const Tensor& x, double clip) { return clip > 0 ? between(x, -clip, clip) : x; }
Tensor times(const Tensor& x, const Tensor& w) { return matmul(x, w, false, true); }

TENON_ONNX(RNN) {
  return Layer(c, 1, 1).run({"Tanh"}, "", false, [](const Direction& k, const Tensor& x, Tensor& h, Tensor&) {
    h = k.f[0](clipped(add(add(times(x, k.w), k.wb), add(times(h, k.r), k.rb)), k.clip));
  });
}

TENON_ONNX(GRU) {
  return Layer(c, 3, 2).run(
      {"Sigmoid", "Tanh"}, "linear_before_reset", false, [](const Direction& k, const Tensor& x, Tensor& h, Tensor&) {
        const int64_t n = h.size(1);
        const Tensor a = add(times(x, k.w), k.wb);
        auto gate = [&](int64_t g) {
          return k.f[0](clipped(
              add(narrow(a, 1, g * n, n), add(times(h, narrow(k.r, 0, g * n, n)), narrow(k.rb, 0, g * n, n))), k.clip));
        };
        const Tensor z = gate(0), r = gate(1), rh = narrow(k.r, 0, 2 * n, n), bh = narrow(k.rb, 0, 2 * n, n);
        const Tensor inner = k.flag ? mul(r, add(times(h, rh), bh)) : add(times(mul(r, h), rh), bh);
        const Tensor candidate = k.f[1](clipped(add(narrow(a, 1, 2 * n, n), inner), k.clip));
        h = add(mul(sub(scalar_like(1, z), z), candidate), mul(z, h));
      });
}

TENON_ONNX(LSTM) {
  return Layer(c, 4, 3).run(
      {"Sigmoid", "Tanh", "Tanh"}, "input_forget", true, [](const Direction& k, const Tensor& x, Tensor& h, Tensor& c) {
        const int64_t n = h.size(1);
        const Tensor a = add(add(times(x, k.w), k.wb), add(times(h, k.r), k.rb));
        // Peepholes lie in the order i o f.
        auto part = [&](int64_t g, int64_t peephole, const Tensor& seen) {
          Tensor v = narrow(a, 1, g * n, n);
          if (k.peephole && peephole >= 0) v = add(v, mul(narrow(k.peephole, 0, peephole * n, n), seen));
          return clipped(v, k.clip);
        };
        const Tensor i = k.f[0](part(0, 0, c)), f = k.flag ? sub(scalar_like(1, i), i) : k.f[0](part(2, 2, c));
        const Tensor candidate = k.f[1](part(3, -1, c));
        c = add(mul(f, c), mul(i, candidate));
        h = mul(k.f[0](part(1, 1, c)), k.f[2](c));
      });
}

using kernels::Cell;

/// What the first activation of a plain RNN says decides; nothing where no kernel computes the node.
std::optional<Cell> cell_of(const OnnxNode& n, int64_t directions) {
  const bool lstm = n.op_type == "LSTM", gru = n.op_type == "GRU";
  std::vector<std::string> all, usual = lstm  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                        : gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                              : std::vector<std::string>{"Tanh"};
  if (const auto* v = n.find("activations"))
    if (const auto* list = std::get_if<std::vector<std::string>>(v)) all = *list;
  const bool relu = !lstm && !gru && !all.empty() && all[0] == "Relu";
  if (relu) usual = {"Relu"};
  if (!all.empty() && all.size() != usual.size() * static_cast<size_t>(directions)) return {};
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] != usual[i % usual.size()]) return {};
  if (n.number("clip", 0) > 0 || n.integer("input_forget", 0) != 0) return {};
  return lstm ? Cell::lstm : gru ? Cell::gru : relu ? Cell::relu : Cell::tanh;
}

/// A GRU that resets the state before it goes into the candidate's product. The kernel resets what the product gives,
/// bias and all, as PyTorch does.
bool resets_before(const OnnxNode& n) { return n.op_type == "GRU" && n.integer("linear_before_reset", 0) == 0; }

/// The state's products of such a GRU, step by step. Its gates come in the order r z n.
class ResetBeforeProduct {
 public:
  explicit ResetBeforeProduct(const Tensor& r)
      : h_(r.size(1)),
        weights_(r),
        gates_(h_, 2 * h_, true, weights_.data<float>(), nullptr),
        candidate_(h_, h_, true, weights_.data<float>() + 2 * h_ * h_, nullptr) {}

  void run(int64_t steps, int64_t n, bool reverse, const float* from_inputs, const float* h0, float* y) const {
    const kernels::Scratch<float> gates(n * 2 * h_), reset(n * h_), candidate(n * h_);
    const float* before = h0;
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t t = reverse ? steps - 1 - i : i;
      const float* x = from_inputs + t * n * 3 * h_;
      float* after = y + t * n * h_;
      gates_.run(n, before, gates.data());
      each_row(n, [&](int64_t row) {
        for (int64_t k = 0; k < h_; ++k)
          reset.data()[row * h_ + k] =
              before[row * h_ + k] * sigmoid_of(x[row * 3 * h_ + k] + gates.data()[row * 2 * h_ + k]);
      });
      candidate_.run(n, reset.data(), candidate.data());
      each_row(n, [&](int64_t row) {
        for (int64_t k = 0; k < h_; ++k) {
          const float z = sigmoid_of(x[row * 3 * h_ + h_ + k] + gates.data()[row * 2 * h_ + h_ + k]),
                      c = std::tanh(x[row * 3 * h_ + 2 * h_ + k] + candidate.data()[row * h_ + k]);
          after[row * h_ + k] = (1 - z) * c + z * before[row * h_ + k];
        }
      });
      before = after;
    }
  }

 private:
  static float sigmoid_of(float x) { return 1 / (1 + std::exp(-x)); }
  template <class F>
  static void each_row(int64_t n, const F& f) {
    parallel_for(n, 1, [&](int64_t from, int64_t to) {
      for (int64_t row = from; row < to; ++row) f(row);
    });
  }

  int64_t h_;
  Tensor weights_;  ///< [3 h, h]
  kernels::PackedProduct gates_, candidate_;
};

/// One direction of a recurrent layer by constant weights, its gates in the order of kernels/rnn.h.
struct ReadyDirection {
  Cell cell;
  Tensor w, r;  ///< [gates h, in], [gates h, h]
  Tensor bias,
      hidden_bias;  ///< [gates h] or undefined: of the inputs, and of the state, where they differ in what they do
  std::unique_ptr<kernels::PackedProduct> inputs;
  std::unique_ptr<ResetBeforeProduct> step;  ///< of a GRU that no kernel computes

  ReadyDirection(Cell kind, bool reset_before, const Tensor& w_given, const Tensor& r_given, const Tensor& b_given)
      : cell(kind) {
    const int64_t h = r_given.size(1), rows = kernels::gates_of(cell) * h;
    auto reordered = [&](const Tensor& t) {
      std::vector<Tensor> gates;
      for (int64_t g : cell == Cell::lstm  ? std::vector<int64_t>{0, 2, 3, 1}
                       : cell == Cell::gru ? std::vector<int64_t>{1, 0, 2}
                                           : std::vector<int64_t>{0})
        gates.push_back(narrow(t, 0, g * h, h));
      return contiguous(cat(gates, 0));
    };
    w = reordered(w_given), r = reordered(r_given);
    if (b_given) {
      bias = reordered(narrow(b_given, 0, 0, rows));
      const Tensor state = reordered(narrow(b_given, 0, rows, rows));
      if (cell == Cell::gru && !reset_before)
        hidden_bias = state;
      else
        bias = add(bias, state);
    }
    inputs = std::make_unique<kernels::PackedProduct>(w.size(1), rows, true, w.data<float>(),
                                                      ops::data_or_null<float>(bias));
    if (reset_before) step = std::make_unique<ResetBeforeProduct>(r);
  }
  /// x [time, batch, in] -> y and, of an LSTM, c [time, batch, h].
  void run(const Tensor& x, const Tensor& h0, const Tensor& c0, bool reverse, const Tensor& y, const Tensor& c) const {
    const kernels::RnnShape s{cell, reverse, x.size(0), x.size(1), r.size(1), nullptr};
    const kernels::Scratch<float> gates(s.steps * s.n * r.size(0));
    inputs->run(s.steps * s.n, x.data<float>(), gates.data());
    if (step) return step->run(s.steps, s.n, reverse, gates.data(), h0.data<float>(), y.data<float>());
    const kernels::Scratch<char> room(static_cast<int64_t>(kernels::rnn_forward_workspace<float>(s)));
    kernels::rnn_forward<float>(s, gates.data(), h0.data<float>(), ops::data_or_null<float>(c0), r.data<float>(),
                                ops::data_or_null<float>(hidden_bias), y.data<float>(), ops::data_or_null<float>(c),
                                nullptr, room.data());
  }
};

/// The operator as it was.
Items unfused(const FusedNodes& f, const OnnxCall& c) {
  std::unordered_map<std::string, Tensor> values = f.constants;
  for (size_t i = 0; i < c.in.size(); ++i) values[c.node.inputs[i]] = c.in[i];
  std::vector<Tensor> in;
  for (const std::string& name : f.nodes[0].inputs) in.push_back(name.empty() ? Tensor() : values[name]);
  const Out out = run_onnx_node(f.nodes[0], in, c.opset);
  return {out.begin(), out.end()};
}

}  // namespace

bool fuses_recurrent(const OnnxNode& n, const Tensor& w, const Tensor& r, const Tensor& b) {
  const std::string way = n.text("direction", "forward");
  const int64_t d = way == "bidirectional" ? 2 : 1;
  if (way != "bidirectional" && way != "forward" && way != "reverse") return false;
  const std::optional<Cell> cell = cell_of(n, d);
  const int64_t h = r.ndim() == 3 ? r.size(2) : 0;
  if (!cell || h <= 0) return false;
  const int64_t rows = kernels::gates_of(*cell) * h;
  return w.ndim() == 3 && w.size(2) > 0 && w.size(0) == d && r.size(0) == d && w.size(1) == rows && r.size(1) == rows &&
         (!b || b.size() == Shape{d, 2 * rows});
}

OnnxOperator fused_recurrent(FusedNodes fused, const Tensor& w, const Tensor& r, const Tensor& b) {
  struct Ready {
    FusedNodes f;
    bool batch_first, reverse, lstm;
    std::vector<ReadyDirection> directions;
  };
  const bool reverse = fused.nodes[0].text("direction", "forward") == "reverse",
             batch_first = fused.nodes[0].integer("layout", 0) != 0;
  const Cell cell = *cell_of(fused.nodes[0], w.size(0));
  auto ready = std::make_shared<Ready>(Ready{std::move(fused), batch_first, reverse, cell == Cell::lstm, {}});
  for (int64_t d = 0; d < w.size(0); ++d)
    ready->directions.emplace_back(cell, resets_before(ready->f.nodes[0]), select(w, 0, d), select(r, 0, d),
                                   b ? select(b, 0, d) : Tensor());
  return [ready](const OnnxCall& c) -> Items {
    const Tensor& given = c.in[0];
    const auto count = static_cast<int64_t>(ready->directions.size());
    const int64_t in = ready->directions[0].w.size(1), h = ready->directions[0].r.size(1);
    if (!given || given.is_meta() || given.dtype() != DType::f32 || given.ndim() != 3 || given.size(2) != in ||
        given.numel() == 0)
      return unfused(ready->f, c);
    const Tensor x = ops::dense(ready->batch_first ? transpose(given, 0, 1) : given);
    const Shape state{x.size(1), h}, all{x.size(0), x.size(1), h};
    const Shape states = ready->batch_first ? Shape{x.size(1), count, h} : Shape{count, x.size(1), h};
    for (size_t i = 1; i < c.in.size(); ++i)
      if (c.in[i] && (c.in[i].dtype() != DType::f32 || !(c.in[i].size() == states))) return unfused(ready->f, c);
    const int axis = ready->batch_first ? 1 : 0;
    auto initial = [&](size_t i, int64_t d) {
      return i < c.in.size() && c.in[i] ? ops::dense(select(c.in[i], axis, d)) : zeros(state);
    };
    std::vector<Tensor> ys, hs, cs;
    for (int64_t d = 0; d < count; ++d) {
      const bool reverse = ready->reverse || d == 1;
      const Tensor y = empty(all), cell = ready->lstm ? empty(all) : Tensor();
      ready->directions[static_cast<size_t>(d)].run(x, initial(1, d), ready->lstm ? initial(2, d) : Tensor(), reverse,
                                                    y, cell);
      const int64_t last = reverse ? 0 : x.size(0) - 1;
      ys.push_back(y), hs.push_back(select(y, 0, last));
      if (ready->lstm) cs.push_back(select(cell, 0, last));
    }
    const Tensor y = count == 1 ? unsqueeze(ys[0], 1) : stack(ys, 1);  // [time, directions, batch, h]
    Items out{ready->batch_first ? permute(y, {2, 0, 1, 3}) : y, stack(hs, axis)};
    if (ready->lstm) out.push_back(stack(cs, axis));
    return out;
  };
}

}  // namespace tenon::formats
