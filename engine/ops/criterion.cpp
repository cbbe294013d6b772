#include "engine/ops/criterion.h"

#include <cmath>

#include "core/backend.h"
#include "core/dry_device.h"
#include "core/error.h"
#include "engine/ops/activation.h"
#include "engine/ops/create.h"
#include "engine/ops/embedding.h"
#include "engine/ops/gather.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

Tensor reduced(const Tensor& t, Reduction r) {
  switch (r) {
    case Reduction::none:
      return t;
    case Reduction::sum:
      return sum(t);
    case Reduction::batchmean:
      return div(sum(t), static_cast<double>(t.ndim() > 0 ? t.size(0) : 1));
    default:
      return mean(t);
  }
}
void check_alike(const char* what, const Tensor& x, const Tensor& y) {
  if (!(x.size() == y.size()))
    throw Error(std::string(what) + ": an output of size " + to_string(x.size()) + " and targets of size " +
                    to_string(y.size()) + " differ",
                "view() one of them as the other");
  if (!is_floating(x.dtype()))
    throw Error(std::string(what) + ": an output of " + name(x.dtype()) + " has no gradient");
}
Tensor as(const Tensor& y, const Tensor& x) { return y.dtype() == x.dtype() ? y : cast(y, x.dtype()); }
Tensor number(double v, const Tensor& like) { return scalar_like(v, like); }

/// [rows, classes] of the logits, and the targets' size.
struct ClassRows {
  Tensor x;
  Shape target;
  int axis;
};
ClassRows class_rows(const Tensor& x, int axis) {
  if (x.ndim() < 1) throw Error("logits without axes have no classes");
  int a = x.ndim() == 1 ? 0 : wrap_axis(axis, x.ndim());
  Dims order;
  Shape target;
  for (int i = 0; i < x.ndim(); ++i)
    if (i != a) {
      order.push_back(i);
      target.push_back(x.size(i));
    }
  order.push_back(a);
  int64_t classes = x.size(a);
  return {reshape(a == x.ndim() - 1 ? x : permute(x, order), {classes > 0 ? x.numel() / classes : 0, classes}), target,
          a};
}
void check_classes(const char* what, const Tensor& target, const Shape& wanted, int64_t classes, int64_t ignore) {
  if (target.dtype() != DType::i64)
    throw Error(std::string(what) + ": targets are " + name(target.dtype()) + "; they must be i64 numbers of classes");
  if (!(target.size() == wanted))
    throw Error(std::string(what) + ": targets of size " + to_string(target.size()) + " do not fit; they must be " +
                to_string(wanted));
  if (target.is_meta() || is_dry(target.device())) return;
  const Tensor t = to_host(contiguous(target));
  for (int64_t i = 0; i < t.numel(); ++i)
    if (int64_t v = t.data<int64_t>()[i]; v != ignore && (v < 0 || v >= classes))
      throw Error(std::string(what) + ": target " + std::to_string(v) + " at place " + std::to_string(i) +
                      " is no class of 0.." + std::to_string(classes - 1),
                  "the last layer needs one output a class");
}
bool any_ignored(const Tensor& target, int64_t ignore) {
  if (target.is_meta()) return true;
  if (is_dry(target.device())) return ignore >= 0;  // who leaves out a class that there is, has it in the data
  const Tensor t = to_host(contiguous(target));
  for (int64_t i = 0; i < t.numel(); ++i)
    if (t.data<int64_t>()[i] == ignore) return true;
  return false;
}

Tensor of_classes(const ClassRows& rows, const Tensor& log_p, const Tensor& target, const CrossEntropyOptions& o) {
  int64_t classes = rows.x.size(1), n = rows.x.size(0);
  Tensor t = reshape(target, {n}), live = ne(t, static_cast<double>(o.ignore_index)), at = where(live, t, number(0, t));
  Tensor w =
      o.weight ? mul(reshape(embedding(at, reshape(as(o.weight, log_p), {classes, 1})), {n}), cast(live, log_p.dtype()))
               : cast(live, log_p.dtype());
  Tensor loss = mul(neg(reshape(gather(log_p, 1, unsqueeze(at, 1)), {n})), w);
  if (o.label_smoothing > 0) {
    Tensor spread = neg(sum(o.weight ? mul(log_p, as(o.weight, log_p)) : log_p, {1}));
    spread = where(live, spread, number(0, spread));
    loss = add(mul(loss, 1 - o.label_smoothing), mul(spread, o.label_smoothing / static_cast<double>(classes)));
  }
  if (o.reduction == Reduction::none) return reshape(loss, rows.target);
  return o.reduction == Reduction::sum ? sum(loss) : div(sum(loss), sum(w));
}

