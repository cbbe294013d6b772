#include "engine/cuda/cudnn.h"

#include <cstdio>
#include <type_traits>

#include "core/cuda/library.h"
#include "engine/cuda/product.h"

#if defined(__CUDACC__) && __has_include(<cudnn.h>)
#include <cudnn.h>
namespace tenon::cuda::cudnn {
constexpr bool equals(int64_t ours, int64_t theirs) { return ours == theirs; }
static_assert(equals(success, CUDNN_STATUS_SUCCESS) && equals(bad_param, CUDNN_STATUS_BAD_PARAM) &&
              equals(not_supported, CUDNN_STATUS_NOT_SUPPORTED) && equals(real_f32, CUDNN_DATA_FLOAT) &&
              equals(real_f64, CUDNN_DATA_DOUBLE) && equals(real_f16, CUDNN_DATA_HALF) &&
              equals(real_bf16, CUDNN_DATA_BFLOAT16) && equals(default_math, CUDNN_DEFAULT_MATH) &&
              equals(tensor_op_math, CUDNN_TENSOR_OP_MATH) && equals(fma_math, CUDNN_FMA_MATH) &&
              equals(tensor_op_math_with_conversion, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) &&
              equals(nchw, CUDNN_TENSOR_NCHW) && equals(nhwc, CUDNN_TENSOR_NHWC) &&
              equals(cross_correlation, CUDNN_CROSS_CORRELATION) &&
              equals(not_deterministic, CUDNN_NON_DETERMINISTIC) && equals(deterministic, CUDNN_DETERMINISTIC) &&
              equals(identity, CUDNN_ACTIVATION_IDENTITY) && equals(propagate_nan, CUDNN_PROPAGATE_NAN));
static_assert(equals(forward_implicit_gemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) &&
              equals(forward_precomputed_gemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) &&
              equals(forward_gemm, CUDNN_CONVOLUTION_FWD_ALGO_GEMM) &&
              equals(forward_direct, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT) &&
              equals(forward_algos, CUDNN_CONVOLUTION_FWD_ALGO_COUNT) &&
              equals(data_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0) && equals(data_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1) &&
              equals(data_algos, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT) &&
              equals(filter_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0) &&
              equals(filter_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1) &&
              equals(filter_3, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3) &&
              equals(filter_algos, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT));
template <class Theirs>
constexpr bool kSamePerf = sizeof(Perf) == sizeof(Theirs) && offsetof(Perf, algo) == offsetof(Theirs, algo) &&
                           offsetof(Perf, status) == offsetof(Theirs, status) &&
                           offsetof(Perf, memory) == offsetof(Theirs, memory) &&
                           offsetof(Perf, determinism) == offsetof(Theirs, determinism) &&
                           offsetof(Perf, math) == offsetof(Theirs, mathType);
static_assert(kSamePerf<cudnnConvolutionFwdAlgoPerf_t> && kSamePerf<cudnnConvolutionBwdDataAlgoPerf_t> &&
              kSamePerf<cudnnConvolutionBwdFilterAlgoPerf_t>);

/// An operand of one of our declarations is handed over as one of theirs: a handle for the same kind of handle.
template <class Ours, class Theirs>
constexpr bool kSameOperand =
    sizeof(Ours) == sizeof(Theirs) &&
    std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>&& std::is_floating_point_v<Ours> ==
        std::is_floating_point_v<Theirs>&& std::is_same_v<Ours, Handle> ==
        std::is_same_v<Theirs, cudnnHandle_t>&& std::is_same_v<Ours, TensorDesc> ==
        std::is_same_v<Theirs, cudnnTensorDescriptor_t>&& std::is_same_v<Ours, FilterDesc> ==
        std::is_same_v<Theirs, cudnnFilterDescriptor_t>&& std::is_same_v<Ours, ConvDesc> ==
        std::is_same_v<Theirs, cudnnConvolutionDescriptor_t>&& std::is_same_v<Ours, ActivationDesc> ==
        std::is_same_v<Theirs, cudnnActivationDescriptor_t>&& std::is_same_v<Ours, const void*> ==
        std::is_same_v<Theirs, const void*>&& std::is_same_v<Ours, void*> == std::is_same_v<Theirs, void*>;
template <class OursResult, class... Ours, class TheirsResult, class... Theirs>
constexpr bool takes_the_same(OursResult (*)(Ours...), TheirsResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs))
    return false;
  else
    return sizeof(OursResult) == sizeof(TheirsResult) && (kSameOperand<Ours, Theirs> && ...);
}
static_assert(takes_the_same(tensor_set, cudnnSetTensor4dDescriptorEx) &&
              takes_the_same(filter_set, cudnnSetFilter4dDescriptor) && takes_the_same(set_stream, cudnnSetStream) &&
              takes_the_same(conv_set, cudnnSetConvolution2dDescriptor) &&
              takes_the_same(conv_set_groups, cudnnSetConvolutionGroupCount) &&
              takes_the_same(conv_set_math, cudnnSetConvolutionMathType) &&
              takes_the_same(activation_set, cudnnSetActivationDescriptor) &&
              takes_the_same(forward_find, cudnnGetConvolutionForwardAlgorithm_v7) &&
              takes_the_same(data_find, cudnnGetConvolutionBackwardDataAlgorithm_v7) &&
              takes_the_same(filter_find, cudnnGetConvolutionBackwardFilterAlgorithm_v7) &&
              takes_the_same(forward_room, cudnnGetConvolutionForwardWorkspaceSize) &&
              takes_the_same(data_room, cudnnGetConvolutionBackwardDataWorkspaceSize) &&
              takes_the_same(filter_room, cudnnGetConvolutionBackwardFilterWorkspaceSize) &&
              takes_the_same(forward, cudnnConvolutionForward) &&
              takes_the_same(forward_bias, cudnnConvolutionBiasActivationForward) &&
              takes_the_same(backward_data, cudnnConvolutionBackwardData) &&
              takes_the_same(backward_filter, cudnnConvolutionBackwardFilter));
}  // namespace tenon::cuda::cudnn
#endif

