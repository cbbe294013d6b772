#include "engine/op/tile_loop.h"

#include <algorithm>

namespace tenon {
namespace {

/// Numbers of elements [i, i + n) that repeat, one beside the other.
void repeat_into(float* tile, const TileOperand& o, int64_t i, int64_t n) {
  const auto* numbers = reinterpret_cast<const float*>(o.base);
  int64_t number = i / o.each % o.count, left = o.each - i % o.each;
  for (int64_t done = 0; done < n;) {
    const bool singly = o.each == 1;
    const int64_t run = std::min(n - done, singly ? o.count - number : left);
    if (singly)
      std::copy_n(numbers + number, run, tile + done);
    else
      std::fill_n(tile + done, run, numbers[number]);
    done += run;
    number = singly || ++number == o.count ? 0 : number;
    left = o.each;
  }
}

}  // namespace

void run_tiles(const TileStep* steps, size_t count, int64_t begin, int64_t end) {
  alignas(64) float tiles[kMostTiles][kTileElements];
  alignas(64) float repeated[kMaxOperands][kTileElements];
  for (int64_t i = begin; i < end; i += kTileElements) {
    const int64_t n = std::min(kTileElements, end - i);
    for (size_t s = 0; s < count; ++s) {
      const TileStep& step = steps[s];
      char* data[kMaxOperands];
      int64_t strides[kMaxOperands];
      for (int k = 0; k < step.operands; ++k) {
        const TileOperand& o = step.at[k];
        strides[k] = o.stride;
        if (o.tile >= 0) {
          data[k] = reinterpret_cast<char*>(tiles[o.tile]);
        } else if (o.count == 0) {
          data[k] = o.base + (i - o.first) * o.stride;
        } else if (const int64_t number = i / o.each % o.count; o.each == 1 && number + n <= o.held) {
          data[k] = o.base + number * o.stride;
        } else if (o.each > 1 && i % o.each + n <= o.each) {
          data[k] = o.base + number * o.stride;
          strides[k] = 0;
        } else {
          repeat_into(repeated[k], o, i, n);
          data[k] = reinterpret_cast<char*>(repeated[k]);
        }
      }
      step.loop(data, strides, n);
    }
  }
}

}  // namespace tenon
