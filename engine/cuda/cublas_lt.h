#pragma once
#include <cstddef>
#include <cstdint>

#include "core/cuda/runtime.h"

// What is called of cuBLASLt (Note [Libraries of the GPU]), by NVIDIA's documentation "cuBLAS: Using the cuBLASLt API".
// Names are NVIDIA's in this house's spelling; product.cu holds them against cublasLt.h where it is there.
namespace tenon::cuda::cublas {

enum Status : int { success = 0 };
enum DataType : int { real_f32 = 0, real_f64 = 1, real_f16 = 2, real_bf16 = 14 };
enum ComputeType : int { compute_f32 = 68, compute_f64 = 70, compute_tf32 = 77 };
enum Operation : int32_t { plain = 0, transposed = 1 };
enum Epilogue : uint32_t { epilogue_bias = 4 };
enum ReductionScheme : uint32_t { reduction_none = 0, reduction_compute_type = 2 };

enum DescAttribute : int { desc_transa = 3, desc_transb = 4, desc_epilogue = 7, desc_bias_pointer = 8 };
enum LayoutAttribute : int { layout_batch_count = 5, layout_batch_stride = 6 };
enum PreferenceAttribute : int {
  preference_workspace_bytes = 1,
  preference_reduction_schemes = 3,
  preference_alignment_a = 5,
  preference_alignment_b = 6,
  preference_alignment_c = 7,
  preference_alignment_d = 8,
};

struct Algo {
  uint64_t data[8];
};
struct Heuristic {
  Algo algo;
  size_t workspace;
  int state;  ///< a Status
  float waves;
  int reserved[4];
};

using Handle = struct HandleOpaque*;
using Desc = struct DescOpaque*;
using Layout = struct LayoutOpaque*;
using Preference = struct PreferenceOpaque*;

size_t version();
int create(Handle*);
int desc_create(Desc*, int compute_type, int scale_type);
int desc_destroy(Desc);
int desc_set(Desc, int attribute, const void* value, size_t bytes);
int layout_create(Layout*, int type, uint64_t rows, uint64_t cols, int64_t ld);
int layout_destroy(Layout);
int layout_set(Layout, int attribute, const void* value, size_t bytes);
int preference_create(Preference*);
int preference_destroy(Preference);
int preference_set(Preference, int attribute, const void* value, size_t bytes);
int heuristic(Handle, Desc, Layout a, Layout b, Layout c, Layout d, Preference, int wanted, Heuristic* results,
              int* found);
int matmul(Handle, Desc, const void* alpha, const void* a, Layout, const void* b, Layout, const void* beta,
           const void* c, Layout, void* d, Layout, const Algo*, void* workspace, size_t workspace_bytes, cudaStream_t);
const char* status_name(int status);

}  // namespace tenon::cuda::cublas
