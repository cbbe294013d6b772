// Chains of views: what each makes of a layout, held against the engine's own views of real numbers, and what is told
// of those that copy or do not fit.
#include "engine/spec/view_chain.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "core/quiet.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/ops/view_steps.h"
#include "engine/spec/walk_cost.h"
#include "tests/messages.h"

namespace tenon {
namespace {

using testing_words::error_of;

Layout last_of(const std::string& text, const Shape& size) {
  const Layout of = Layout::contiguous(size);
  return view_chain(text, of, of.numel()).back().layout;
}
std::string refusal(const std::string& text, const Shape& size) {
  return error_of([&] { last_of(text, size); });
}
/// 0, 1, 2, ... of that size.
Tensor counting(const Shape& size) {
  const Tensor t = empty(size, DType::f32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}
void each_index(const Shape& size, const std::function<void(const Dims&)>& f) {
  Dims index = Dims::filled(size.n, 0);
  for (int64_t n = size.product(); n-- > 0;) {
    f(index);
    for (int a = size.n - 1; a >= 0 && ++index[a] == size[a]; --a) index[a] = 0;
  }
}

TEST(ViewChain, strides_are_those_that_pytorch_gives) {
  const auto is = [](const std::string& text, const Shape& size, const Shape& want, const Dims& stride,
                     int64_t offset) {
    const Layout l = last_of(text, size);
    EXPECT_EQ(to_string(l.size), to_string(want)) << text;
    EXPECT_EQ(to_string(l.stride), to_string(stride)) << text;
    EXPECT_EQ(l.offset, offset) << text;
  };
  is(".permute(1, 0)", {3, 4}, {4, 3}, {1, 4}, 0);
  is("T", {2, 3, 4}, {4, 3, 2}, {1, 4, 12}, 0);
  is("[1]", {3, 4}, {4}, {1}, 4);
  is("[-1, ::2]", {3, 4}, {2}, {2}, 8);
  is("[::-1]", {3, 4}, {3, 4}, {-4, 1}, 8);
  is("[..., None]", {3, 4}, {3, 4, 1}, {4, 1, 1}, 0);
  is("[None, 1:3, -2:]", {3, 4}, {1, 2, 2}, {12, 4, 1}, 6);
  is(".view(2, -1)", {4, 3}, {2, 6}, {6, 1}, 0);
  is(".flatten(1)", {2, 3, 4}, {2, 12}, {12, 1}, 0);
  is(".unsqueeze(1).expand(3, 5, 4)", {3, 4}, {3, 5, 4}, {4, 0, 1}, 0);
  is(".unfold(0, 3, 1)", {5}, {3, 3}, {1, 1}, 0);
  is(".diagonal()", {3, 4}, {3}, {5}, 0);
  is(".as_strided([2, 2], [3, 1], 1)", {3, 4}, {2, 2}, {3, 1}, 1);
  is(".narrow(1, 1, 2).select(0, 2)", {3, 4}, {2}, {1}, 9);
  is(" transpose( 0, 1 ) [ 1 : ]", {3, 4}, {3, 3}, {1, 4}, 1);
  is(".flip(0, 1)", {3, 4}, {3, 4}, {-4, -1}, 11);
  is(".permute(0, 2, 3, 1).contiguous()", {2, 3, 4, 5}, {2, 4, 5, 3}, {60, 15, 3, 1}, 0);
}

TEST(ViewChain, what_copies_says_why) {
  const Layout of = Layout::contiguous({3, 4});
  const auto steps = view_chain(".T.reshape(12)", of, 12);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].copies, "");
  EXPECT_EQ(steps[1].copies,
            "axes 0 and 1 cannot be walked as one: a step along axis 0 is 1 elements, and all of axis 1 is 12");
  EXPECT_EQ(steps[1].text, ".reshape(12)");
  EXPECT_TRUE(steps[1].layout.is_contiguous());
  EXPECT_EQ(view_chain(".T.T.reshape(12)", of, 12).back().copies, "");
  EXPECT_EQ(view_chain(".contiguous()", of, 12).back().copies, "");
  EXPECT_NE(view_chain(".T.contiguous()", of, 12).back().copies, "");
  EXPECT_SAYS(refusal(".T.view(12)", {3, 4}), "cannot be walked as one");
  EXPECT_SAYS(refusal(".T.view(12)", {3, 4}), "reshape copies");
}

TEST(ViewChain, what_does_not_fit_is_told_with_its_place) {
  EXPECT_SAYS(refusal(".permut(1, 0)", {3, 4}), "there is no view \"permut\"");
  EXPECT_SAYS(refusal(".permut(1, 0)", {3, 4}), "permute");
  EXPECT_SAYS(refusal(".T.permute(0)", {3, 4}), "character 3: 1 axes for the 2 of [4, 3]");
  EXPECT_SAYS(refusal("[3]", {3, 4}), "index 3 is out of range");
  EXPECT_SAYS(refusal("[0, 0, 0]", {3, 4}), "3 places are more than the 2 axes");
  EXPECT_SAYS(refusal("[..., ...]", {3, 4}), "stands twice");
  EXPECT_SAYS(refusal("[::0]", {3, 4}), "step must not be 0");
  EXPECT_SAYS(refusal(".narrow(0, 2, 2)", {3, 4}), "not in axis 0 of size 3");
  EXPECT_SAYS(refusal(".transpose(0)", {3, 4}), "written .transpose(0, 1)");
  EXPECT_SAYS(refusal(".permute(1, 0", {3, 4}), "missing");
  EXPECT_SAYS(refusal("[1", {3, 4}), "missing");
  EXPECT_SAYS(refusal(".T)", {3, 4}), "expected");
  EXPECT_SAYS(refusal(".as_strided([4, 4], [4, 1])", {3, 4}), "reads elements 0 to 15 of a memory of 12");
  EXPECT_SAYS(refusal(".as_strided([2], [-1])", {3, 4}), "reads elements -1 to 0");
  EXPECT_SAYS(refusal(".as_strided([999999999999999, 999999999999999], [0, 0])", {3, 4}), "more elements than");
  EXPECT_SAYS(refusal("[99999999999999999999]", {3, 4}), "a number that large");
  EXPECT_SAYS(refusal(".expand(2, 4)", {3, 4}), "cannot become 2");
  EXPECT_SAYS(refusal(".unfold(0, 9, 1)", {3, 4}), "view: ");
  EXPECT_SAYS(refusal(".reshape(5, -1)", {3, 4}), "view: ");
  EXPECT_TRUE(view_chain("  ", Layout::contiguous({3}), 3).empty());
}

TEST(ViewChain, numbers_read_through_it_are_those_of_the_layout) {
  const Tensor x = counting({2, 3, 4, 5});
  for (const char* text : {".T[::2]", ".permute(0, 2, 3, 1).reshape(2, -1)", "[:, ::-1, 1, None]", ".flip(3).flatten()",
                           ".channels_last()[1]", ".unfold(3, 2, 2)[..., 0].contiguous().T", ".diagonal(1, 2, 3)"}) {
    // By the index: a copy keeps what was at each place in the order of the axes.
    Tensor want = x;
    const auto steps = view_chain(text, x.layout(), x.numel());
    const Tensor got = viewed(x, steps);
    for (const ViewStep& s : steps) {
      if (s.copies.empty()) {
        want = view_of(want, s.layout);
        continue;
      }
      const Tensor copy = empty_strided(s.layout, DType::f32);
      std::vector<double> in_order;
      each_index(want.size(), [&](const Dims& i) { in_order.push_back(value_at(want, i)); });
      size_t k = 0;
      each_index(copy.size(), [&](const Dims& i) {
        int64_t p = 0;
        for (int a = 0; a < i.n; ++a) p += i[a] * copy.stride()[a];
        copy.data<float>()[p] = static_cast<float>(in_order[k++]);
      });
      want = copy;
    }
    ASSERT_EQ(to_string(got.size()), to_string(want.size())) << text;
    each_index(got.size(), [&](const Dims& i) { ASSERT_EQ(value_at(got, i), value_at(want, i)) << text; });
    EXPECT_EQ(to_string(got.stride()), to_string(steps.back().layout.stride)) << text;
  }
  EXPECT_EQ(viewed(x, view_chain(".T", x.layout(), 120)).storage(), x.storage());
  EXPECT_NE(viewed(x, view_chain(".T.reshape(-1)", x.layout(), 120)).storage(), x.storage());
}

TEST(WalkCost, lines_are_counted_as_they_are_fetched) {
  const WalkCost lies = walk_cost(Layout::contiguous({64, 64}), 4);
  EXPECT_EQ(lies.elements, 4096);
  EXPECT_TRUE(lies.whole);
  EXPECT_EQ(lies.least, 256);
  EXPECT_EQ(lies.lines, 256);
  EXPECT_EQ(lies.fetched, 256);
  // 64 rows of 4 lines fit the cache: across them nothing is fetched twice.
  EXPECT_EQ(walk_cost(Layout::contiguous({64, 64}).transpose(0, 1), 4).fetched, 256);
  // 4,096 rows do not: every element brings its line anew.
  const WalkCost across = walk_cost(Layout::contiguous({4096, 64}).transpose(0, 1), 4);
  EXPECT_EQ(across.lines, 16384);
  EXPECT_EQ(across.fetched, 4096 * 64);
  EXPECT_EQ(across.times(), 16);
  EXPECT_EQ(walk_cost(Layout::contiguous({1024}).slice(0, 0, 1024, 16), 4).fetched, 64);
  EXPECT_EQ(walk_cost(Layout::contiguous({1}).expand({1024}), 4).fetched, 1);
  EXPECT_EQ(walk_cost(Layout::contiguous({0, 3}), 4).fetched, 0);
  EXPECT_EQ(walk_cost(Layout::contiguous({}), 4).fetched, 1);
  const WalkCost large = walk_cost(Layout::contiguous({1 << 21}), 1);
  EXPECT_FALSE(large.whole);
  EXPECT_EQ(large.elements, 1 << 20);
}

TEST(WalkCost, a_position_is_read_or_it_is_not) {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint32_t>(n)); };
  for (int round = 0; round < 300; ++round) {
    Layout l;
    for (int64_t a = below(4); a >= 0; --a) {
      l.size.push_back(1 + below(4));
      l.stride.push_back(below(13) - 6);
    }
    l.offset = 60;
    std::set<int64_t> read;
    each_index(l.size, [&](const Dims& i) {
      int64_t p = l.offset;
      for (int a = 0; a < i.n; ++a) p += i[a] * l.stride[a];
      read.insert(p);
    });
    for (int64_t p = 0; p < 140; ++p)
      ASSERT_EQ(reads_position(l, p), read.contains(p)) << to_string(l.size) << to_string(l.stride) << p;
  }
  EXPECT_FALSE(reads_position(Layout::contiguous({0}), 0));
}

}  // namespace
}  // namespace tenon
