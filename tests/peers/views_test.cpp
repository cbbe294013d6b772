#include <gtest/gtest.h>

#include "core/error.h"
#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/as_strided.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

using nlohmann::json;

/// Numbers from a fixed stream.
struct ViewDraw {
  Philox random{2026, 7};
  uint64_t drawn = 0;
  int64_t below(int64_t n) { return static_cast<int64_t>(random.below(drawn++, static_cast<uint64_t>(n))); }
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }
};

Dims dims(const json& a) { return Dims(a.get<std::vector<int64_t>>()); }

Tensor step(const Tensor& x, const std::string& op, const json& args) {
  auto a = [&](size_t i) { return args[i].get<int64_t>(); };
  auto i = [&](size_t k) { return args[k].get<int>(); };
  if (op == "permute") return permute(x, dims(args));
  if (op == "transpose") return transpose(x, i(0), i(1));
  if (op == "expand") return expand(x, dims(args));
  if (op == "narrow") return narrow(x, i(0), a(1), a(2));
  if (op == "slice") return slice(x, i(0), a(1), a(2), a(3));
  if (op == "select") return select(x, i(0), a(1));
  if (op == "squeeze") return squeeze(x, i(0));
  if (op == "unsqueeze") return unsqueeze(x, i(0));
  if (op == "view") return view(x, dims(args));
  if (op == "reshape") return reshape(x, dims(args));
  if (op == "diagonal") return diagonal(x, a(0), i(1), i(2));
  if (op == "unfold") return unfold(x, i(0), a(1), a(2));
  if (op == "movedim") return movedim(x, {a(0)}, {a(1)});
  if (op == "flatten") return flatten(x, i(0), i(1));
  std::vector<int64_t> all = args.get<std::vector<int64_t>>();
  size_t n = all.size() / 2;
  return as_strided(x, Dims(std::vector<int64_t>(all.begin(), all.begin() + static_cast<long>(n))),
                    Dims(std::vector<int64_t>(all.begin() + static_cast<long>(n), all.end() - 1)), all.back());
}

