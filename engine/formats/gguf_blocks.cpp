#include "engine/formats/gguf_blocks.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "core/half.h"

namespace tenon::formats {
namespace {

// The order of multiplications is ggml's: (scale of the block * scale of the sub-block) * number - minimum.

float half_at(const uint8_t* p) { return half_to_float(static_cast<uint16_t>(p[0] | p[1] << 8)); }

/// Low and high half of a byte stand half a block apart in the formats of 32.
template <class Value>
void halves_of_32(const uint8_t* nibbles, float* out, Value value) {
  for (int i = 0; i < 16; ++i) {
    out[i] = value(nibbles[i] & 15, i);
    out[i + 16] = value(nibbles[i] >> 4, i + 16);
  }
}

void q4_0(const uint8_t* b, float* out) {
  const float d = half_at(b);
  halves_of_32(b + 2, out, [&](int q, int) { return static_cast<float>(q - 8) * d; });
}
void q4_1(const uint8_t* b, float* out) {
  const float d = half_at(b), m = half_at(b + 2);
  halves_of_32(b + 4, out, [&](int q, int) { return static_cast<float>(q) * d + m; });
}
/// The fifth bit of each element of Q5_0 and Q5_1, in its place.
int fifth_bit(const uint8_t* qh, int i) { return (qh[i / 8] >> (i % 8) & 1) << 4; }
void q5_0(const uint8_t* b, float* out) {
  const float d = half_at(b);
  halves_of_32(b + 6, out, [&](int q, int i) { return static_cast<float>((q | fifth_bit(b + 2, i)) - 16) * d; });
}
void q5_1(const uint8_t* b, float* out) {
  const float d = half_at(b), m = half_at(b + 2);
  halves_of_32(b + 8, out, [&](int q, int i) { return static_cast<float>(q | fifth_bit(b + 4, i)) * d + m; });
}
void q8_0(const uint8_t* b, float* out) {
  const float d = half_at(b);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<int8_t>(b[2 + i])) * d;
}

void q2_k(const uint8_t* b, float* out) {
  const uint8_t *scales = b, *q = b + 16;
  const float d = half_at(b + 80), dmin = half_at(b + 82);
  for (int k = 0; k < 16; ++k) {  // sub-blocks of 16
    const float scale = d * static_cast<float>(scales[k] & 15), least = dmin * static_cast<float>(scales[k] >> 4);
    const int half = k / 8, shift = k % 8 / 2 * 2;
    for (int l = 0; l < 16; ++l)
      *out++ = scale * static_cast<float>(q[32 * half + 16 * (k % 2) + l] >> shift & 3) - least;
  }
}

void q3_k(const uint8_t* b, float* out) {
  const uint8_t *high = b, *q = b + 32, *scales = b + 96;
  const float d = half_at(b + 108);
  for (int k = 0; k < 16; ++k) {  // sub-blocks of 16
    const int low = k < 8 ? scales[k] & 15 : scales[k - 8] >> 4, top = scales[8 + k % 4] >> (2 * (k / 4)) & 3;
    const float scale = d * static_cast<float>((low | top << 4) - 32);
    const int half = k / 8, pair = k % 8 / 2;
    for (int l = 0; l < 16; ++l) {
      const int at = 16 * (k % 2) + l;
      const int number = (q[32 * half + at] >> (2 * pair) & 3) - (high[at] >> (4 * half + pair) & 1 ? 0 : 4);
      *out++ = scale * static_cast<float>(number);
    }
  }
}

/// Scale and minimum of a sub-block of Q4_K and Q5_K: 6 bits each, the last four of them in pieces.
void scale_and_minimum(const uint8_t* s, int j, int& scale, int& minimum) {
  scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
}
/// `top`: the bits above the lower four, of element l of a sub-block.
template <class Top>
void sub_blocks_of_32(const uint8_t* b, const uint8_t* q, float* out, Top top) {
  const float d = half_at(b), dmin = half_at(b + 2);
  for (int j = 0; j < 8; ++j) {
    int scale, minimum;
    scale_and_minimum(b + 4, j, scale, minimum);
    const float by = d * static_cast<float>(scale), least = dmin * static_cast<float>(minimum);
    for (int l = 0; l < 32; ++l)
      *out++ = by * static_cast<float>((q[32 * (j / 2) + l] >> (4 * (j % 2)) & 15) + top(j, l)) - least;
  }
}
void q4_k(const uint8_t* b, float* out) {
  sub_blocks_of_32(b, b + 16, out, [](int, int) { return 0; });
}
void q5_k(const uint8_t* b, float* out) {
  sub_blocks_of_32(b, b + 48, out, [&](int j, int l) { return (b[16 + l] >> j & 1) << 4; });
}

void q6_k(const uint8_t* b, float* out) {
  const uint8_t *low = b, *high = b + 128, *scales = b + 192;
  const float d = half_at(b + 208);
  for (int n = 0; n < 2; ++n)
    for (int t = 0; t < 4; ++t)
      for (int l = 0; l < 32; ++l) {
        const int four = low[64 * n + l + 32 * (t & 1)] >> (4 * (t >> 1)) & 15;
        const int number = (four | (high[32 * n + l] >> (2 * t) & 3) << 4) - 32;
        *out++ =
            d * static_cast<float>(static_cast<int8_t>(scales[8 * n + 2 * t + l / 16])) * static_cast<float>(number);
      }
}

constexpr int8_t kUneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
void iq4_nl(const uint8_t* b, float* out) {
  const float d = half_at(b);
  halves_of_32(b + 2, out, [&](int q, int) { return d * static_cast<float>(kUneven[q]); });
}
void iq4_xs(const uint8_t* b, float* out) {
  const float d = half_at(b);
  const int high = b[2] | b[3] << 8;
  for (int k = 0; k < 8; ++k) {
    const int scale = (b[4 + k / 2] >> (4 * (k % 2)) & 15) | (high >> (2 * k) & 3) << 4;
    const float by = d * static_cast<float>(scale - 32);
    halves_of_32(b + 8 + 16 * k, out + 32 * k, [&](int q, int) { return by * static_cast<float>(kUneven[q]); });
  }
}

/// Twice the values of a 4-bit float (1 sign, 2 exponent, 1 mantissa); their scale is half of a power of two.
constexpr int8_t kTwiceE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
void mxfp4(const uint8_t* b, float* out) {
  const uint32_t e = b[0];
  const float d = std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  halves_of_32(b + 1, out, [&](int q, int) { return d * static_cast<float>(kTwiceE2M1[q]); });
}

constexpr GgmlType kGgmlTypes[] = {
    {0, "F32", 1, 4, DType::f32},
    {1, "F16", 1, 2, DType::f16},
    {2, "Q4_0", 32, 18, {}, q4_0},
    {3, "Q4_1", 32, 20, {}, q4_1},
    {6, "Q5_0", 32, 22, {}, q5_0},
    {7, "Q5_1", 32, 24, {}, q5_1},
    {8, "Q8_0", 32, 34, {}, q8_0},
    {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84, {}, q2_k},
    {11, "Q3_K", 256, 110, {}, q3_k},
    {12, "Q4_K", 256, 144, {}, q4_k},
    {13, "Q5_K", 256, 176, {}, q5_k},
    {14, "Q6_K", 256, 210, {}, q6_k},
    {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18, {}, iq4_nl},
    {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136, {}, iq4_xs},
    {24, "I8", 1, 1, DType::i8},
    {25, "I16", 1, 2, DType::i16},
    {26, "I32", 1, 4, DType::i32},
    {27, "I64", 1, 8, DType::i64},
    {28, "F64", 1, 8, DType::f64},
    {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2, DType::bf16},
    {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},
    {39, "MXFP4", 32, 17, {}, mxfp4},
    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
};

}  // namespace

const GgmlType* find_ggml_type(uint32_t id) {
  const auto* t =
      std::find_if(std::begin(kGgmlTypes), std::end(kGgmlTypes), [&](const GgmlType& g) { return g.id == id; });
  return t == std::end(kGgmlTypes) ? nullptr : t;
}

const GgmlType* ggml_type_of(DType dtype) {
  const auto* t =
      std::find_if(std::begin(kGgmlTypes), std::end(kGgmlTypes), [&](const GgmlType& g) { return g.dtype == dtype; });
  return t == std::end(kGgmlTypes) ? nullptr : t;
}

}  // namespace tenon::formats
