// A walk along addresses that stand in memory: which of them lead on.
#include "tracing/record/pointer_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "engine/ops/create.h"
#include "tests/memory_image.h"

namespace tenon::tracing {
namespace {

constexpr size_t kSlots = 8;
/// Two lists whose words stay when nothing is in them any more, as those of a vector's unused end do.
std::array<uint64_t, kSlots> list_of_words, other_list;

std::vector<Tensor> some_tensors() {
  std::vector<Tensor> all;
  for (size_t i = 0; i < kSlots; ++i) all.push_back(empty({64}));
  return all;
}

/// Of a tensor's header the handle of its storage leads on.
std::vector<PointerWalk::Part> parts_of_tensor(const PointerWalk::Stop&, const HeapBlock& block) {
  const TensorImpl* t = block.tensor();
  if (!t) return {};
  const uint64_t at = block.place_of(&t->storage);
  return {{{at, at + 8}, PointerWalk::kTarget, 0}};
}

PointerWalk::Root root_at(const std::array<uint64_t, kSlots>& list) {
  return {{address_of(list.data()), address_of(list.data() + kSlots)}, nullptr, address_of(list.data()), 0};
}

TEST(PointerWalk, a_word_that_was_written_since_leads_on_and_one_that_is_left_over_does_not) {
  if (const std::string why = testing_words::why_no_image(); !why.empty()) GTEST_SKIP() << why;
  other_list.fill(0);
  std::vector<Tensor> first = some_tensors();
  for (size_t i = 0; i < kSlots; ++i) list_of_words[i] = address_of(first[i].impl());
  first.clear();
  const MemoryImage before;
  // The headers are given out again, so each tensor is where a word of the list leads that is older than it is.
  const std::vector<Tensor> kept = some_tensors();
  PointerWalk::Ends ends;
  for (const Tensor& t : kept) {
    ASSERT_NE(std::find(list_of_words.begin(), list_of_words.end(), address_of(t.impl())), list_of_words.end());
    ends.targets.push_back(address_of(t.storage()));
  }
  other_list[0] = address_of(kept[0].impl());
  const MemoryImage image;
  const PointerWalk walk(image, before, {root_at(list_of_words), root_at(other_list)}, ends, parts_of_tensor);
  const auto way = walk.way_to(ends.targets[0]);
  ASSERT_EQ(way.size(), 3u);
  EXPECT_EQ(walk.root(way.front()).object, address_of(other_list.data()));
  for (size_t i = 1; i < kSlots; ++i) EXPECT_TRUE(walk.way_to(ends.targets[i]).empty()) << i;
}

}  // namespace
}  // namespace tenon::tracing
