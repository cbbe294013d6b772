#pragma once

/// In front of a function that kernels of the GPU call too: nvcc makes it for both.
#ifdef __CUDACC__
#define TENON_HD __host__ __device__
#else
#define TENON_HD
#endif
