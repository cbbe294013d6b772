#pragma once
#include <cstdint>

namespace tenon {

// Note [Wide vectors]
// The program is built for vectors of 256 bits. Where this processor has 512, the tiles of products
// (engine/kernels/tiles.cpp) and loops over long formulas are compiled a second time for them: half as many
// instructions, so that more elements are on their way at once. The formulas are the same, without contraction, and so
// are the bits.
#if defined(__x86_64__) && !defined(__clang__)  // which cannot be told how wide
#define TENON_WIDE_VECTORS 1
#else
#define TENON_WIDE_VECTORS 0
#endif

namespace detail {
extern bool wide_vectors;  ///< set before anything is computed
/// A function of its own, as the other is: within a caller's code the compiler left loops without any vectors.
template <class F>
[[gnu::noinline]] void in_plain_vectors(const F& f) {
  f();
}
#if TENON_WIDE_VECTORS
template <class F>
[[gnu::target("avx512f,avx512vl,avx512dq,avx512bw,prefer-vector-width=512")]] void in_wide_vectors(const F& f) {
  f();
}
#endif
}  // namespace detail

/// Whether this processor has vectors of 512 bits that the program can use. The variable TENON_NARROW_VECTORS says no.
inline bool has_wide_vectors() { return detail::wide_vectors; }
/// For tests: as if the processor had none (false), or as it is (true). Not while something is computed.
void allow_wide_vectors(bool allowed);

/// Runs a loop over n elements in the widest vectors that are worth it. f() must be inlined always:
/// [&]() __attribute__((always_inline)).
template <class F>
inline void in_vectors([[maybe_unused]] int64_t n, const F& f) {
#if TENON_WIDE_VECTORS
  constexpr int64_t kFew = 64;  // fewer end before the constants of a long formula have filled vectors twice as wide
  if (n >= kFew && has_wide_vectors()) return detail::in_wide_vectors(f);
#endif
  detail::in_plain_vectors(f);
}

}  // namespace tenon
