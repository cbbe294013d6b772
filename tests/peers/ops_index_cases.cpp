// Indexing, gathering, scattering and joining.
#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/gather.h"
#include "engine/ops/index.h"
#include "engine/ops/join.h"
#include "engine/ops/view.h"
#include "tests/peers/ops_cases.h"

namespace tenon::peers {
namespace {

using In = const std::vector<Tensor>&;
using Out = std::vector<Tensor>;

/// x[..] with tensors at some axes, ":" at the others: the rules of where the result's axes go.
void advanced(std::vector<OpCase>& to, Draw& d) {
  for (int n = 0; n < 60; ++n) {
    const int axes = static_cast<int>(d.between(1, 4));
    OpCase c{"", {d.values(d.shape(axes))}, {}};
    const Shape common = d.shape(static_cast<int>(d.below(3)), 1, 3);
    std::string index;
    std::vector<int> which;  // input of each axis, 0: all of it
    for (int i = 0; i < axes; ++i) {
      const bool indexed = d.coin() || (i == axes - 1 && c.inputs.size() == 1);
      which.push_back(indexed ? static_cast<int>(c.inputs.size()) : 0);
      index += fmt::format("{}{}", i ? ", " : "", indexed ? fmt::format("x[{}]", c.inputs.size()) : ":");
      if (!indexed) continue;
      Shape size = common;
      for (int k = 0; k < size.n; ++k)
        if (d.below(3) == 0) size[k] = 1;  // broadcasts
      const int64_t m = c.inputs[0].size(i);
      c.inputs.push_back(d.integers(size, -m, m - 1));
    }
    auto indices = [which](In x) {
      Out list;
      for (int k : which) list.push_back(k ? x[static_cast<size_t>(k)] : Tensor());
      return list;
    };
    c.torch = "x[0][" + index + "]";
    c.ours = [indices](In x) { return Out{tenon::index(x[0], indices(x))}; };
    to.push_back(c);
    // Writing: to different places only, for of two writes to one PyTorch promises nothing.
    OpCase put = c;
    put.inputs.push_back(d.values({}));
    put.torch = fmt::format(
        "assigned(x[0], ({},), x[{}])",
        [&] {
          std::string s = index;
          for (size_t at; (at = s.find(':')) != std::string::npos;) s.replace(at, 1, "slice(None)");
          return s;
        }(),
        put.inputs.size() - 1);
    put.ours = [indices](In x) { return Out{index_put(x[0], indices(x), x.back())}; };
    put.gradient = false;
    to.push_back(put);
  }
  for (int n = 0; n < 12; ++n) {
    const Shape s = d.shape(3, 2, 4);
    Shape lead = s;
    lead.erase(2);
    to.push_back({"x[0][x[1]]", {d.values(s), d.mask(lead)}, [](In x) { return Out{tenon::index(x[0], {x[1]})}; }});
    to.push_back({"x[0][:, x[1]]", {d.values(s), d.mask({s[1]})}, [](In x) {
                    return Out{tenon::index(x[0], {Tensor(), x[1]})};
                  }});
    const Tensor i = d.integers({5}, 0, s[0] - 1), j = d.integers({5}, 0, s[1] - 1);
    to.push_back(
        {"x[0].index_put((x[1], x[2]), x[3], accumulate=True)", {d.values(s), i, j, d.values({5, s[2]})}, [](In x) {
           return Out{index_put(x[0], {x[1], x[2]}, x[3], true)};
         }});
  }
}

void axis_index(std::vector<OpCase>& to, Draw& d) {
  for (int n = 0; n < 20; ++n) {
    const int axes = static_cast<int>(d.between(1, 3)), axis = static_cast<int>(d.below(axes));
    const Shape s = d.shape(axes, 2, 5);
    const Tensor x = d.values(s), at = d.integers({d.between(1, 5)}, 0, s[axis] - 1);
    Shape part = s;
    part[axis] = at.numel();
    const Tensor source = d.values(part);
    const std::string dim = std::to_string(axis);
    to.push_back({"x[0].index_select(" + dim + ", x[1])", {x, at}, [axis](In i) {
                    return Out{index_select(i[0], axis, i[1])};
                  }});
    to.push_back({"x[0].index_add(" + dim + ", x[1], x[2], alpha=1.5)", {x, at, source}, [axis](In i) {
                    return Out{index_add(i[0], axis, i[1], i[2], 1.5)};
                  }});
    to.push_back({"x[0].index_fill(" + dim + ", x[1], 2.5)", {x, at}, [axis](In i) {
                    return Out{index_fill(i[0], axis, i[1], 2.5)};
                  }});
    const Tensor once = slice(d.integers({1}, 0, s[axis] - 1), 0, 0, 1);
    Shape single = s;
    single[axis] = 1;
    to.push_back({"x[0].index_copy(" + dim + ", x[1], x[2])", {x, once, d.values(single)}, [axis](In i) {
                    return Out{index_copy(i[0], axis, i[1], i[2])};
                  }});
    // gather and scatter: the index may be smaller than x and src in the other axes.
    Shape size = s, wide;
    for (int k = 0; k < axes; ++k) size[k] = k == axis ? d.between(1, 6) : d.between(1, s[k]);
    wide = size;
    for (int k = 0; k < axes; ++k) wide[k] += d.below(2);
    const Tensor index = d.integers(size, 0, s[axis] - 1), src = d.values(wide);
    to.push_back(
        {"x[0].gather(" + dim + ", x[1])", {x, index}, [axis](In i) { return Out{gather(i[0], axis, i[1])}; }});
    // A larger source: PyTorch's own gradient does not fit it.
    to.push_back({"x[0].scatter_add(" + dim + ", x[1], x[2])",
                  {x, index, src},
                  [axis](In i) { return Out{scatter_add(i[0], axis, i[1], i[2])}; },
                  false});
    to.push_back({"x[0].scatter_add(" + dim + ", x[1], x[2])", {x, index, d.values(size)}, [axis](In i) {
                    return Out{scatter_add(i[0], axis, i[1], i[2])};
                  }});
    to.push_back({"x[0].scatter(" + dim + ", x[1], 0.5)", {x, index}, [axis](In i) {
                    return Out{scatter(i[0], axis, i[1], 0.5)};
                  }});
    Shape one = size;
    one[axis] = 1;
    to.push_back({"x[0].scatter(" + dim + ", x[1], x[2])",
                  {x, d.integers(one, 0, s[axis] - 1), d.values(one)},
                  [axis](In i) { return Out{scatter(i[0], axis, i[1], i[2])}; }});
    static constexpr const char* names[] = {"sum", "prod", "mean", "amax", "amin"};
    for (int how = 0; how < 5; ++how)
      for (bool self : {true, false})
        // Which elements a mean or an extreme without x's own shares its gradient with is PyTorch's to say only for
        // whole sources.
        to.push_back({fmt::format("x[0].scatter_reduce({}, x[1], x[2], '{}', include_self={})", axis, names[how],
                                  self ? "True" : "False"),
                      {x, index, d.values(size)},
                      [axis, how, self](In i) {
                        return Out{scatter_reduce(i[0], axis, i[1], i[2], static_cast<Reduce>(how), self)};
                      }});
  }
  Tensor zeros = d.ties({6});
  to.push_back({"x[0].scatter_reduce(0, x[1], x[2], 'prod')", {d.values({3}), d.integers({6}, 0, 2), zeros}, [](In i) {
                  return Out{scatter_reduce(i[0], 0, i[1], i[2], Reduce::prod)};
                }});
}

void masks_and_joins(std::vector<OpCase>& to, Draw& d) {
  for (int n = 0; n < 10; ++n) {
    const Shape s = d.shape(3, 2, 4);
    const Tensor x = d.values(s), mask = d.mask(s), row = d.mask({s[2]});
    to.push_back({"x[0].masked_fill(x[1], -1.5)", {x, row}, [](In i) { return Out{masked_fill(i[0], i[1], -1.5)}; }});
    to.push_back({"x[0].masked_select(x[1])", {x, mask}, [](In i) { return Out{masked_select(i[0], i[1])}; }});
    to.push_back({"x[0].masked_scatter(x[1], x[2])",
                  {x, mask, d.values(s)},
                  [](In i) { return Out{masked_scatter(i[0], i[1], i[2])}; },
                  false});
    to.push_back({"x[0].nonzero()", {mask}, [](In i) { return Out{nonzero(i[0])}; }});
    to.push_back({"x[0].take(x[1])", {x, d.integers({2, 3}, -s.product(), s.product() - 1)}, [](In i) {
                    return Out{take(i[0], i[1])};
                  }});
    to.push_back({"torch.take_along_dim(x[0], x[1], 1)", {x, d.integers({1, 2, s[2]}, 0, s[1] - 1)}, [](In i) {
                    return Out{take_along_dim(i[0], i[1], 1)};
                  }});
    const int64_t k = d.between(-3, 3);
    to.push_back({fmt::format("(x[0].tril({}), x[0].triu({}))", k, k), {x}, [k](In i) {
                    return Out{tril(i[0], k), triu(i[0], k)};
                  }});
    to.push_back({fmt::format("x[0].roll({}, 1)", k), {x}, [k](In i) { return Out{roll(i[0], k, 1)}; }});
    to.push_back({"(torch.cat([x[0], x[1], x[0]], 1), torch.stack([x[0], x[2]], -1))",
                  {x, d.values({s[0], 2, s[2]}), d.values(s)},
                  [](In i) {
                    return Out{cat({i[0], i[1], i[0]}, 1), stack({i[0], i[2]}, -1)};
                  }});
    to.push_back({"(x[0].repeat(2, 1, 3, 2), x[0].tile(2, 3))", {x}, [](In i) {
                    return Out{repeat(i[0], {2, 1, 3, 2}), tile(i[0], {2, 3})};
                  }});
    to.push_back(
        {"(x[0].repeat_interleave(3, 1), x[0].repeat_interleave(x[1], 2))", {x, d.integers({s[2]}, 0, 3)}, [](In i) {
           return Out{repeat_interleave(i[0], int64_t{3}, 1), repeat_interleave(i[0], i[1], 2)};
         }});
    const int64_t size = d.between(1, 5);
    to.push_back({fmt::format("(x[0].split({0}, 2), x[0].chunk({0}, 1), x[0].unbind(0))", size), {x}, [size](In i) {
                    Out out = split(i[0], size, 2);
                    for (const Tensor& t : chunk(i[0], size, 1)) out.push_back(t);
                    for (const Tensor& t : unbind(i[0], 0)) out.push_back(t);
                    return out;
                  }});
  }
}

}  // namespace

void index_cases(std::vector<OpCase>& to, Draw d) {
  advanced(to, d);
  axis_index(to, d);
  masks_and_joins(to, d);
}

}  // namespace tenon::peers
