#include <cmath>
#include <limits>
#include <vector>

#include "core/backend.h"
#include "core/parallel.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/composite.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/criterion.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/gather.h"
#include "engine/ops/join.h"
#include "engine/ops/pad.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"

namespace tenon {
namespace {

using ops::dense;
using ops::float_or_double;

struct CtcAttrs {
  int64_t blank;
  bool zero_infinity;
  template <class F>
  void fields(F&& f) const {
    f("blank", blank);
    f("zero_infinity", zero_infinity);
  }
};

constexpr double kNever = -std::numeric_limits<double>::infinity();
double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

/// One sequence: its labels with blanks between, and the logarithms of the shares of ways that begin (alpha) or end
/// (beta) at each of them.
struct Lattice {
  std::vector<int64_t> labels;
  int64_t steps;
  std::vector<double> alpha, beta;  ///< [steps, labels]; beta does not count the step itself
  double loss;

  template <class T>
  Lattice(const T* log_p, int64_t stride, const int64_t* target, int64_t length, int64_t n_steps, int64_t blank,
          bool both)
      : steps(n_steps) {
    labels.assign(static_cast<size_t>(2 * length + 1), blank);
    for (int64_t i = 0; i < length; ++i) labels[static_cast<size_t>(2 * i + 1)] = target[i];
    auto count = static_cast<int64_t>(labels.size());
    auto p = [&](int64_t t, int64_t s) {
      return static_cast<double>(log_p[t * stride + labels[static_cast<size_t>(s)]]);
    };
    auto skips = [&](int64_t s) {
      return s >= 2 && labels[static_cast<size_t>(s)] != blank &&
             labels[static_cast<size_t>(s)] != labels[static_cast<size_t>(s - 2)];
    };
    if (steps == 0) {
      loss = length == 0 ? 0 : -kNever;
      return;
    }
    alpha.assign(static_cast<size_t>(steps * count), kNever);
    for (int64_t s = 0; s < std::min<int64_t>(2, count); ++s) alpha[static_cast<size_t>(s)] = p(0, s);
    for (int64_t t = 1; t < steps; ++t)
      for (int64_t s = 0; s < count; ++s) {
        const double* before = &alpha[static_cast<size_t>((t - 1) * count)];
        double a = before[s];
        if (s >= 1) a = log_add(a, before[s - 1]);
        if (skips(s)) a = log_add(a, before[s - 2]);
        alpha[static_cast<size_t>(t * count + s)] = a + p(t, s);
      }
    const double* end = &alpha[static_cast<size_t>((steps - 1) * count)];
    loss = -(count > 1 ? log_add(end[count - 1], end[count - 2]) : end[0]);
    if (!both) return;
    beta.assign(static_cast<size_t>(steps * count), kNever);
    for (int64_t s = std::max<int64_t>(0, count - 2); s < count; ++s)
      beta[static_cast<size_t>((steps - 1) * count + s)] = 0;
    for (int64_t t = steps - 2; t >= 0; --t)
      for (int64_t s = 0; s < count; ++s) {
        const double* after = &beta[static_cast<size_t>((t + 1) * count)];
        double b = after[s] + p(t + 1, s);
        if (s + 1 < count) b = log_add(b, after[s + 1] + p(t + 1, s + 1));
        if (s + 2 < count && skips(s + 2)) b = log_add(b, after[s + 2] + p(t + 1, s + 2));
        beta[static_cast<size_t>(t * count + s)] = b;
      }
  }
};

void check_ctc(const Tensor* in, int64_t blank) {
  const Shape &p = in[0].size(), &t = in[1].size();
  ops::common_float({&in[0].meta()});
  for (int i = 1; i < 4; ++i)
    if (in[i].dtype() != DType::i64)
      throw Error(std::string(i == 1 ? "targets" : "lengths") + " are " + name(in[i].dtype()) + "; they must be i64");
  if (p.n != 3 || t.n != 2 || t[0] != p[1] || !(in[2].size() == Shape{p[1]}) || !(in[3].size() == Shape{p[1]}))
    throw Error("log-probabilities of size " + to_string(p) + ", targets of size " + to_string(t) +
                " and lengths of sizes " + to_string(in[2].size()) + " and " + to_string(in[3].size()) +
                " do not fit: [steps, n, classes], [n, most], [n] and [n]");
  if (blank < 0 || blank >= p[2])
    throw Error("blank " + std::to_string(blank) + " is no class of 0.." + std::to_string(p[2] - 1));
}
void check_lengths(const Tensor& p, const Tensor& targets, const Tensor& steps, const Tensor& lengths) {
  for (int64_t i = 0; i < p.size(1); ++i) {
    int64_t s = steps.data<int64_t>()[i], l = lengths.data<int64_t>()[i];
    if (s < 0 || s > p.size(0) || l < 0 || l > targets.size(1))
      throw Error("lengths " + std::to_string(s) + " and " + std::to_string(l) + " of sequence " + std::to_string(i) +
                  " do not fit " + std::to_string(p.size(0)) + " steps and " + std::to_string(targets.size(1)) +
                  " targets");
    for (int64_t j = 0; j < l; ++j)
      if (int64_t v = targets.data<int64_t>()[i * targets.size(1) + j]; v < 0 || v >= p.size(2))
        throw Error("target " + std::to_string(v) + " of sequence " + std::to_string(i) + " is no class of 0.." +
                    std::to_string(p.size(2) - 1));
  }
}

/// Inputs log_p, targets, input_lengths, target_lengths, g [n].
struct CtcBackward {
  static constexpr OpInfo info{"ctc_loss_backward", "", OpKind::other};
  using Attrs = CtcAttrs;
  static void infer(const Attrs&, const Tensor* in, int, Meta* out) { out[0] = in[0].meta(); }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0, 1, 2, 3, 4}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor p = dense(c.in[0], room), targets = dense(c.in[1], room), steps = dense(c.in[2], room),
           lengths = dense(c.in[3], room), g = dense(c.in[4], room);
    int64_t n = p.size(1), classes = p.size(2), most = targets.size(1);
    float_or_double(p.dtype(), [&](auto one) {
      using T = decltype(one);
      T* to = c.out[0].data<T>();
      std::fill_n(to, p.numel(), T(0));
      parallel_for(n, 1, [&](int64_t i, int64_t) {
        const T* log_p = p.data<T>() + i * classes;
        Lattice l(log_p, n * classes, targets.data<int64_t>() + i * most, lengths.data<int64_t>()[i],
                  steps.data<int64_t>()[i], a.blank, true);
        if (std::isinf(l.loss) && a.zero_infinity) return;
        auto count = static_cast<int64_t>(l.labels.size());
        // The share of all ways that pass label s at step t is its gradient, up to the sign.
        for (int64_t t = 0; t < l.steps; ++t)
          for (int64_t s = 0; s < count; ++s) {
            double share = std::exp(l.alpha[static_cast<size_t>(t * count + s)] +
                                    l.beta[static_cast<size_t>(t * count + s)] + l.loss);
            to[(t * n + i) * classes + l.labels[static_cast<size_t>(s)]] -=
                static_cast<T>(share * static_cast<double>(g.data<T>()[i]));
          }
      });
    });
  }
};

