// What stands in the process's memory: its blocks, its variables and the classes of its objects.
#include "core/memory_image.h"
#include "tests/memory_image.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/symbol_names.h"
#include "tests/memory_image.h"

namespace tenon {
namespace {

std::vector<int*> image_test_variable;
thread_local int* image_test_of_thread = nullptr;

struct ImageBase {
  virtual ~ImageBase() = default;
};
template <class T>
struct ImageThing : ImageBase {
  T value{};
};

uint64_t at_of(const void* p) { return reinterpret_cast<uint64_t>(p); }

struct MemoryImages : ::testing::Test {
  void SetUp() override {
    if (const std::string why = testing_words::why_no_image(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(MemoryImages, every_block_that_is_in_use_is_there_and_none_that_was_freed) {
  std::mt19937 random(7);
  std::vector<std::unique_ptr<char[]>> used;
  std::vector<size_t> sizes;
  std::vector<uint64_t> freed;
  for (int i = 0; i < 4000; ++i) {
    const size_t bytes = 1 + random() % (i % 50 == 0 ? 400000 : 3000);
    auto block = std::make_unique<char[]>(bytes);
    if (random() % 3) {
      used.push_back(std::move(block));
      sizes.push_back(bytes);
    } else {
      freed.push_back(at_of(block.get()));
    }
  }
  // Those of a thread lie in a heap of their own.
  std::vector<std::unique_ptr<char[]>> of_thread;
  std::thread([&] {
    for (size_t i = 1; i < 300; ++i) of_thread.push_back(std::make_unique<char[]>(10 * i));
  }).join();
  const MemoryImage image;
  for (size_t i = 0; i < used.size(); ++i) {
    const MemorySpan s = image.block_of(at_of(used[i].get()));
    ASSERT_TRUE(s.holds(at_of(used[i].get()))) << i;
    EXPECT_TRUE(s.holds(at_of(used[i].get()) + sizes[i] - 1)) << i;
    EXPECT_LE(s.bytes(), malloc_usable_size(used[i].get()) + 4096) << i;
  }
  for (size_t i = 0; i < of_thread.size(); ++i)
    EXPECT_EQ(image.block_of(at_of(of_thread[i].get())).begin, at_of(of_thread[i].get())) << i;
  size_t still = 0;
  for (const uint64_t a : freed) {
    const MemorySpan s = image.block_of(a);
    // The room of a freed block may be another one's by now, or a part of it.
    const bool taken_again =
        std::any_of(used.begin(), used.end(), [&](const auto& u) { return s.holds(at_of(u.get())); });
    still += s.bytes() > 0 && s.begin == a && !taken_again;
  }
  EXPECT_LE(still, freed.size() / 100);
}

TEST_F(MemoryImages, a_thread_that_filled_several_heaps_has_all_of_its_blocks) {
  std::vector<std::unique_ptr<char[]>> blocks;
  constexpr size_t kBytes = 10000, kOfOneHeap = size_t{64} << 20;
  std::thread([&] {
    while (blocks.size() * kBytes < 2 * kOfOneHeap) blocks.emplace_back(new char[kBytes]);
  }).join();
  const MemoryImage image;
  const auto missing = std::count_if(blocks.begin(), blocks.end(), [&](const auto& b) {
    return image.block_of(at_of(b.get())).begin != at_of(b.get());
  });
  EXPECT_EQ(missing, 0) << "of " << blocks.size();
}

TEST_F(MemoryImages, it_stands_still) {
  auto word = std::make_unique<uint64_t>(41);
  const MemoryImage image;
  *word = 42;
  const std::vector<uint64_t> read = image.words({at_of(word.get()), at_of(word.get()) + 8});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0], 41u);
  EXPECT_EQ(MemoryImage::words_now({at_of(word.get()), at_of(word.get()) + 8}), std::vector<uint64_t>{42});
  EXPECT_TRUE(image.words({64, 128}).empty());
  EXPECT_TRUE(MemoryImage::words_now({64, 128}).empty());
  EXPECT_EQ(image.block_of(64).bytes(), 0u);
}

TEST_F(MemoryImages, variables_have_the_names_of_their_source) {
  int here = 0;
  image_test_of_thread = &here;
  const MemoryImage image;
  const auto name_of = [&](const void* p) {
    for (const StaticMemory& s : image.statics())
      if (s.span.holds(at_of(p))) return file_name(s.file) + " " + variable_at(s, at_of(p));
    return std::string();
  };
  EXPECT_EQ(name_of(&image_test_variable), "test_core tenon::(anonymous namespace)::image_test_variable");
  EXPECT_EQ(name_of(&image_test_of_thread), "test_core tenon::(anonymous namespace)::image_test_of_thread");
  EXPECT_EQ(name_of(&here), "");
}

TEST(SymbolNames, an_object_tells_its_class_and_nothing_else_does) {
  const auto of = [](const void* p) {
    uint64_t first = 0;
    std::memcpy(&first, p, 8);
    return class_of_object(first);
  };
  const ImageThing<int> thing;
  EXPECT_EQ(of(&thing).name, "tenon::(anonymous namespace)::ImageThing<int>");
  EXPECT_TRUE(of(&thing).is_a("tenon::(anonymous namespace)::ImageBase"));
  EXPECT_FALSE(of(&thing).is_a("tenon::Layout"));
  const auto shared = std::make_shared<ImageThing<std::string>>();
  const auto counted = reinterpret_cast<const char*>(shared.get()) - 16;
  EXPECT_EQ(short_class(of(counted).name), "tenon::ImageThing<std::string>");
  for (const uint64_t word :
       {uint64_t{0}, uint64_t{1}, uint64_t{0xdeadbeef}, ~uint64_t{0}, at_of(&thing), at_of(&thing) + 8})
    EXPECT_EQ(class_of_object(word).name, "") << word;
  EXPECT_EQ(short_class("std::vector<int, std::allocator<int> >"), "std::vector<int>");
  EXPECT_EQ(short_class("(anonymous namespace)::Cache"), "Cache");
  EXPECT_EQ(file_name("/home/ann/wave.so"), "wave.so");
}

}  // namespace
}  // namespace tenon