/// An op with arguments that mostly fit x, some just do not.
json random_op(ViewDraw& d, const Tensor& x, bool always_fits) {
  const int n = x.ndim();
  auto axis = [&] { return n == 0 ? int64_t{0} : d.between(-n, n - 1); };
  auto size_of = [&](int64_t a) { return n == 0 ? int64_t{1} : x.size(static_cast<int>(a)); };
  for (;;) {
    switch (d.below(15)) {
      case 0: {
        std::vector<int64_t> order(static_cast<size_t>(n));
        for (int k = 0; k < n; ++k) order[static_cast<size_t>(k)] = k;
        for (int k = n - 1; k > 0; --k)
          std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(d.below(k + 1))]);
        return {"permute", order};
      }
      case 1:
        return {"transpose", {axis(), axis()}};
      case 2: {
        if (n > 5) break;
        std::vector<int64_t> to;
        if (d.below(2)) to.push_back(d.between(1, 3));
        for (int64_t s : x.size()) to.push_back(s == 1 && d.below(2) ? d.between(1, 4) : d.below(4) ? s : -1);
        if (to.size() > static_cast<size_t>(n) && to[0] == -1) break;
        return {"expand", to};
      }
      case 3: {
        if (n == 0) break;
        int64_t a = axis(), start = d.between(0, size_of(a)),
                length = d.between(0, size_of(a) - start + (always_fits || d.below(8) ? 0 : 1));
        return {"narrow", {a, start, length}};
      }
      case 4: {
        if (n == 0) break;
        int64_t a = d.below(n);
        return {"slice",
                {a, d.between(-size_of(a) - 1, size_of(a) + 1), d.between(-size_of(a) - 1, size_of(a) + 2),
                 d.between(1, 3)}};
      }
      case 5: {
        int64_t a = axis();
        if (n == 0 || size_of(a) == 0) break;
        return {"select", {a, d.between(-size_of(a), size_of(a) - (always_fits || d.below(8) ? 1 : 0))}};
      }
      case 6:
        return {"squeeze", json::array({axis()})};
      case 7:
        if (n > 6) break;
        return {"unsqueeze", json::array({d.between(-n - 1, n)})};
      case 8:
      case 9: {
        // A factorisation of the count, perhaps with one -1.
        int64_t rest = x.numel();
        std::vector<int64_t> to;
        while (rest > 1 && to.size() < 4) {
          int64_t f = 2;
          while (rest % f) ++f;
          if (d.below(3) == 0 && rest / f > 1 && rest % (f * 2) == 0) f *= 2;
          to.push_back(f);
          rest /= f;
        }
        if (x.numel() == 0)
          to.push_back(0);
        else if (rest > 1 || d.below(3) == 0)
          to.push_back(rest);
        if (!to.empty() && x.numel() && d.below(3) == 0)
          to[static_cast<size_t>(d.below(static_cast<int64_t>(to.size())))] = -1;
        return {d.below(2) && !always_fits ? "view" : "reshape", to};
      }
      case 10: {
        if (n < 2) break;
        int64_t a = d.below(n), b = d.below(n);
        if (a == b) break;
        return {"diagonal", {d.between(-2, 2), a, b}};
      }
      case 11: {
        if (n > 6) break;
        int64_t a = axis();
        if (n && size_of(a) == 0) break;
        return {"unfold", {a, d.between(1, size_of(a) + (always_fits || d.below(8) ? 0 : 1)), d.between(1, 3)}};
      }
      case 12:
        return {"movedim", {axis(), axis()}};
      case 13: {
        if (n == 0) break;
        int64_t a = d.below(n), b = d.between(a, n - 1);
        return {"flatten", {a, b}};
      }
      default: {
        if (x.numel() == 0) break;
        int64_t room = static_cast<int64_t>(x.storage()->bytes / itemsize(x.dtype()));
        std::vector<int64_t> all{d.between(1, 3), d.between(1, 3), d.between(0, 3), d.between(0, 3)};
        int64_t reach = (all[0] - 1) * all[2] + (all[1] - 1) * all[3];
        if (reach >= room) break;
        if (always_fits && (all[2] == 0 || all[3] == 0)) break;
        all.push_back(d.between(0, room - 1 - reach));
        return {"as_strided", all};
      }
    }
  }
}

Shape random_size(ViewDraw& d) {
  Shape s;
  for (int64_t n = d.between(0, 4); n > 0; --n) s.push_back(d.below(12) == 0 ? 0 : d.between(1, 5));
  return s;
}
std::vector<int64_t> listed(const Dims& d) { return {d.begin(), d.end()}; }

TEST(Views, TenThousandChainsAreTheSameAsPyTorchs) {
  TENON_NEEDS_TORCH();
  ViewDraw d;
  json chains = json::array();
  std::vector<std::vector<int64_t>> ours;
  int refused = 0;
  for (int c = 0; c < 10000; ++c) {
    Shape size = random_size(d);
    Tensor x = view(arange(size.product()), size);
    json ops = json::array();
    bool fits = true;
    for (int64_t k = d.between(1, 6); k > 0 && fits; --k) {
      json op = random_op(d, x, false);
      ops.push_back(op);
      try {
        x = step(x, op[0], op[1]);
      } catch (const Error&) {
        fits = false;
      }
    }
    chains.push_back({{"size", listed(size)}, {"ops", ops}});
    std::vector<int64_t> row{-1};
    if (fits) {
      row = {x.ndim()};
      for (int64_t s : x.size()) row.push_back(s);
      for (int64_t s : x.stride()) row.push_back(s);
      row.push_back(x.offset());
      Tensor flat = clone(x, Order::contiguous);
      for (int64_t i = 0; i < flat.numel(); ++i) row.push_back(flat.data<int64_t>()[i]);
    }
    refused += !fits;
    ours.push_back(row);
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 5000);
  auto theirs = run_torch("views.py", {{"chains", chains}, {"programs", {{{"size", {1}}, {"lines", json::array()}}}}});
  const Tensor &values = find(theirs, "chains"), &lengths = find(theirs, "lengths");
  const int64_t* at = values.data<int64_t>();
  int wrong = 0;
  for (size_t c = 0; c < ours.size(); ++c) {
    std::vector<int64_t> row(at, at + lengths.data<int64_t>()[c]);
    at += row.size();
    // Strides of axes that are never stepped along are PyTorch's own business where the tensor is empty.
    if (ours[c] != row && row[0] >= 0 && ours[c][0] == row[0]) {
      auto n = static_cast<size_t>(row[0]);
      bool none = std::find(row.begin() + 1, row.begin() + 1 + static_cast<long>(n), 0) !=
                  row.begin() + 1 + static_cast<long>(n);
      if (none) {
        ours[c].resize(1 + n);
        row.resize(1 + n);
      }
    }
    if (ours[c] != row && ++wrong > 10) FAIL() << "and more";
    EXPECT_EQ(ours[c], row) << "chain " << c << ": " << chains[c].dump();
  }
}

