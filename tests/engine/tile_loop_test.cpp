// Loops tile by tile, beside the same loops element by element: where operands lie, and numbers that repeat.
#include "engine/op/tile_loop.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

namespace tenon {
namespace {

void three_times_less(char* const* data, const int64_t* strides, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float x, y;
    std::memcpy(&x, data[1] + i * strides[1], sizeof x);
    std::memcpy(&y, data[2] + i * strides[2], sizeof y);
    const float z = 3 * x - y;
    std::memcpy(data[0] + i * strides[0], &z, sizeof z);
  }
}

char* first_of(std::vector<float>& v) { return reinterpret_cast<char*>(v.data()); }

TEST(TileLoop, WhatRepeatsIsTheSameFromEveryPlace) {
  constexpr int64_t kElements = 5000;
  std::vector<float> x(kElements);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const int64_t count : {1, 2, 7, 64, 1000, 1024, 1500, 5000})
    for (const int64_t each : {1, 3, 400, 1024, 2000}) {
      for (const bool more : {false, true}) {
        std::vector<float> numbers(static_cast<size_t>(count + (more ? kTileElements : 0)));
        for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % static_cast<size_t>(count));
        for (const int64_t begin : {0, 1, 999, 4100}) {
          SCOPED_TRACE(fmt::format("{} numbers, {} elements each, from {}", count, each, begin));
          std::vector<float> y(kElements, -1);
          const TileStep step{three_times_less,
                              3,
                              {{.base = first_of(y) + begin * 4, .first = begin},
                               {.base = first_of(x)},
                               {.base = first_of(numbers),
                                .count = count,
                                .each = each,
                                .held = static_cast<int64_t>(numbers.size())}}};
          run_tiles(&step, 1, begin, kElements);
          for (int64_t i = 0; i < kElements; ++i) {
            const float expected = i < begin ? -1.0f : 3 * static_cast<float>(i) - static_cast<float>(i / each % count);
            ASSERT_EQ(y[static_cast<size_t>(i)], expected) << "element " << i;
          }
        }
      }
    }
}

TEST(TileLoop, WhatOneStepWritesTheNextReads) {
  std::vector<float> x(3000, 2), y(3000), one{5};
  const TileStep steps[] = {
      {three_times_less, 3, {{.tile = 0}, {.base = first_of(x)}, {.base = first_of(one), .stride = 0}}},
      {three_times_less, 3, {{.tile = kMostTiles - 1}, {.tile = 0}, {.base = first_of(x)}}},
      {three_times_less, 3, {{.base = first_of(y)}, {.tile = kMostTiles - 1}, {.tile = 0}}}};
  run_tiles(steps, 3, 10, 2500);
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(y[i], i < 10 || i >= 2500 ? 0 : 2) << i;  // 3 * (3 * (3 * 2 - 5) - 2) - (3 * 2 - 5)
}

}  // namespace
}  // namespace tenon