/// (sum of |a - b + eps|^p)^(1/p) along the last axis.
Tensor distance(const Tensor& a, const Tensor& b, double p, double eps) {
  Tensor d = add(sub(a, b), eps);
  if (p == 2) return sqrt(sum(square(d), {-1}));
  if (p == 1) return sum(abs(d), {-1});
  return pow(sum(pow(abs(d), p), {-1}), 1 / p);
}

}  // namespace

Reduction reduction_of(const std::string& name) {
  if (name == "none") return Reduction::none;
  if (name == "mean") return Reduction::mean;
  if (name == "sum") return Reduction::sum;
  if (name == "batchmean") return Reduction::batchmean;
  throw Error("reduction is \"" + name + "\"; it must be mean, sum, none or batchmean");
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    throw Error("cross_entropy: label_smoothing = " + std::to_string(o.label_smoothing) + " is not between 0 and 1");
  ClassRows rows = class_rows(logits, o.axis);
  int64_t classes = rows.x.size(1), n = rows.x.size(0);
  if (o.weight && !(o.weight.size() == Shape{classes}))
    throw Error("cross_entropy: weights of size " + to_string(o.weight.size()) + " do not fit " +
                std::to_string(classes) + " classes");
  if (is_floating(target.dtype())) {
    check_alike("cross_entropy", logits, target);
    Tensor q = class_rows(target, o.axis).x, log_p = log_softmax(rows.x, -1);
    if (o.label_smoothing > 0) q = add(mul(q, 1 - o.label_smoothing), o.label_smoothing / static_cast<double>(classes));
    Tensor loss = neg(sum(mul(log_p, o.weight ? mul(q, as(o.weight, q)) : q), {1}));
    return o.reduction == Reduction::none  ? reshape(loss, rows.target)
           : o.reduction == Reduction::sum ? sum(loss)
                                           : div(sum(loss), static_cast<double>(n));
  }
  check_classes("cross_entropy", target, rows.target, classes, o.ignore_index);
  if (!o.weight && o.label_smoothing == 0 && o.reduction == Reduction::mean && !any_ignored(target, o.ignore_index))
    return cross_entropy(rows.x, reshape(target, {n}));
  return of_classes(rows, log_softmax(rows.x, -1), target, o);
}

Tensor nll_loss(const Tensor& log_p, const Tensor& target, const CrossEntropyOptions& o) {
  ClassRows rows = class_rows(log_p, o.axis);
  check_classes("nll_loss", target, rows.target, rows.x.size(1), o.ignore_index);
  CrossEntropyOptions plain = o;
  plain.label_smoothing = 0;
  return of_classes(rows, rows.x, target, plain);
}

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction r) {
  check_alike("mse_loss", x, y);
  return r == Reduction::mean ? mse_loss(x, as(y, x)) : reduced(square(sub(x, as(y, x))), r);
}
Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction r) {
  check_alike("l1_loss", x, y);
  return reduced(abs(sub(x, y)), r);
}
Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, double beta, Reduction r) {
  check_alike("smooth_l1_loss", x, y);
  if (!(beta >= 0)) throw Error("smooth_l1_loss: beta is below 0");
  if (beta == 0) return l1_loss(x, y, r);
  Tensor d = abs(sub(x, y));
  return reduced(where(lt(d, beta), mul(square(d), 0.5 / beta), sub(d, 0.5 * beta)), r);
}
Tensor huber_loss(const Tensor& x, const Tensor& y, double delta, Reduction r) {
  check_alike("huber_loss", x, y);
  if (!(delta > 0)) throw Error("huber_loss: delta must be above 0");
  Tensor d = abs(sub(x, y));
  return reduced(where(le(d, delta), mul(square(d), 0.5), mul(sub(d, 0.5 * delta), delta)), r);
}