TEST(Views, GradientsThroughWritesIntoViewsAreThoseOfPyTorch) {
  TENON_NEEDS_TORCH();
  ViewDraw d;
  d.random.stream = 8;
  json programs = json::array();
  std::vector<std::vector<double>> ours;
  while (ours.size() < 400) {
    Shape size;
    for (int64_t n = d.between(1, 3); n > 0; --n) size.push_back(d.between(1, 4));
    Tensor x = add(mul(view(cast(arange(size.product()), DType::f64), size), 0.01), 0.5);
    set_requires_grad(x);
    std::vector<Tensor> tensors{mul(x, 1.0)};
    json lines = json::array();
    for (int64_t k = d.between(2, 8); k > 0; --k) {
      int64_t at = d.below(static_cast<int64_t>(tensors.size()));
      Tensor& t = tensors[static_cast<size_t>(at)];
      bool writable = !t.layout().may_overlap();
      switch (writable ? d.below(6) : 0) {
        case 0:
        case 1: {
          json op = random_op(d, t, true);
          if (op[0] == "slice" || op[0] == "expand") continue;  // the one may refuse, the other cannot be written to
          try {
            Tensor v = step(t, op[0], op[1]);
            if (v.storage() != t.storage())
              continue;  // a copy has a life of its own, but PyTorch may have found a view
            lines.push_back({"take", at, op[0], op[1]});
            tensors.push_back(v);
          } catch (const Error&) {
          }
          break;
        }
        case 2:
          lines.push_back({"scale", at, 1.5});
          mul_(t, 1.5);
          break;
        case 3:
          lines.push_back({"shift", at, -0.25});
          add_(t, -0.25);
          break;
        case 4: {
          int64_t from = d.below(static_cast<int64_t>(tensors.size()));
          lines.push_back({"put", at, from});
          overwrite_(t, mul(sum(tensors[static_cast<size_t>(from)]), 0.1));
          break;
        }
        default:
          lines.push_back({"sine", at});
          sub_(t, sin(t));
      }
    }
    Tensor total;
    for (size_t i = 0; i < tensors.size(); ++i) {
      Tensor part = sum(mul(tensors[i], static_cast<double>(i + 1)));
      total = total ? add(total, part) : part;
    }
    std::vector<double> row{item(total)};
    try {
      backward(total);
    } catch (const Error& e) {
      continue;  // sine saved what a later line overwrote: PyTorch refuses the same
    }
    Tensor g = contiguous(grad_of(x));
    for (int64_t i = 0; i < g.numel(); ++i) row.push_back(g.data<double>()[i]);
    programs.push_back({{"size", listed(size)}, {"lines", lines}});
    ours.push_back(row);
  }
  auto theirs = run_torch("views.py", {{"chains", json::array()}, {"programs", programs}});
  const double* at = find(theirs, "programs").data<double>();
  for (size_t p = 0; p < ours.size(); ++p)
    for (double v : ours[p]) {
      double t = *at++;
      ASSERT_NEAR(v, t, 1e-9 * (1 + std::abs(t))) << "program " << p << ": " << programs[p].dump();
    }
}

}  // namespace
}  // namespace tenon::peers
