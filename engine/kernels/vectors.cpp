#include "engine/kernels/vectors.h"

#include <cstdlib>

namespace tenon::kernels {
namespace {

bool processor_has_wide_vectors() {
#if TENON_WIDE_VECTORS
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         !std::getenv("TENON_NARROW_VECTORS");
#else
  return false;
#endif
}

bool g_allowed = true;

}  // namespace

bool has_wide_vectors() {
  static const bool has = processor_has_wide_vectors();
  return has && g_allowed;
}
void allow_wide_vectors(bool allowed) { g_allowed = allowed; }

}  // namespace tenon::kernels
