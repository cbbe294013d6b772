#include "engine/ops/products.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <map>

#include "core/error.h"
#include "engine/ops/join.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

// A label is a letter; the axes of an ellipsis are kDots + their number counted from the right, so that they line up
// when they broadcast.
constexpr int kDots = 256;
using Labels = std::vector<int>;

bool has(const Labels& l, int label) { return std::find(l.begin(), l.end(), label) != l.end(); }

[[noreturn]] void bad(const std::string& equation, const std::string& why) {
  throw Error(fmt::format("einsum: \"{}\": {}", equation, why));
}

/// One term's labels; `axes` < 0: an output, whose ellipsis has `dots` axes.
Labels parse_term(const std::string& equation, const std::string& term, int axes, int dots) {
  Labels out;
  int letters = 0, at = -1;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (term.compare(i, 3, "...") != 0 || at >= 0) bad(equation, "dots come in threes, once in a term");
      at = static_cast<int>(out.size());
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      out.push_back(c);
      ++letters;
    } else {
      bad(equation, fmt::format("'{}' is no label", c));
    }
  }
  if (axes >= 0) {
    dots = axes - letters;
    if (dots < 0 || (at < 0 && dots > 0))
      bad(equation, fmt::format("\"{}\" has {} labels for {} axes", term, letters, axes));
  }
  if (at >= 0) {
    Labels run;
    for (int k = dots; k > 0; --k) run.push_back(kDots + k);
    out.insert(out.begin() + at, run.begin(), run.end());
  }
  return out;
}

struct Term {
  Tensor t;
  Labels labels;
};

/// Labels that occur twice in a term: their diagonal.
void take_diagonals(Term& x) {
  for (size_t i = 0; i < x.labels.size(); ++i)
    for (size_t j = i + 1; j < x.labels.size(); ++j)
      if (x.labels[i] == x.labels[j]) {
        const int label = x.labels[i];
        x.t = diagonal(x.t, 0, static_cast<int>(i), static_cast<int>(j));
        x.labels.erase(x.labels.begin() + static_cast<int64_t>(j));
        x.labels.erase(x.labels.begin() + static_cast<int64_t>(i));
        x.labels.push_back(label);
        return take_diagonals(x);
      }
}

/// Sums the axes whose label nobody needs.
void sum_labels(Term& x, const Labels& needed) {
  Dims axes;
  Labels left;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (has(needed, x.labels[i]))
      left.push_back(x.labels[i]);
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.n == 0) return;
  const DType t = x.t.dtype();
  x.t = cast(sum(x.t, axes), t);
  x.labels = left;
}

Tensor ordered(const Term& x, const Labels& to) {
  Dims axes;
  for (int label : to) axes.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
  return permute(x.t, axes);
}

int64_t product(const Labels& l, const std::map<int, int64_t>& size) {
  int64_t p = 1;
  for (int label : l) p *= size.at(label);
  return p;
}

Labels joined(std::initializer_list<const Labels*> lists) {
  Labels out;
  for (const Labels* l : lists) out.insert(out.end(), l->begin(), l->end());
  return out;
}