/// Inputs log_p, targets, input_lengths, target_lengths -> [n].
struct Ctc {
  static constexpr OpInfo info{"ctc_loss", "", OpKind::other};
  using Attrs = CtcAttrs;
  static void infer(const Attrs& a, const Tensor* in, int, Meta* out) {
    check_ctc(in, a.blank);
    out[0] = in[0].meta();
    out[0].shape = {in[0].size(1)};
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0, 1, 2, 3}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor p = dense(c.in[0], room), targets = dense(c.in[1], room), steps = dense(c.in[2], room),
           lengths = dense(c.in[3], room);
    check_lengths(p, targets, steps, lengths);
    int64_t n = p.size(1), classes = p.size(2), most = targets.size(1);
    float_or_double(p.dtype(), [&](auto one) {
      using T = decltype(one);
      parallel_for(n, 1, [&](int64_t i, int64_t) {
        Lattice l(p.data<T>() + i * classes, n * classes, targets.data<int64_t>() + i * most,
                  lengths.data<int64_t>()[i], steps.data<int64_t>()[i], a.blank, false);
        c.out[0].data<T>()[i] = std::isinf(l.loss) && a.zero_infinity ? T(0) : static_cast<T>(l.loss);
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b1111};
  static void backward(Grad& d);
  static void samples(Samples& s) {
    Tensor targets = add(s.indices({2, 2}, 3), 1), steps = s.indices({2}, 1), lengths = s.indices({2}, 1);
    steps.data<int64_t>()[0] = 4;
    steps.data<int64_t>()[1] = 3;
    lengths.data<int64_t>()[0] = 2;
    lengths.data<int64_t>()[1] = 1;
    s.add("two sequences", Attrs{0, false}, {s.values({4, 2, 4}, in(-2, -0.5)), targets, steps, lengths},
          {true, false, false, false});
  }
};

/// The recursion in public ops, over all sequences at once. "Never" is a finite number here, so that no gradient is 0
/// times infinity.
Tensor recursion(const CtcAttrs& a, const Tensor& log_p, const Tensor& given, const Tensor& input_lengths,
                 const Tensor& target_lengths) {
  constexpr double never = -1e30;
  const Tensor targets = to_host(contiguous(given)), lengths = to_host(contiguous(target_lengths));
  int64_t steps = log_p.size(0), n = log_p.size(1), most = targets.size(1), count = 2 * most + 1;
  Tensor labels = empty({n, count}, DType::i64), skips = empty({n, count}, DType::boolean),
         ends = empty({n, 2}, DType::i64);
  for (int64_t i = 0; i < n; ++i) {
    int64_t length = lengths.data<int64_t>()[i];
    for (int64_t s = 0; s < count; ++s) {
      bool label = s % 2 == 1 && s / 2 < length;
      int64_t v = label ? targets.data<int64_t>()[i * most + s / 2] : a.blank;
      labels.data<int64_t>()[i * count + s] = v;
      skips.data<bool>()[i * count + s] =
          label && s >= 3 && v != a.blank && v != labels.data<int64_t>()[i * count + s - 2];
    }
    if (count > 1) skips.data<bool>()[i * count + 1] = false;
    ends.data<int64_t>()[i * 2] = 2 * length;
    ends.data<int64_t>()[i * 2 + 1] = std::max<int64_t>(0, 2 * length - 1);
  }
  for (Tensor* t : {&labels, &skips, &ends}) *t = to_device(*t, log_p.device());
  auto log_sum = [](const Tensor& x) {
    Tensor m = detach(amax(x, {-1}, true));
    return add(squeeze(m, -1), log(sum(exp(sub(x, m)), {-1})));
  };
  Tensor alpha;
  for (int64_t t = 0; t < steps; ++t) {
    Tensor p = gather(select(log_p, 0, t), 1, labels);
    if (t == 0) {
      Tensor first = zeros({count}, DType::boolean);
      for (int64_t s = 0; s < std::min<int64_t>(2, count); ++s) first.data<bool>()[s] = true;
      first = to_device(first, log_p.device());
      alpha = where(first, p, scalar_like(never, p));
      continue;
    }
    Tensor by_one = narrow(pad(alpha, {1, 0}, PadMode::constant, never), 1, 0, count);
    Tensor by_two =
        where(skips, narrow(pad(alpha, {2, 0}, PadMode::constant, never), 1, 0, count), scalar_like(never, p));
    Tensor next = add(log_sum(stack({alpha, by_one, by_two}, -1)), p);
    alpha = where(unsqueeze(gt(input_lengths, static_cast<double>(t)), 1), next, alpha);
  }
  Tensor last = gather(alpha, 1, ends);
  // Without labels there is one end.
  Tensor alone = eq(target_lengths, 0);
  Tensor second = where(alone, scalar_like(never, last), select(last, 1, 1));
  return neg(log_sum(stack({select(last, 1, 0), second}, -1)));
}

void Ctc::backward(Grad& d) {
  const auto& a = d.as<Attrs>();
  if (!d.needs(0)) return;
  if (!grad_enabled()) {
    const Tensor in[] = {d.x(0), d.x(1), d.x(2), d.x(3), d.out()};
    Tensor out;
    apply_many<CtcBackward>(a, in, 5, &out);
    d.in(0) = out;
    return;
  }
  composite_gradient(d, {d.x(0), d.x(1), d.x(2), d.x(3)}, [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    Tensor loss = recursion(a, in[0], in[1], in[2], in[3]);
    return {a.zero_infinity ? where(gt(loss, 1e29), scalar_like(0, loss), loss) : loss};
  });
}

const Register<Ctc> ctc_op;
const Register<CtcBackward> ctc_backward_op;

}  // namespace

Tensor ctc_loss(const Tensor& log_p, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                int64_t blank, Reduction r, bool zero_infinity) {
  const Tensor in[] = {log_p, targets, input_lengths, target_lengths};
  Tensor loss;
  apply_many<Ctc>({blank, zero_infinity}, in, 4, &loss);
  if (r == Reduction::none) return loss;
  if (r == Reduction::sum) return sum(loss);
  return mean(div(loss, cast(maximum(target_lengths, scalar_like(1, target_lengths)), loss.dtype())));
}

}  // namespace tenon
