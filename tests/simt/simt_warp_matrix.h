#pragma once
#include <cmath>
#include <limits>
#include <source_location>

#include "core/half.h"
#include "tests/simt/simt.h"

// What core/cuda/warp_matrix.h finds where kernels are compiled for the emulated GPU: matrices of 16 by 16 whose
// elements are spread over a warp. A call is made by one lane for all when all have come; a Fault where they do not
// come to the same call with the same operands, or where these are not aligned. What has not been written is NaN.
namespace simt {

/// One call as a lane makes it.
struct WarpCall {
  std::source_location place;
  const void* data = nullptr;  ///< of what is loaded or stored
  unsigned line = 0;
  void* fragment[3] = {};  ///< of the calling lane
};

/// Gives the calls of all lanes to `work`, once.
void warp_call(const WarpCall& call, void (*work)(const WarpCall* const (&lanes)[32]));
/// Throws a Fault for a matrix that the hardware does not read or write.
void check_matrix(const WarpCall& call, unsigned bytes);

/// Where element (row, column) is: of a permutation that no kernel guesses.
struct WarpPlace {
  int lane, slot;
  WarpPlace(int row, int column) {
    const int at = (row * 16 + column) * 37 % 256;
    lane = at % 32, slot = at / 32;
  }
};

struct WarpSums {
  static constexpr int kEach = 8;
  float x[kEach];
  WarpSums() { fill(std::numeric_limits<float>::quiet_NaN()); }
  void fill(float v) {
    for (float& e : x) e = v;
  }
  void load(const float* from, unsigned line, std::source_location at = std::source_location::current()) {
    warp_call({at, from, line, {this}}, [](const WarpCall* const(&lanes)[32]) {
      check_matrix(*lanes[0], 4);
      for (int r = 0; r < 16; ++r)
        for (int c = 0; c < 16; ++c)
          element(lanes, 0, r, c) = static_cast<const float*>(
              lanes[0]->data)[static_cast<unsigned>(r) * lanes[0]->line + static_cast<unsigned>(c)];
    });
  }
  void store(float* to, unsigned line, std::source_location at = std::source_location::current()) const {
    warp_call({at, to, line, {const_cast<WarpSums*>(this)}}, [](const WarpCall* const(&lanes)[32]) {
      check_matrix(*lanes[0], 4);
      auto* to = static_cast<float*>(const_cast<void*>(lanes[0]->data));
      for (int r = 0; r < 16; ++r)
        for (int c = 0; c < 16; ++c)
          to[static_cast<unsigned>(r) * lanes[0]->line + static_cast<unsigned>(c)] = element(lanes, 0, r, c);
    });
  }
  static float& element(const WarpCall* const (&lanes)[32], int operand, int row, int column) {
    const WarpPlace p(row, column);
    return static_cast<WarpSums*>(lanes[p.lane]->fragment[operand])->x[p.slot];
  }
};

template <bool Bfloat, bool IsRight, bool Turned>
struct WarpFactor {
  uint16_t bits[8];
  WarpFactor() {
    for (uint16_t& b : bits) b = 0xffff;  // NaN of either type
  }
  void load(const uint16_t* from, unsigned line, std::source_location at = std::source_location::current()) {
    warp_call({at, from, line, {this}}, [](const WarpCall* const(&lanes)[32]) {
      check_matrix(*lanes[0], 2);
      for (int r = 0; r < 16; ++r)
        for (int c = 0; c < 16; ++c) {
          const WarpPlace p(r, c);
          const auto of_line = static_cast<unsigned>(Turned ? c : r), in_line = static_cast<unsigned>(Turned ? r : c);
          static_cast<WarpFactor*>(lanes[p.lane]->fragment[0])->bits[p.slot] =
              static_cast<const uint16_t*>(lanes[0]->data)[of_line * lanes[0]->line + in_line];
        }
    });
  }
  static void gather(const WarpCall* const (&lanes)[32], int operand, float (&all)[16][16]) {
    for (int r = 0; r < 16; ++r)
      for (int c = 0; c < 16; ++c) {
        const WarpPlace p(r, c);
        const uint16_t b = static_cast<const WarpFactor*>(lanes[p.lane]->fragment[operand])->bits[p.slot];
        all[r][c] = Bfloat ? tenon::bfloat_to_float(b) : tenon::half_to_float(b);
      }
  }
};

template <bool Bfloat, bool Turned>
void multiply(WarpSums& sums, const WarpFactor<Bfloat, false, false>& left,
              const WarpFactor<Bfloat, true, Turned>& right,
              std::source_location at = std::source_location::current()) {
  using A = WarpFactor<Bfloat, false, false>;
  using B = WarpFactor<Bfloat, true, Turned>;
  warp_call({at, nullptr, 0, {&sums, const_cast<A*>(&left), const_cast<B*>(&right)}},
            [](const WarpCall* const(&lanes)[32]) {
              float a[16][16], b[16][16];
              A::gather(lanes, 1, a);
              B::gather(lanes, 2, b);
              for (int r = 0; r < 16; ++r) {
                float row[16];
                for (int c = 0; c < 16; ++c) row[c] = WarpSums::element(lanes, 0, r, c);
                for (int k = 0; k < 16; ++k)
                  for (int c = 0; c < 16; ++c) row[c] += a[r][k] * b[k][c];
                for (int c = 0; c < 16; ++c) WarpSums::element(lanes, 0, r, c) = row[c];
              }
            });
}

}  // namespace simt
