// Sorting, choosing, counting and running results.
#include <fmt/format.h>

#include <cmath>

#include "engine/ops/scan.h"
#include "engine/ops/sort.h"
#include "engine/ops/view.h"
#include "tests/peers/ops_cases.h"

namespace tenon::peers {
namespace {

using In = const std::vector<Tensor>&;
using Out = std::vector<Tensor>;
Out both(const Ordered& o) { return {o.values, o.indices}; }
Out both(const Running& r) { return {r.values, r.indices}; }

Tensor with_nan(Tensor x, int64_t at) {
  x.data<double>()[at % x.numel()] = NAN;
  return x;
}

void sorting(std::vector<OpCase>& to, Draw& d) {
  for (int n = 0; n < 20; ++n) {
    const int axes = static_cast<int>(d.between(1, 3)), axis = static_cast<int>(d.below(axes));
    const Shape s = d.shape(axes, 1, 6);
    const Tensor x = d.distinct(s);
    const int64_t k = d.between(1, s[axis]);
    const bool down = d.coin(), keep = d.coin();
    const char *is_down = down ? "True" : "False", *is_kept = keep ? "True" : "False";
    for (const Tensor& t : {d.ties(s), d.integers(s, -2, 2), with_nan(d.distinct(s), n)})
      to.push_back({fmt::format("torch.sort(x[0], dim={}, descending={}, stable=True)", axis, is_down), {t}, [=](In i) {
                      return both(sort(i[0], axis, down));
                    }});
    to.push_back({fmt::format("torch.argsort(x[0], {}, {})", axis, is_down), {x}, [=](In i) {
                    return Out{argsort(i[0], axis, down)};
                  }});
    to.push_back({fmt::format("torch.topk(x[0], {}, {}, {})", k, axis, is_down), {x}, [=](In i) {
                    return both(topk(i[0], k, axis, down));
                  }});
    to.push_back({fmt::format("torch.kthvalue(x[0], {}, {}, {})", k, axis, is_kept), {x}, [=](In i) {
                    return both(kthvalue(i[0], k, axis, keep));
                  }});
    to.push_back({fmt::format("torch.median(x[0], {}, {})", axis, is_kept), {x}, [=](In i) {
                    return both(median(i[0], axis, keep));
                  }});
    to.push_back({fmt::format("torch.median(x[0], {}).values", axis),
                  {with_nan(d.distinct(s), n)},
                  [=](In i) { return Out{median(i[0], axis).values}; },
                  false});
    to.push_back({"torch.median(x[0])", {x}, [](In i) { return Out{median(i[0])}; }});
    to.push_back({fmt::format("torch.mode(x[0], {}, {}).values", axis, is_kept),
                  {d.ties(s)},
                  [=](In i) { return Out{mode_of(i[0], axis, keep).values}; },
                  false});
    for (const Tensor& t : {x, d.ties(s), with_nan(d.distinct(s), n)})
      to.push_back(
          {fmt::format("(torch.max(x[0], {0}, {1}), torch.min(x[0], {0}, {1}))", axis, is_kept), {t}, [=](In i) {
             Out out = both(max_dim(i[0], axis, keep));
             for (const Tensor& m : both(min_dim(i[0], axis, keep))) out.push_back(m);
             return out;
           }});
    for (const Tensor& t : {d.values(s), d.ties(s), with_nan(d.distinct(s), n)})
      to.push_back({fmt::format("(torch.cummax(x[0], {0}), torch.cummin(x[0], {0}))", axis), {t}, [=](In i) {
                      Out out = both(cummax(i[0], axis));
                      for (const Tensor& m : both(cummin(i[0], axis))) out.push_back(m);
                      return out;
                    }});
  }
}

void running(std::vector<OpCase>& to, Draw& d) {
  for (int n = 0; n < 15; ++n) {
    const int axes = static_cast<int>(d.between(1, 3)), axis = static_cast<int>(d.below(axes));
    const Shape s = d.shape(axes, 1, 6);
    for (const Tensor& x : {d.values(s), d.ties(s)})  // ties hold zeros
      to.push_back({fmt::format("(x[0].cumsum({0}), x[0].cumprod({0}), x[0].logcumsumexp({0}))", axis), {x}, [=](In i) {
                      return Out{cumsum(i[0], axis), cumprod(i[0], axis), logcumsumexp(i[0], axis)};
                    }});
    to.push_back({fmt::format("(x[0].cumsum({0}), x[0].cumprod({0}))", axis), {d.integers(s, -3, 3)}, [=](In i) {
                    return Out{cumsum(i[0], axis), cumprod(i[0], axis)};
                  }});
    to.push_back({fmt::format("(torch.diff(x[0], 1, {0}), torch.diff(x[0], 2, {0}))", axis), {d.values(s)}, [=](In i) {
                    return Out{diff(i[0], 1, axis), diff(i[0], 2, axis)};
                  }});
  }
  Tensor far = d.values({2, 6});
  for (int64_t k = 0; k < 12; ++k) far.data<double>()[k] *= 400;  // exp() of these overflows
  to.push_back({"x[0].logcumsumexp(1)", {far}, [](In i) { return Out{logcumsumexp(i[0], 1)}; }});
}

void counting(std::vector<OpCase>& to, Draw& d) {
  for (int n = 0; n < 15; ++n) {
    const Tensor edges = sort(d.ties({d.between(1, 8)})).values, rows = sort(d.ties({2, 5}), 1).values;
    for (bool right : {false, true}) {
      const std::string word = right ? "True" : "False";
      to.push_back({"torch.searchsorted(x[0], x[1], right=" + word + ")", {edges, d.ties({3, 4})}, [right](In i) {
                      return Out{searchsorted(i[0], i[1], right)};
                    }});
      to.push_back({"torch.searchsorted(x[0], x[1], right=" + word + ")", {rows, d.ties({2, 4})}, [right](In i) {
                      return Out{searchsorted(i[0], i[1], right)};
                    }});
      to.push_back({"torch.bucketize(x[1], x[0], right=" + word + ")", {edges, d.values({3, 4})}, [right](In i) {
                      return Out{bucketize(i[1], i[0], right)};
                    }});
    }
    const Tensor counts = d.integers({d.between(0, 9)}, 0, 6);
    to.push_back({"(x[0].bincount(), x[0].bincount(x[1], 9))",
                  {counts, d.values({counts.numel()})},
                  [](In i) {
                    return Out{bincount(i[0]), bincount(i[0], i[1], 9)};
                  },
                  false});
    // With a range of its own: in x's range PyTorch 1.13 loses the largest element to rounding, now and then.
    to.push_back({"(torch.histc(x[0], 7, -3, 3), torch.histc(x[0], 5, -1, 1))",
                  {d.values({4, 5})},
                  [](In i) {
                    return Out{histc(i[0], 7, -3, 3), histc(i[0], 5, -1, 1)};
                  },
                  false});
    for (const Tensor& x : {d.ties({3, 4}), d.integers({3, 4}, 0, 2)}) {
      to.push_back({"torch.unique(x[0], return_inverse=True, return_counts=True)",
                    {x},
                    [](In i) {
                      const Unique u = unique(i[0]);
                      return Out{u.values, u.inverse, u.counts};
                    },
                    false});
      to.push_back({"torch.unique(x[0], return_inverse=True, return_counts=True, dim=1)",
                    {slice(x, 0, 0, 1)},
                    [](In i) {
                      const Unique u = unique(i[0], 1);
                      return Out{u.values, u.inverse, u.counts};
                    },
                    false});
      to.push_back({"torch.unique_consecutive(x[0], return_inverse=True, return_counts=True)",
                    {x},
                    [](In i) {
                      const Unique u = unique_consecutive(i[0]);
                      return Out{u.values, u.inverse, u.counts};
                    },
                    false});
    }
  }
}

}  // namespace

void order_cases(std::vector<OpCase>& to, Draw d) {
  sorting(to, d);
  running(to, d);
  counting(to, d);
}

}  // namespace tenon::peers