Tensor binary_cross_entropy(const Tensor& p, const Tensor& y, const Tensor& weight, Reduction r) {
  check_alike("binary_cross_entropy", p, y);
  auto safe_log = [](const Tensor& t) { return clamp(log(t), -100, INFINITY); };
  Tensor t = as(y, p), loss = neg(add(mul(t, safe_log(p)), mul(sub(number(1, t), t), safe_log(sub(number(1, p), p)))));
  return reduced(weight ? mul(loss, weight) : loss, r);
}
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& y, const Tensor& weight,
                                        const Tensor& pos_weight, Reduction r) {
  check_alike("binary_cross_entropy_with_logits", x, y);
  Tensor t = as(y, x), miss = softplus(neg(x)), loss = mul(sub(number(1, t), t), x);
  loss = add(loss, pos_weight ? mul(miss, add(mul(sub(pos_weight, 1), t), 1)) : miss);
  return reduced(weight ? mul(loss, weight) : loss, r);
}
Tensor kl_div(const Tensor& x, const Tensor& y, bool log_target, Reduction r) {
  check_alike("kl_div", x, y);
  if (log_target) return reduced(mul(exp(y), sub(y, x)), r);
  Tensor positive = gt(y, 0), safe = where(positive, y, number(1, y));
  return reduced(sub(where(positive, mul(y, log(safe)), number(0, y)), mul(y, x)), r);
}
Tensor poisson_nll_loss(const Tensor& x, const Tensor& y, bool log_input, bool full, double eps, Reduction r) {
  check_alike("poisson_nll_loss", x, y);
  Tensor t = as(y, x), loss = log_input ? sub(exp(x), mul(t, x)) : sub(x, mul(t, log(add(x, eps))));
  if (full) {  // Stirling's approximation of log(y!)
    Tensor large = gt(t, 1), safe = where(large, t, number(1, t));
    Tensor rest = add(sub(mul(safe, log(safe)), safe), mul(log(mul(safe, 2 * M_PI)), 0.5));
    loss = add(loss, where(large, rest, number(0, rest)));
  }
  return reduced(loss, r);
}
Tensor gaussian_nll_loss(const Tensor& x, const Tensor& y, const Tensor& var, bool full, double eps, Reduction r) {
  check_alike("gaussian_nll_loss", x, y);
  Tensor v = clamp(var, eps, INFINITY), loss = mul(add(log(v), div(square(sub(x, as(y, x))), v)), 0.5);
  return reduced(full ? add(loss, 0.5 * std::log(2 * M_PI)) : loss, r);
}
Tensor soft_margin_loss(const Tensor& x, const Tensor& y, Reduction r) {
  check_alike("soft_margin_loss", x, y);
  return reduced(softplus(neg(mul(as(y, x), x))), r);
}
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin, Reduction r) {
  check_alike("hinge_embedding_loss", x, y);
  Tensor t = as(y, x), zero = number(0, x);
  return reduced(add(where(ne(t, 1), relu(sub(number(margin, x), x)), zero), where(ne(t, -1), x, zero)), r);
}
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin, Reduction r) {
  check_alike("margin_ranking_loss", a, b);
  return reduced(relu(add(mul(neg(as(y, a)), sub(a, b)), margin)), r);
}
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin, Reduction r) {
  check_alike("cosine_embedding_loss", a, b);
  if (a.ndim() < 1 || a.ndim() > 2)
    throw Error("cosine_embedding_loss: inputs of size " + to_string(a.size()) + "; they must be [n, d] or [d]");
  Tensor cosine =
      div(sum(mul(a, b), {-1}), sqrt(mul(add(sum(square(a), {-1}), 1e-12), add(sum(square(b), {-1}), 1e-12))));
  Tensor t = as(y, a), zero = number(0, cosine);
  if (!(t.size() == cosine.size()))
    throw Error("cosine_embedding_loss: targets of size " + to_string(y.size()) + " do not fit inputs of size " +
                to_string(a.size()));
  return reduced(
      add(where(eq(t, 1), sub(number(1, cosine), cosine), zero), where(eq(t, -1), relu(sub(cosine, margin)), zero)), r);
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, Reduction r) {
  check_alike("triplet_margin_loss", anchor, positive);
  check_alike("triplet_margin_loss", anchor, negative);
  Tensor far = distance(anchor, negative, p, eps);
  if (swap) far = minimum(far, distance(positive, negative, p, eps));
  return reduced(relu(add(sub(distance(anchor, positive, p, eps), far), margin)), r);
}

