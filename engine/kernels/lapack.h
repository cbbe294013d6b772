#pragma once
#include <cstdint>
#include <string>

// LAPACK on single row-major matrices without gaps. Every call runs on the calling thread alone: an OpenBLAS behind
// LAPACK is told so, because it would split work by the number of threads and so change bits. Batches are split over
// threads above, one matrix a piece or more.
namespace tenon::kernels::lapack {

/// Factor, solve and decompose; T is float or double. Each returns LAPACK's info: 0, or k > 0 for a failure at the k-th
/// step.
template <class T>
int potrf(int64_t n, T* a);  ///< lower Cholesky factor in the lower triangle
template <class T>
int getrf(int64_t n, T* a, int* pivots);
template <class T>
int getri(int64_t n, T* a, const int* pivots);
template <class T>
int gesv(int64_t n, int64_t rhs, T* a, int* pivots, T* b);
template <class T>
int trtrs(bool upper, bool unit, int64_t n, int64_t rhs, const T* a, T* b);
template <class T>
int geqrf(int64_t m, int64_t n, T* a, T* tau);
template <class T>
int orgqr(int64_t m, int64_t n, int64_t k, T* a, const T* tau);
template <class T>
int syev(int64_t n, T* a, T* w);  ///< eigenvectors replace a, as columns
template <class T>
int gesdd(int64_t m, int64_t n, T* a, T* s, T* u, T* vt);  ///< reduced

}  // namespace tenon::kernels::lapack