/// a and b contracted over what neither the output nor later terms need, by one batched product.
Term contract(Term a, Term b, const Labels& needed, const std::map<int, int64_t>& size) {
  Labels both_a = needed, both_b = needed;
  both_a.insert(both_a.end(), b.labels.begin(), b.labels.end());
  both_b.insert(both_b.end(), a.labels.begin(), a.labels.end());
  sum_labels(a, both_a);
  sum_labels(b, both_b);
  Labels batch, summed, only_a, only_b;
  for (int label : a.labels) (has(b.labels, label) ? (has(needed, label) ? batch : summed) : only_a).push_back(label);
  for (int label : b.labels)
    if (!has(a.labels, label)) only_b.push_back(label);
  // An axis of size 1 stands for the other's size.
  auto full = [&](const Term& x, const Labels& order) {
    Tensor t = ordered(x, order);
    Shape s;
    for (int label : order) s.push_back(size.at(label));
    return t.size() == s ? t : expand(t, s);
  };
  const int64_t nb = product(batch, size), ns = product(summed, size), na = product(only_a, size),
                nc = product(only_b, size);
  Tensor left = reshape(full(a, joined({&batch, &only_a, &summed})), {nb, na, ns}),
         right = reshape(full(b, joined({&batch, &summed, &only_b})), {nb, ns, nc});
  Tensor y;
  if (is_floating(left.dtype()))
    y = matmul(left, right);
  else
    y = cast(sum(mul(unsqueeze(left, 3), unsqueeze(right, 1)), {2}), left.dtype());
  Term out{y, joined({&batch, &only_a, &only_b})};
  Shape s;
  for (int label : out.labels) s.push_back(size.at(label));
  out.t = reshape(y, s);
  return out;
}

}  // namespace

Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands) {
  if (operands.empty()) bad(equation, "there are no operands");
  const size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != operands.size())
    bad(equation, fmt::format("{} terms for {} operands", terms.size(), operands.size()));
  std::vector<Term> parts;
  std::map<int, int64_t> size;
  std::map<int, int> seen;
  int dots = 0;
  DType type = operands[0].dtype();
  for (const Tensor& t : operands) type = promote(type, t.dtype());
  for (size_t k = 0; k < terms.size(); ++k) {
    Term x{cast(operands[k], type), parse_term(equation, terms[k], operands[k].ndim(), 0)};
    for (size_t i = 0; i < x.labels.size(); ++i) {
      const int label = x.labels[i];
      const int64_t n = x.t.size(static_cast<int>(i));
      auto [it, fresh] = size.emplace(label, n);
      const bool twice = std::count(x.labels.begin(), x.labels.end(), label) > 1;
      if (!fresh && it->second != n && (twice || (it->second != 1 && n != 1)))
        bad(equation, fmt::format("{} has sizes {} and {}",
                                  label >= kDots ? "an axis of ..." : fmt::format("label {}", static_cast<char>(label)),
                                  it->second, n));
      if (it->second == 1) it->second = n;
      ++seen[label];
      if (label >= kDots) dots = std::max(dots, label - kDots);
    }
    take_diagonals(x);
    parts.push_back(std::move(x));
  }
  Labels out;
  if (arrow != std::string::npos) {
    out = parse_term(equation, equation.substr(arrow + 2), -1, dots);
    for (size_t i = 0; i < out.size(); ++i) {
      if (!size.count(out[i]))
        bad(equation, fmt::format("output label {} is in no operand", static_cast<char>(out[i])));
      if (std::count(out.begin(), out.end(), out[i]) > 1)
        bad(equation, fmt::format("output label {} occurs twice", static_cast<char>(out[i])));
    }
  } else {
    for (int k = dots; k > 0; --k) out.push_back(kDots + k);
    for (const auto& [label, count] : seen)
      if (label < kDots && count == 1) out.push_back(label);
  }
  Term total = parts[0];
  for (size_t k = 1; k < parts.size(); ++k) {
    Labels needed = out;
    for (size_t j = k + 1; j < parts.size(); ++j)
      needed.insert(needed.end(), parts[j].labels.begin(), parts[j].labels.end());
    total = contract(total, parts[k], needed, size);
  }
  sum_labels(total, out);
  return ordered(total, out);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& axes_a, const Dims& axes_b) {
  if (axes_a.n != axes_b.n) throw Error(fmt::format("tensordot: {} axes against {}", axes_a.n, axes_b.n));
  Dims order_a, order_b, used_a, used_b;
  Shape result;
  int64_t summed = 1, rows = 1, cols = 1;
  for (int i = 0; i < axes_a.n; ++i) {
    used_a.push_back(wrap_axis(axes_a[i], a.ndim()));
    used_b.push_back(wrap_axis(axes_b[i], b.ndim()));
    if (a.size(static_cast<int>(used_a[i])) != b.size(static_cast<int>(used_b[i])))
      throw Error(fmt::format("tensordot: axis {} of {} and axis {} of {} differ", used_a[i], to_string(a.size()),
                              used_b[i], to_string(b.size())));
    summed *= a.size(static_cast<int>(used_a[i]));
    order_b.push_back(used_b[i]);
  }
  auto used = [](const Dims& d, int64_t axis) { return std::find(d.begin(), d.end(), axis) != d.end(); };
  for (int i = 0; i < a.ndim(); ++i)
    if (!used(used_a, i)) {
      order_a.push_back(i);
      result.push_back(a.size(i));
      rows *= a.size(i);
    }
  for (int64_t i : used_a) order_a.push_back(i);
  for (int i = 0; i < b.ndim(); ++i)
    if (!used(used_b, i)) {
      order_b.push_back(i);
      result.push_back(b.size(i));
      cols *= b.size(i);
    }
  if (order_a.n != a.ndim() || order_b.n != b.ndim()) throw Error("tensordot: an axis is given twice");
  return reshape(matmul(reshape(permute(a, order_a), {rows, summed}), reshape(permute(b, order_b), {summed, cols})),
                 result);
}
Tensor tensordot(const Tensor& a, const Tensor& b, int count) {
  if (count < 0 || count > a.ndim() || count > b.ndim())
    throw Error(fmt::format("tensordot: {} axes of sizes {} and {}", count, to_string(a.size()), to_string(b.size())));
  Dims last, first;
  for (int i = 0; i < count; ++i) {
    last.push_back(a.ndim() - count + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  if (a.ndim() != 3 || b.ndim() != 3)
    throw Error(fmt::format("bmm: sizes {} and {}; both have three axes", to_string(a.size()), to_string(b.size())));
  return matmul(a, b);
}

static Tensor scaled_sum(const Tensor& x, const Tensor& product, double beta, double alpha) {
  Tensor y = alpha == 1 ? product : mul(product, alpha);
  return beta == 0 ? y : add(beta == 1 ? x : mul(x, beta), y);  // beta 0: what x holds, NaN too, is not read
}
Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  return scaled_sum(x, bmm(a, b), beta, alpha);
}
Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  if (a.ndim() != 2 || b.ndim() != 2)
    throw Error(fmt::format("addmm: sizes {} and {}; both are matrices", to_string(a.size()), to_string(b.size())));
  return scaled_sum(x, matmul(a, b), beta, alpha);
}
Tensor mv(const Tensor& a, const Tensor& x) {
  if (a.ndim() != 2 || x.ndim() != 1)
    throw Error(fmt::format("mv: sizes {} and {}; a matrix and a vector", to_string(a.size()), to_string(x.size())));
  return squeeze(matmul(a, unsqueeze(x, 1)), 1);
}
Tensor dot(const Tensor& a, const Tensor& b) {
  if (a.ndim() != 1 || !(a.size() == b.size()))
    throw Error(fmt::format("dot: sizes {} and {}; two vectors of one size", to_string(a.size()), to_string(b.size())));
  return reshape(matmul(unsqueeze(a, 0), unsqueeze(b, 1)), {});
}
Tensor outer(const Tensor& a, const Tensor& b) {
  if (a.ndim() != 1 || b.ndim() != 1)
    throw Error(fmt::format("outer: sizes {} and {}; both are vectors", to_string(a.size()), to_string(b.size())));
  return mul(unsqueeze(a, 1), unsqueeze(b, 0));
}

