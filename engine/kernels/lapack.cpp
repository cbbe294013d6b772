#include "engine/kernels/lapack.h"

#include <dlfcn.h>
#include <lapacke.h>

#include <algorithm>

namespace tenon::kernels::lapack {
namespace {

// Before the first call; the setting is the library's, for the life of the process.
void single_threaded() {
  static const bool done = [] {
    if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) set(1);
    return true;
  }();
  (void)done;
}

constexpr int kRows = LAPACK_ROW_MAJOR;
int size(int64_t n) { return static_cast<int>(n); }
int lead(int64_t n) { return std::max(1, static_cast<int>(n)); }

}  // namespace

#define TENON_LAPACK(T, P)                                                                                            \
  template <>                                                                                                         \
  int potrf<T>(int64_t n, T * a) {                                                                                    \
    return single_threaded(), LAPACKE_##P##potrf(kRows, 'L', size(n), a, lead(n));                                    \
  }                                                                                                                   \
  template <>                                                                                                         \
  int getrf<T>(int64_t n, T * a, int* p) {                                                                            \
    return single_threaded(), LAPACKE_##P##getrf(kRows, size(n), size(n), a, lead(n), p);                             \
  }                                                                                                                   \
  template <>                                                                                                         \
  int getri<T>(int64_t n, T * a, const int* p) {                                                                      \
    return single_threaded(), LAPACKE_##P##getri(kRows, size(n), a, lead(n), p);                                      \
  }                                                                                                                   \
  template <>                                                                                                         \
  int gesv<T>(int64_t n, int64_t rhs, T * a, int* p, T* b) {                                                          \
    return single_threaded(), LAPACKE_##P##gesv(kRows, size(n), size(rhs), a, lead(n), p, b, lead(rhs));              \
  }                                                                                                                   \
  template <>                                                                                                         \
  int trtrs<T>(bool upper, bool unit, int64_t n, int64_t rhs, const T* a, T* b) {                                     \
    return single_threaded(), LAPACKE_##P##trtrs(kRows, upper ? 'U' : 'L', 'N', unit ? 'U' : 'N', size(n), size(rhs), \
                                                 a, lead(n), b, lead(rhs));                                           \
  }                                                                                                                   \
  template <>                                                                                                         \
  int geqrf<T>(int64_t m, int64_t n, T * a, T * tau) {                                                                \
    return single_threaded(), LAPACKE_##P##geqrf(kRows, size(m), size(n), a, lead(n), tau);                           \
  }                                                                                                                   \
  template <>                                                                                                         \
  int orgqr<T>(int64_t m, int64_t n, int64_t k, T * a, const T* tau) {                                                \
    return single_threaded(), LAPACKE_##P##orgqr(kRows, size(m), size(n), size(k), a, lead(n), tau);                  \
  }                                                                                                                   \
  template <>                                                                                                         \
  int syev<T>(int64_t n, T * a, T * w) {                                                                              \
    return single_threaded(), LAPACKE_##P##syevd(kRows, 'V', 'L', size(n), a, lead(n), w);                            \
  }                                                                                                                   \
  template <>                                                                                                         \
  int gesdd<T>(int64_t m, int64_t n, T * a, T * s, T * u, T * vt) {                                                   \
    return single_threaded(),                                                                                         \
           LAPACKE_##P##gesdd(kRows, 'S', size(m), size(n), a, lead(n), s, u, lead(std::min(m, n)), vt, lead(n));     \
  }
TENON_LAPACK(float, s)
TENON_LAPACK(double, d)
#undef TENON_LAPACK

}  // namespace tenon::kernels::lapack
