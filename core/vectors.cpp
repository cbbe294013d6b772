#include "core/vectors.h"

#include <cstdlib>

namespace tenon {
namespace {

bool processor_has_wide_vectors() {
#if TENON_WIDE_VECTORS
  __builtin_cpu_init();  // what runs before main() must ask for it
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         !std::getenv("TENON_NARROW_VECTORS");
#else
  return false;
#endif
}

const bool g_processor_has_them = processor_has_wide_vectors();

}  // namespace

bool detail::wide_vectors = g_processor_has_them;

void allow_wide_vectors(bool allowed) { detail::wide_vectors = allowed && g_processor_has_them; }

}  // namespace tenon