Tensor cross(const Tensor& a, const Tensor& b, int axis) {
  const Shape both = broadcast_shape(a.size(), b.size());
  const int k = wrap_axis(axis, both.n);
  if (both[k] != 3) throw Error(fmt::format("cross: axis {} of {} has not size 3", k, to_string(both)));
  const Tensor x = expand(a, both), y = expand(b, both);
  return sub(mul(roll(x, -1, k), roll(y, -2, k)), mul(roll(x, -2, k), roll(y, -1, k)));
}

Tensor kron(const Tensor& a, const Tensor& b) {
  const int n = std::max(a.ndim(), b.ndim());
  if (2 * n > kMaxDims) throw Error(fmt::format("kron: {} axes; at most {} are supported", n, kMaxDims / 2));
  Shape sa = a.size(), sb = b.size(), wa, wb, out;
  while (sa.n < n) sa.insert(0, 1);
  while (sb.n < n) sb.insert(0, 1);
  for (int i = 0; i < n; ++i) {
    wa.push_back(sa[i]);
    wa.push_back(1);
    wb.push_back(1);
    wb.push_back(sb[i]);
    out.push_back(sa[i] * sb[i]);
  }
  return reshape(mul(reshape(a, wa), reshape(b, wb)), out);
}

}  // namespace tenon
