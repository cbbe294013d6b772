// Every block format is packed here from numbers that are known, and must come back as what the numbers say. Scales are
// such that every product and sum is a float, so that nothing is rounded and nothing is compared with a tolerance.
#include "engine/formats/gguf_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/half.h"
#include "core/random.h"

namespace tenon::formats {
namespace {

/// Numbers of a fixed stream.
struct BlockDraw {
  Philox random{7, 3};
  uint64_t drawn = 0;
  int below(int n) { return static_cast<int>(random.below(drawn++, static_cast<uint64_t>(n))); }
};

/// A block that is being packed, and the values that it stands for.
struct PackedBlock {
  std::vector<uint8_t> bytes;
  std::vector<double> values;

  PackedBlock(size_t size, size_t elements) : bytes(size), values(elements) {}
  void half(size_t at, float value) {
    const uint16_t h = float_to_half(value);
    bytes[at] = static_cast<uint8_t>(h & 255), bytes[at + 1] = static_cast<uint8_t>(h >> 8);
  }
  void bits(size_t at, int value, int shift) { bytes[at] = static_cast<uint8_t>(bytes[at] | value << shift); }
};

constexpr float kStep = 0.0078125f, kLeast = -0.5f;  // 2^-7 and -2^-1: exact as halves

/// Formats of 32: nibbles at `q`, a fifth bit of each at `top` where there is one, a minimum where that is not 0.
PackedBlock simple_block(BlockDraw& draw, size_t size, size_t q, size_t top, int zero, float minimum) {
  PackedBlock b(size, 32);
  b.half(0, kStep);
  if (minimum != 0) b.half(2, minimum);
  for (size_t i = 0; i < 32; ++i) {
    const int n = draw.below(top ? 32 : 16);
    b.bits(q + i % 16, n & 15, i < 16 ? 0 : 4);
    if (top) b.bits(top + i / 8, n >> 4, static_cast<int>(i % 8));
    b.values[i] = double{kStep} * (n - zero) + minimum;
  }
  return b;
}

PackedBlock eight_bits(BlockDraw& draw) {
  PackedBlock b(34, 32);
  b.half(0, kStep);
  for (size_t i = 0; i < 32; ++i) {
    const int n = draw.below(256) - 128;
    b.bytes[2 + i] = static_cast<uint8_t>(n & 255);
    b.values[i] = double{kStep} * n;
  }
  return b;
}

/// Where the two lower bits of an element of Q2_K and Q3_K lie.
size_t pair_byte(size_t e) { return 32 * (e / 128) + e % 32; }
int pair_shift(size_t e) { return static_cast<int>(e % 128 / 32 * 2); }

PackedBlock two_bits(BlockDraw& draw) {
  PackedBlock b(84, 256);
  b.half(80, kStep), b.half(82, kLeast);
  std::vector<int> scale(16), least(16);
  for (size_t k = 0; k < 16; ++k) {
    b.bits(k, scale[k] = draw.below(16), 0);
    b.bits(k, least[k] = draw.below(16), 4);
  }
  for (size_t e = 0; e < 256; ++e) {
    const int n = draw.below(4);
    b.bits(16 + pair_byte(e), n, pair_shift(e));
    b.values[e] = double{kStep} * scale[e / 16] * n - double{kLeast} * least[e / 16];
  }
  return b;
}

PackedBlock three_bits(BlockDraw& draw) {
  PackedBlock b(110, 256);
  b.half(108, kStep);
  std::vector<int> scale(16);
  for (size_t k = 0; k < 16; ++k) {
    scale[k] = draw.below(64);
    b.bits(96 + k % 8, scale[k] & 15, k < 8 ? 0 : 4);
    b.bits(104 + k % 4, scale[k] >> 4, static_cast<int>(2 * (k / 4)));
  }
  for (size_t e = 0; e < 256; ++e) {
    const int n = draw.below(8);
    b.bits(32 + pair_byte(e), n & 3, pair_shift(e));
    b.bits(e % 32, n >> 2, static_cast<int>(e / 32));
    b.values[e] = double{kStep} * (scale[e / 16] - 32) * (n - 4);
  }
  return b;
}

/// Q4_K, and Q5_K where `top` says where the fifth bits lie.
PackedBlock with_minima(BlockDraw& draw, size_t size, size_t q, size_t top) {
  PackedBlock b(size, 256);
  b.half(0, kStep), b.half(2, kLeast);
  std::vector<int> scale(8), least(8);
  for (size_t j = 0; j < 8; ++j) {
    scale[j] = draw.below(64), least[j] = draw.below(64);
    if (j < 4) {
      b.bits(4 + j, scale[j], 0), b.bits(8 + j, least[j], 0);
    } else {
      b.bits(8 + j, scale[j] & 15, 0), b.bits(8 + j, least[j] & 15, 4);
      b.bits(j, scale[j] >> 4, 6), b.bits(4 + j, least[j] >> 4, 6);
    }
  }
  for (size_t e = 0; e < 256; ++e) {
    const size_t j = e / 32;
    const int n = draw.below(top ? 32 : 16);
    b.bits(q + 32 * (j / 2) + e % 32, n & 15, j % 2 ? 4 : 0);
    if (top) b.bits(top + e % 32, n >> 4, static_cast<int>(j));
    b.values[e] = double{kStep} * scale[j] * n - double{kLeast} * least[j];
  }
  return b;
}

PackedBlock six_bits(BlockDraw& draw) {
  PackedBlock b(210, 256);
  b.half(208, kStep);
  std::vector<int> scale(16);
  for (size_t k = 0; k < 16; ++k) b.bytes[192 + k] = static_cast<uint8_t>((scale[k] = draw.below(256) - 128) & 255);
  for (size_t e = 0; e < 256; ++e) {
    const size_t n = e / 128, t = e % 128 / 32, l = e % 32;
    const int number = draw.below(64);
    b.bits(64 * n + 32 * (t % 2) + l, number & 15, t < 2 ? 0 : 4);
    b.bits(128 + 32 * n + l, number >> 4, static_cast<int>(2 * t));
    b.values[e] = double{kStep} * scale[e / 16] * (number - 32);
  }
  return b;
}

/// The 16 places that IQ4 has instead of a straight line.
constexpr int kPlaces[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

PackedBlock uneven(BlockDraw& draw) {
  PackedBlock b(18, 32);
  b.half(0, kStep);
  for (size_t i = 0; i < 32; ++i) {
    const int n = draw.below(16);
    b.bits(2 + i % 16, n, i < 16 ? 0 : 4);
    b.values[i] = double{kStep} * kPlaces[n];
  }
  return b;
}

PackedBlock uneven_with_scales(BlockDraw& draw) {
  PackedBlock b(136, 256);
  b.half(0, kStep);
  std::vector<int> scale(8);
  for (size_t k = 0; k < 8; ++k) {
    scale[k] = draw.below(64);
    b.bits(4 + k / 2, scale[k] & 15, k % 2 ? 4 : 0);
    b.bits(2 + k / 4, scale[k] >> 4, static_cast<int>(k % 4 * 2));
  }
  for (size_t e = 0; e < 256; ++e) {
    const int n = draw.below(16);
    b.bits(8 + 16 * (e / 32) + e % 16, n, e % 32 < 16 ? 0 : 4);
    b.values[e] = double{kStep} * (scale[e / 32] - 32) * kPlaces[n];
  }
  return b;
}

/// The microscaling format of the Open Compute Project: 4-bit floats E2M1 under a power of two.
PackedBlock four_bit_floats(BlockDraw& draw) {
  PackedBlock b(17, 32);
  const int exponent = 100 + draw.below(40);
  b.bytes[0] = static_cast<uint8_t>(exponent);
  for (size_t i = 0; i < 32; ++i) {
    const int n = draw.below(16), e = n >> 1 & 3, mantissa = n & 1;
    b.bits(1 + i % 16, n, i < 16 ? 0 : 4);
    const double size = e == 0 ? 0.5 * mantissa : std::ldexp(1 + 0.5 * mantissa, e - 1);
    b.values[i] = std::ldexp(n & 8 ? -size : size, exponent - 127);
  }
  return b;
}

struct BlockCase {
  const char* name;
  uint32_t id;
  std::function<PackedBlock(BlockDraw&)> pack;
};
const BlockCase kBlockCases[] = {
    {"Q4_0", 2, [](BlockDraw& d) { return simple_block(d, 18, 2, 0, 8, 0); }},
    {"Q4_1", 3, [](BlockDraw& d) { return simple_block(d, 20, 4, 0, 0, kLeast); }},
    {"Q5_0", 6, [](BlockDraw& d) { return simple_block(d, 22, 6, 2, 16, 0); }},
    {"Q5_1", 7, [](BlockDraw& d) { return simple_block(d, 24, 8, 4, 0, kLeast); }},
    {"Q8_0", 8, eight_bits},
    {"Q2_K", 10, two_bits},
    {"Q3_K", 11, three_bits},
    {"Q4_K", 12, [](BlockDraw& d) { return with_minima(d, 144, 16, 0); }},
    {"Q5_K", 13, [](BlockDraw& d) { return with_minima(d, 176, 48, 16); }},
    {"Q6_K", 14, six_bits},
    {"IQ4_NL", 20, uneven},
    {"IQ4_XS", 23, uneven_with_scales},
    {"MXFP4", 39, four_bit_floats},
};

TEST(GgufBlocks, every_format_gives_the_numbers_that_were_packed) {
  BlockDraw draw;
  for (const BlockCase& c : kBlockCases)
    for (int round = 0; round < 50; ++round) {
      const PackedBlock b = c.pack(draw);
      const GgmlType* type = find_ggml_type(c.id);
      ASSERT_NE(type, nullptr) << c.name;
      ASSERT_STREQ(type->name, c.name);
      ASSERT_EQ(type->bytes, b.bytes.size()) << c.name;
      ASSERT_EQ(type->elements, b.values.size()) << c.name;
      ASSERT_NE(type->decode, nullptr) << c.name;
      std::vector<float> out(b.values.size());
      type->decode(b.bytes.data(), out.data());
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(double{out[i]}, b.values[i]) << c.name << " element " << i << " round " << round;
    }
}

TEST(GgufBlocks, no_decoder_is_untried) {
  for (uint32_t id = 0; id < 64; ++id) {
    const GgmlType* type = find_ggml_type(id);
    if (!type || !type->decode) continue;
    const bool tried =
        std::any_of(std::begin(kBlockCases), std::end(kBlockCases), [&](const BlockCase& c) { return c.id == id; });
    EXPECT_TRUE(tried) << type->name;
  }
}

TEST(GgufBlocks, a_type_of_the_engine_has_the_size_of_its_elements) {
  int with = 0;
  for (int k = 0; k < kDTypes; ++k) {
    const auto dtype = static_cast<DType>(k);
    const GgmlType* type = ggml_type_of(dtype);
    if (!type) continue;
    ++with;
    EXPECT_EQ(type->bytes, itemsize(dtype)) << type->name;
    EXPECT_EQ(type->elements, 1u) << type->name;
  }
  EXPECT_EQ(with, 8);
  EXPECT_EQ(ggml_type_of(DType::boolean), nullptr);
  EXPECT_EQ(find_ggml_type(4), nullptr);
}

}  // namespace
}  // namespace tenon::formats