namespace tenon::cuda::cudnn {
namespace {

#if CUDART_VERSION >= 13000
#define TENON_CUDNN_PACKAGE "nvidia-cudnn-cu13"
#else
#define TENON_CUDNN_PACKAGE "nvidia-cudnn-cu12"
#endif

const Library cudnn_library(kName, "libcudnn.so.9", "computes convolutions",
                            "kernels of Tenon's own compute convolutions", TENON_CUDNN_PACKAGE,
                            [](const Library& l, char* text, size_t room) {
                              decltype(version)* call = nullptr;
                              if (!l.find(call, "cudnnGetVersion")) return;
                              const size_t v = call();  // 9.19.0 is 91900
                              std::snprintf(text, room, "%zu.%zu.%zu", v / 10000, v % 10000 / 100, v % 100);
                            });

}  // namespace

Calls::Calls() {
  // It opens cuBLASLt by its name alone, and then finds the one that is open already.
  cublas_there();
  const Library& l = cudnn_library;
  found = l.find(error_string, "cudnnGetErrorString") && l.find(create, "cudnnCreate") &&
          l.find(set_stream, "cudnnSetStream") && l.find(tensor_create, "cudnnCreateTensorDescriptor") &&
          l.find(tensor_set, "cudnnSetTensor4dDescriptorEx") && l.find(filter_create, "cudnnCreateFilterDescriptor") &&
          l.find(filter_set, "cudnnSetFilter4dDescriptor") && l.find(conv_create, "cudnnCreateConvolutionDescriptor") &&
          l.find(conv_set, "cudnnSetConvolution2dDescriptor") &&
          l.find(conv_set_groups, "cudnnSetConvolutionGroupCount") &&
          l.find(conv_set_math, "cudnnSetConvolutionMathType") &&
          l.find(activation_create, "cudnnCreateActivationDescriptor") &&
          l.find(activation_set, "cudnnSetActivationDescriptor") &&
          l.find(forward_find, "cudnnGetConvolutionForwardAlgorithm_v7") &&
          l.find(data_find, "cudnnGetConvolutionBackwardDataAlgorithm_v7") &&
          l.find(filter_find, "cudnnGetConvolutionBackwardFilterAlgorithm_v7") &&
          l.find(forward_room, "cudnnGetConvolutionForwardWorkspaceSize") &&
          l.find(data_room, "cudnnGetConvolutionBackwardDataWorkspaceSize") &&
          l.find(filter_room, "cudnnGetConvolutionBackwardFilterWorkspaceSize") &&
          l.find(forward, "cudnnConvolutionForward") && l.find(forward_bias, "cudnnConvolutionBiasActivationForward") &&
          l.find(backward_data, "cudnnConvolutionBackwardData") &&
          l.find(backward_filter, "cudnnConvolutionBackwardFilter");
}

const Calls& calls() {
  static const Calls all;
  return all;
}

}  // namespace tenon::cuda::cudnn