Tensor multi_margin_loss(const Tensor& x, const Tensor& y, int p, double margin, const Tensor& weight, Reduction r) {
  if (x.ndim() != 2)
    throw Error("multi_margin_loss: an output of size " + to_string(x.size()) + "; it must be [n, classes]");
  if (p != 1 && p != 2) throw Error("multi_margin_loss: p is " + std::to_string(p) + "; it must be 1 or 2");
  int64_t n = x.size(0), c = x.size(1);
  check_classes("multi_margin_loss", y, {n}, c, -1);
  Tensor at = unsqueeze(y, 1), short_by = relu(add(sub(x, gather(x, 1, at)), margin));
  if (p == 2) short_by = square(short_by);
  if (weight) short_by = mul(short_by, embedding(y, reshape(as(weight, x), {c, 1})));
  Tensor others = sub(number(1, x), one_hot(y, c, x.dtype()));
  return reduced(div(sum(mul(short_by, others), {1}), static_cast<double>(c)), r);
}
Tensor multilabel_margin_loss(const Tensor& x, const Tensor& y, Reduction r) {
  if (x.ndim() != 2 || !(x.size() == y.size()) || y.dtype() != DType::i64)
    throw Error("multilabel_margin_loss: an output of size " + to_string(x.size()) + " and targets of size " +
                to_string(y.size()) + "; both must be [n, classes], targets i64");
  int64_t n = x.size(0), c = x.size(1);
  if (x.is_meta()) return reduced(sum(x, {1}), r);
  Tensor t = to_host(contiguous(y)), in = zeros({n, c}, x.dtype()), number_of = empty({n, c}, DType::i64),
         used = zeros({n, c}, x.dtype());
  fill(number_of, 0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < c; ++j) {
      int64_t v = t.data<int64_t>()[i * c + j];
      if (v < 0) break;
      if (v >= c)
        throw Error("multilabel_margin_loss: target " + std::to_string(v) + " of row " + std::to_string(i) +
                    " is no class of 0.." + std::to_string(c - 1));
      number_of.data<int64_t>()[i * c + j] = v;
      for (const Tensor* m : {&in, &used}) {
        int64_t at = i * c + (m == &in ? v : j);
        if (x.dtype() == DType::f64)
          m->data<double>()[at] = 1;
        else
          m->data<float>()[at] = 1;
      }
    }
  for (Tensor* m : {&in, &number_of, &used}) *m = to_device(*m, x.device());
  // [n, target, class]: 1 - (x[target] - x[class]) for classes that are no target.
  Tensor gap = relu(add(sub(unsqueeze(x, 1), unsqueeze(gather(x, 1, number_of), 2)), 1));
  Tensor counted = mul(unsqueeze(used, 2), unsqueeze(sub(number(1, x), in), 1));
  return reduced(div(sum(mul(gap, counted), {1, 2}), static_cast<double>(c)), r);
}
Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& y, const Tensor& weight, Reduction r) {
  check_alike("multilabel_soft_margin_loss", x, y);
  Tensor t = as(y, x), loss = neg(add(mul(t, logsigmoid(x)), mul(sub(number(1, t), t), logsigmoid(neg(x)))));
  return reduced(mean(weight ? mul(loss, weight) : loss, {-1}), r);
}

Tensor sigmoid_focal_loss(const Tensor& x, const Tensor& y, double alpha, double gamma, Reduction r) {
  check_alike("sigmoid_focal_loss", x, y);
  Tensor t = as(y, x), p = sigmoid(x), other = sub(number(1, t), t),
         miss = add(mul(sub(number(1, p), p), t), mul(p, other));  // 1 - p_t
  Tensor loss = mul(binary_cross_entropy_with_logits(x, t, {}, {}, Reduction::none),
                    gamma == 2 ? square(miss) : pow(miss, gamma));
  if (alpha >= 0) loss = mul(loss, add(mul(t, alpha), mul(other, 1 - alpha)));
  return reduced(loss, r);
}
Tensor dice_loss(const Tensor& x, const Tensor& y, double smooth, Reduction r) {
  check_alike("dice_loss", x, y);
  if (x.ndim() < 1) throw Error("dice_loss: its input has no batch axis");
  int64_t n = x.size(0), rest = n > 0 ? x.numel() / n : 0;
  Tensor p = reshape(sigmoid(x), {n, rest}), t = reshape(as(y, x), {n, rest});
  Tensor both = mul(sum(mul(p, t), {1}), 2), all = add(sum(p, {1}), sum(t, {1}));
  Tensor share = div(add(both, smooth), add(all, smooth));
  return reduced(sub(number(1, share), share), r);
}

}  // namespace tenon
