// What stands in a block of the heap: tensors, their history, nodes of graphs, numbers, and things of other kinds.
#include "tracing/record/heap_block.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/autograd/autograd.h"
#include "engine/ops/pointwise.h"
#include "tests/memory_image.h"
#include "tracing/record/memory_owners.h"

namespace tenon::tracing {
namespace {

struct HeapBlocks : ::testing::Test {
  void SetUp() override {
    if (const std::string why = testing_words::why_no_image(); !why.empty()) GTEST_SKIP() << why;
  }
  static HeapBlock in(const MemoryImage& image, const void* p) { return {image, image.block_of(address_of(p))}; }
};

TEST_F(HeapBlocks, tensors_their_history_and_nodes_are_known_for_what_they_are) {
  Tensor a = empty({3, 5});
  set_requires_grad(a);
  const Tensor b = mul(a, 2.0);
  const MemoryImage image;
  const HeapBlock header = in(image, b.impl());
  ASSERT_NE(header.tensor(), nullptr);
  EXPECT_EQ(to_string(header.tensor()->meta.shape), to_string(b.size()));
  EXPECT_EQ(header.tensor()->storage.get(), b.storage());
  EXPECT_EQ(header.place_of(&header.tensor()->storage), address_of(&b.impl()->storage));
  EXPECT_EQ(header.history(), nullptr);
  EXPECT_FALSE(header.is_tensor_memory());
  const HeapBlock history = in(image, autograd_meta(b));
  ASSERT_NE(history.history(), nullptr);
  EXPECT_EQ(history.history()->fn.get(), autograd_meta(b)->fn.get());
  EXPECT_EQ(history.tensor(), nullptr);
  const HeapBlock node = in(image, autograd_meta(b)->fn.get());
  ASSERT_NE(node.node(), nullptr);
  EXPECT_EQ(node.node()->op, autograd_meta(b)->fn->op);
}

TEST_F(HeapBlocks, the_least_block_of_a_header_is_known_whatever_the_first_one_got) {
  std::vector<Tensor> many;
  size_t least = SIZE_MAX;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(empty({1}));
    const size_t size = malloc_usable_size(many.back().impl());
    least = std::min(least, size);
    EXPECT_LE(size, tensor_header_bytes() + kLeftOverBytes);
  }
  EXPECT_EQ(least, tensor_header_bytes());
}

TEST_F(HeapBlocks, numbers_of_tensors_and_other_things_are_no_tensors) {
  const Tensor small = empty({7}), large = empty({3, 1 << 20});
  const auto text = std::make_unique<std::string>(tensor_header_bytes(), 'x');
  const auto zeros = std::make_unique<char[]>(tensor_header_bytes());
  const MemoryImage image;
  for (const Tensor& t : {small, large}) {
    const HeapBlock numbers = in(image, t.storage());
    EXPECT_TRUE(numbers.is_tensor_memory());
    EXPECT_EQ(numbers.tensor(), nullptr);
  }
  for (const void* p : {static_cast<const void*>(text->data()), static_cast<const void*>(zeros.get())}) {
    const HeapBlock other = in(image, p);
    EXPECT_FALSE(other.is_tensor_memory());
    EXPECT_EQ(other.tensor(), nullptr);
    EXPECT_EQ(other.history(), nullptr);
    EXPECT_EQ(other.node(), nullptr);
    EXPECT_EQ(other.object_class().name, "");
  }
}

TEST_F(HeapBlocks, what_is_gone_by_now_is_found_to_be_and_never_touched) {
  const Tensor t = empty({4});
  Holding h;
  EXPECT_FALSE(held_tensor(h)) << "nobody holds anything";
  h.tensor = address_of(t.impl());
  h.storage = address_of(t.storage());
  EXPECT_TRUE(held_tensor(h).same(t));
  h.storage += 64;
  EXPECT_FALSE(held_tensor(h)) << "it has another storage by now";
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  munmap(page, 4096);
  h.tensor = address_of(page);
  EXPECT_FALSE(held_tensor(h)) << "its memory was given back to the system";
}

}  // namespace
}  // namespace tenon::tracing
