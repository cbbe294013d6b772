#include "core/layout.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "core/random.h"

namespace tenon {
namespace {

// Every element's position, by walking the index space.
std::vector<int64_t> positions(const Layout& l) {
  std::vector<int64_t> out;
  Dims i = Dims::filled(l.ndim(), 0);
  for (int64_t n = 0; n < l.numel(); ++n) {
    int64_t at = l.offset;
    for (int d = 0; d < l.ndim(); ++d) at += i[d] * l.stride[d];
    out.push_back(at);
    for (int d = l.ndim() - 1; d >= 0; --d) {
      if (++i[d] < l.size[d]) break;
      i[d] = 0;
    }
  }
  return out;
}

TEST(Layout, ContiguousCountsUp) {
  Layout l = Layout::contiguous({2, 3, 4});
  auto p = positions(l);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_EQ(p[i], static_cast<int64_t>(i));
  EXPECT_TRUE(l.is_contiguous());
  EXPECT_TRUE(l.is_dense());
}

TEST(Layout, ChannelsLastIsDenseButNotContiguous) {
  Layout l = Layout::channels_last({2, 3, 4, 5});
  EXPECT_TRUE(l.is_channels_last());
  EXPECT_TRUE(l.is_dense());
  EXPECT_FALSE(l.is_contiguous());
  EXPECT_EQ(to_string(l.stride), "[60, 1, 15, 3]");
}

TEST(Layout, SliceFollowsNumpy) {
  Layout l = Layout::contiguous({10});
  EXPECT_EQ(positions(l.slice(0, 2, 8, 3)), (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(positions(l.slice(0, -3, 100)), (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(positions(l.slice(0, 8, 2, -2)), (std::vector<int64_t>{8, 6, 4}));
  EXPECT_EQ(positions(l.slice(0, -1, -100, -4)), (std::vector<int64_t>{9, 5, 1}));
  EXPECT_EQ(l.slice(0, 5, 5).numel(), 0);
  EXPECT_THROW(l.slice(0, 0, 1, 0), Error);
}

TEST(Layout, ViewOfATransposeNeedsACopyUnlessRunsStayWhole) {
  Layout out, l = Layout::contiguous({4, 6}).transpose(0, 1);
  EXPECT_FALSE(l.view({24}, out));
  ASSERT_TRUE(l.view({2, 3, 4}, out));
  EXPECT_EQ(positions(out), positions(l));
  ASSERT_TRUE(Layout::contiguous({4, 6}).view({2, -1, 3}, out));
  EXPECT_EQ(to_string(out.size), "[2, 4, 3]");
}

TEST(Layout, ExpandHasStrideZero) {
  Layout l = Layout::contiguous({3, 1}).expand({2, 3, 4});
  EXPECT_EQ(to_string(l.stride), "[0, 1, 0]");
  EXPECT_TRUE(l.may_overlap());
  EXPECT_THROW(Layout::contiguous({3}).expand({4}), Error);
}

TEST(Layout, ErrorsNameSizes) {
  try {
    broadcast_shape({2, 3}, {4, 3});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("[2, 3]"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("2 against 4"), std::string::npos);
  }
  EXPECT_THROW(infer_view_size({6}, {4, -1}), Error);
  EXPECT_THROW(wrap_axis(3, 3), Error);
}

// Random chains of view algebra keep pointing at elements of the storage, and a view keeps every element in order.
TEST(Layout, RandomChainsStayInsideAndViewsKeepOrder) {
  Philox random{1, 2};
  uint64_t n = 0;
  auto below = [&](int64_t k) { return static_cast<int64_t>(random.below(n++, static_cast<uint64_t>(k))); };
  for (int round = 0; round < 2000; ++round) {
    Shape s;
    for (int64_t d = 1 + below(4); d > 0; --d) s.push_back(1 + below(4));
    Layout l = Layout::contiguous(s);
    int64_t room = l.numel();
    for (int step = 0; step < 6; ++step) {
      int axis = static_cast<int>(below(std::max(1, l.ndim())));
      switch (below(6)) {
        case 0:
          l = l.transpose(axis, static_cast<int>(below(l.ndim())));
          break;
        case 1:
          l = l.flip(axis);
          break;
        case 2:
          l = l.slice(axis, below(3), 10, 1 + below(2));
          break;
        case 3:
          l = l.ndim() < 6 ? l.unsqueeze(axis) : l;
          break;
        case 4:
          l = l.ndim() > 1 ? l.squeeze(axis) : l;
          break;
        default: {
          Layout out;
          if (l.view({-1}, out)) {
            ASSERT_EQ(positions(out), positions(l));
          } else {
            ASSERT_FALSE(l.is_contiguous());
          }
        }
      }
      if (l.numel() == 0) break;
      int64_t lo, hi;
      l.extent(lo, hi);
      ASSERT_GE(lo, 0);
      ASSERT_LT(hi, room);
      auto p = positions(l);
      std::set<int64_t> distinct(p.begin(), p.end());
      ASSERT_EQ(*distinct.begin(), lo);
      ASSERT_EQ(*distinct.rbegin(), hi);
      if (distinct.size() != p.size()) {
        ASSERT_TRUE(l.may_overlap());
      }
      if (l.is_dense()) {
        ASSERT_EQ(hi - lo + 1, l.numel());
      }
    }
  }
}

}  // namespace
}  // namespace tenon
