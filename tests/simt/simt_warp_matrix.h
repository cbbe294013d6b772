#pragma once
#include <cmath>
#include <limits>
#include <source_location>

#include "core/half.h"
#include "tests/simt/simt.h"

// What core/cuda/warp_matrix.h finds where kernels are compiled for the emulated GPU: matrices of 16 by 16 whose
// elements are spread over a warp. A Fault where not all lanes come to the same call with the same operands, or where
// memory is not aligned. What has not been written is NaN. tenon_simt_warp_calls() of the module counts the calls.
namespace simt {

/// One call as a lane makes it.
struct WarpCall {
  std::source_location place;
  const void* data = nullptr;  ///< of what is loaded or stored
  unsigned line = 0;
  void* fragment[3] = {};  ///< of the calling lane
};

/// Waits for the warp and gives the calls of all lanes to `work`, once, before anyone goes on.
void warp_call(const WarpCall& call, void (*work)(const WarpCall* const (&lanes)[32]));
/// The same for memory that is read or written: then every lane does its own part, and goes on. Whether others are done
/// with theirs, only a __syncwarp() says.
void warp_memory(const WarpCall& call, unsigned bytes);

/// Where elements are: a permutation that no kernel guesses.
struct WarpPlace {
  int row, column;
  /// Of what a lane has.
  WarpPlace(int lane, int slot) {
    const int at = (slot * 32 + lane) * 173 % 256;
    row = at / 16, column = at % 16;
  }
  unsigned offset(unsigned line, bool turned) const {
    return static_cast<unsigned>(turned ? column : row) * line + static_cast<unsigned>(turned ? row : column);
  }
};
/// The matrix that all lanes' elements are.
template <class Element, class Of>
void with_warp_elements(Element (&all)[16][16], const Of& of) {
  for (int lane = 0; lane < 32; ++lane)
    for (int slot = 0; slot < 8; ++slot) {
      const WarpPlace p(lane, slot);
      of(all[p.row][p.column], lane, slot);
    }
}

struct WarpSums {
  static constexpr int kEach = 8;
  float x[kEach];
  WarpSums() { fill(std::numeric_limits<float>::quiet_NaN()); }
  void fill(float v) {
    for (float& e : x) e = v;
  }
  void load(const float* from, unsigned line, std::source_location at = std::source_location::current()) {
    warp_memory({at, from, line}, 4);
    for (int i = 0; i < kEach; ++i) x[i] = from[WarpPlace(static_cast<int>(lane()), i).offset(line, false)];
  }
  void store(float* to, unsigned line, std::source_location at = std::source_location::current()) const {
    warp_memory({at, to, line}, 4);
    for (int i = 0; i < kEach; ++i) to[WarpPlace(static_cast<int>(lane()), i).offset(line, false)] = x[i];
  }
};

template <bool Bfloat, bool IsRight, bool Turned>
struct WarpFactor {
  uint16_t bits[8];
  WarpFactor() {
    for (uint16_t& b : bits) b = 0xffff;  // NaN of either type
  }
  void load(const uint16_t* from, unsigned line, std::source_location at = std::source_location::current()) {
    warp_memory({at, from, line}, 2);
    for (int i = 0; i < 8; ++i) bits[i] = from[WarpPlace(static_cast<int>(lane()), i).offset(line, Turned)];
  }
  static void gather(const WarpCall* const (&lanes)[32], int operand, float (&all)[16][16]) {
    with_warp_elements(all, [&](float& to, int lane, int slot) {
      const uint16_t b = static_cast<const WarpFactor*>(lanes[lane]->fragment[operand])->bits[slot];
      to = Bfloat ? tenon::bfloat_to_float(b) : tenon::half_to_float(b);
    });
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
              float a[16][16], b[16][16], c[16][16];
              A::gather(lanes, 1, a);
              B::gather(lanes, 2, b);
              const auto sum = [&](int lane, int slot) -> float& {
                return static_cast<WarpSums*>(lanes[lane]->fragment[0])->x[slot];
              };
              with_warp_elements(c, [&](float& to, int lane, int slot) { to = sum(lane, slot); });
              for (int r = 0; r < 16; ++r)
                for (int k = 0; k < 16; ++k)
                  for (int n = 0; n < 16; ++n) c[r][n] += a[r][k] * b[k][n];
              with_warp_elements(c, [&](float& from, int lane, int slot) { sum(lane, slot) = from; });
            });
}

}  // namespace simt
