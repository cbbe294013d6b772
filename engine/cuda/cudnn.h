#pragma once
#include <cstddef>
#include <cstdint>

#include "core/cuda/runtime.h"

// What is called of cuDNN 9 (Note [Libraries of the GPU]), by NVIDIA's documentation of its libraries cudnn_ops and
// cudnn_cnn. Names are NVIDIA's in this house's spelling; cudnn.cu holds them against cudnn.h where it is there.
namespace tenon::cuda::cudnn {

/// The thousands of a status are its kind: those of bad_param and not_supported come before anything is queued.
enum Status : int { success = 0, bad_param = 2000, not_supported = 3000 };
enum DataType : int { real_f32 = 0, real_f64 = 1, real_f16 = 2, real_bf16 = 9 };
enum MathType : int { default_math = 0, tensor_op_math = 1, tensor_op_math_with_conversion = 2, fma_math = 3 };
enum Format : int { nchw = 0, nhwc = 1 };
enum ConvolutionMode : int { cross_correlation = 1 };
enum Determinism : int { not_deterministic = 0, deterministic = 1 };
enum ActivationMode : int { identity = 5 };
enum NanPropagation : int { propagate_nan = 1 };

enum ForwardAlgo : int {
  forward_implicit_gemm = 0,
  forward_precomputed_gemm = 1,
  forward_gemm = 2,
  forward_direct = 3,
  forward_fft = 4,
  forward_fft_tiling = 5,
  forward_winograd = 6,
  forward_winograd_nonfused = 7,
  forward_algos = 8,
};
enum DataAlgo : int {
  data_0 = 0,
  data_1 = 1,
  data_fft = 2,
  data_fft_tiling = 3,
  data_winograd = 4,
  data_winograd_nonfused = 5,
  data_algos = 6,
};
enum FilterAlgo : int {
  filter_0 = 0,
  filter_1 = 1,
  filter_fft = 2,
  filter_3 = 3,
  filter_winograd = 4,
  filter_winograd_nonfused = 5,
  filter_fft_tiling = 6,
  filter_algos = 7,
};

/// Of an algorithm that was asked for: one struct for the three passes.
struct Perf {
  int algo, status;
  float time;
  size_t memory;
  int determinism, math;
  int reserved[3];
};

using Handle = struct HandleOpaque*;
using TensorDesc = struct TensorDescOpaque*;
using FilterDesc = struct FilterDescOpaque*;
using ConvDesc = struct ConvDescOpaque*;
using ActivationDesc = struct ActivationDescOpaque*;

size_t version();
const char* error_string(int status);
int create(Handle*);
int set_stream(Handle, cudaStream_t);
int tensor_create(TensorDesc*);
int tensor_set(TensorDesc, int type, int n, int c, int h, int w, int by_n, int by_c, int by_h, int by_w);
int filter_create(FilterDesc*);
int filter_set(FilterDesc, int type, int format, int k, int c, int h, int w);
int conv_create(ConvDesc*);
int conv_set(ConvDesc, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int mode,
             int compute_type);
int conv_set_groups(ConvDesc, int groups);
int conv_set_math(ConvDesc, int math);
int activation_create(ActivationDesc*);
int activation_set(ActivationDesc, int mode, int nan_propagation, double coefficient);

int forward_find(Handle, TensorDesc x, FilterDesc w, ConvDesc, TensorDesc y, int wanted, int* found, Perf* results);
int data_find(Handle, FilterDesc w, TensorDesc dy, ConvDesc, TensorDesc dx, int wanted, int* found, Perf* results);
int filter_find(Handle, TensorDesc x, TensorDesc dy, ConvDesc, FilterDesc dw, int wanted, int* found, Perf* results);
int forward_room(Handle, TensorDesc x, FilterDesc w, ConvDesc, TensorDesc y, int algo, size_t* bytes);
int data_room(Handle, FilterDesc w, TensorDesc dy, ConvDesc, TensorDesc dx, int algo, size_t* bytes);
int filter_room(Handle, TensorDesc x, TensorDesc dy, ConvDesc, FilterDesc dw, int algo, size_t* bytes);

int forward(Handle, const void* alpha, TensorDesc, const void* x, FilterDesc, const void* w, ConvDesc, int algo,
            void* workspace, size_t workspace_bytes, const void* beta, TensorDesc, void* y);
/// y = identity(alpha conv(x) + beta z + bias), rounded once.
int forward_bias(Handle, const void* alpha, TensorDesc, const void* x, FilterDesc, const void* w, ConvDesc, int algo,
                 void* workspace, size_t workspace_bytes, const void* beta, TensorDesc, const void* z, TensorDesc,
                 const void* bias, ActivationDesc, TensorDesc, void* y);
int backward_data(Handle, const void* alpha, FilterDesc, const void* w, TensorDesc, const void* dy, ConvDesc, int algo,
                  void* workspace, size_t workspace_bytes, const void* beta, TensorDesc, void* dx);
int backward_filter(Handle, const void* alpha, TensorDesc, const void* x, TensorDesc, const void* dy, ConvDesc,
                    int algo, void* workspace, size_t workspace_bytes, const void* beta, FilterDesc, void* dw);

inline constexpr const char* kName = "cuDNN";

/// The functions above. The first use opens the library.
struct Calls {
  decltype(cudnn::error_string)* error_string;
  decltype(cudnn::create)* create;
  decltype(cudnn::set_stream)* set_stream;
  decltype(cudnn::tensor_create)* tensor_create;
  decltype(cudnn::tensor_set)* tensor_set;
  decltype(cudnn::filter_create)* filter_create;
  decltype(cudnn::filter_set)* filter_set;
  decltype(cudnn::conv_create)* conv_create;
  decltype(cudnn::conv_set)* conv_set;
  decltype(cudnn::conv_set_groups)* conv_set_groups;
  decltype(cudnn::conv_set_math)* conv_set_math;
  decltype(cudnn::activation_create)* activation_create;
  decltype(cudnn::activation_set)* activation_set;
  decltype(cudnn::forward_find)* forward_find;
  decltype(cudnn::data_find)* data_find;
  decltype(cudnn::filter_find)* filter_find;
  decltype(cudnn::forward_room)* forward_room;
  decltype(cudnn::data_room)* data_room;
  decltype(cudnn::filter_room)* filter_room;
  decltype(cudnn::forward)* forward;
  decltype(cudnn::forward_bias)* forward_bias;
  decltype(cudnn::backward_data)* backward_data;
  decltype(cudnn::backward_filter)* backward_filter;
  bool found;  ///< all of them

  Calls();
};
const Calls& calls();

}  // namespace tenon::cuda::cudnn
