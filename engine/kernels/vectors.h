#pragma once

namespace tenon::kernels {

// Note [Wide vectors]
// The program is built for vectors of 256 bits. Where this processor has 512, the tiles of products (tiles.cpp) and
// long formulas (rnn.cpp) are compiled a second time for them: half as many instructions, so that more units are on
// their way at once. The formulas are the same, without contraction, and so are the bits.
#if defined(__x86_64__) && !defined(__clang__)  // which cannot be told how wide
#define TENON_WIDE_VECTORS 1
#else
#define TENON_WIDE_VECTORS 0
#endif

/// Whether this processor has vectors of 512 bits that the program can use. The variable TENON_NARROW_VECTORS says no.
bool has_wide_vectors();
/// For tests: as if the processor had none (false), or as it is (true). Not while something is computed.
void allow_wide_vectors(bool allowed);

}  // namespace tenon::kernels
