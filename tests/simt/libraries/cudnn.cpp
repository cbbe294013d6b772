// cuDNN for the emulated GPU: the calls of engine/cuda/cudnn.h, computed as its documentation says, on the handle's
// stream. Descriptions that the real library would refuse are refused, and what a call may not depend on (a result
// where beta is 0) is not read. The algorithms that are offered first are those that must not be taken: a call of any
// but the last one is refused.
#include <simt_runtime.h>

#include <algorithm>
#include <cstring>

#include "engine/cuda/cudnn.h"
#include "tests/simt/libraries/numbers.h"

namespace cudnn = tenon::cuda::cudnn;
using tenon::DType;

namespace tenon::cuda::cudnn {
struct HandleOpaque {
  cudaStream_t stream = nullptr;
};
struct TensorDescOpaque {
  int type = -1;
  int64_t size[4] = {}, stride[4] = {};
  int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return n * stride[0] + c * stride[1] + h * stride[2] + w * stride[3];
  }
};
struct FilterDescOpaque {
  int type = -1, format = nchw;
  int64_t size[4] = {};
  int64_t at(int64_t k, int64_t c, int64_t h, int64_t w) const {
    return format == nhwc ? ((k * size[2] + h) * size[3] + w) * size[1] + c
                          : ((k * size[1] + c) * size[2] + h) * size[3] + w;
  }
};
struct ConvDescOpaque {
  int64_t pad[2] = {}, stride[2] = {}, dilation[2] = {}, groups = 1;
  int compute = -1, math = default_math;
};
struct ActivationDescOpaque {
  int mode = -1;
};
}  // namespace tenon::cuda::cudnn

namespace {

constexpr size_t kConvRoom = 4096;  // of working memory, whose use is proven by writing all of it
constexpr size_t kTooMuch = size_t{1} << 30;

DType dnn_dtype(int type) {
  return type == cudnn::real_f64    ? DType::f64
         : type == cudnn::real_f16  ? DType::f16
         : type == cudnn::real_bf16 ? DType::bf16
                                    : DType::f32;
}
bool known_type(int type) {
  return type == cudnn::real_f32 || type == cudnn::real_f64 || type == cudnn::real_f16 || type == cudnn::real_bf16;
}

enum class Pass { forward, data, filter };

/// A convolution with everything that was described, as of the call.
struct Conv {
  cudnn::TensorDescOpaque x, y;
  cudnn::FilterDescOpaque w;
  cudnn::ConvDescOpaque how;
  DType type;

  bool by_tf32() const { return type == DType::f32 && how.math != cudnn::fma_math; }
  double read(const void* data, int64_t at) const {
    const double x = tenon::emulated::number_at(data, type, at);
    return by_tf32() ? tenon::emulated::as_tf32(x) : x;
  }
  int64_t in_group() const { return w.size[1]; }
  int64_t out_group() const { return w.size[0] / how.groups; }
  /// The row (axis 0) or column of x under a tap; negative outside.
  int64_t under(int axis, int64_t out, int64_t tap) const {
    const int64_t at = out * how.stride[axis] - how.pad[axis] + tap * how.dilation[axis];
    return at < x.size[axis + 2] ? at : -1;
  }
};

bool packed_nhwc(const cudnn::TensorDescOpaque& t) {
  int64_t step = 1;
  for (const int axis : {1, 3, 2, 0}) {
    if (t.stride[axis] != step) return false;
    step *= t.size[axis];
  }
  return true;
}

int conv_of(cudnn::TensorDesc x, cudnn::FilterDesc w, cudnn::ConvDesc how, cudnn::TensorDesc y, Conv* conv) {
  if (!x || !w || !how || !y || !known_type(x->type) || x->type != w->type || x->type != y->type || how->compute < 0)
    return cudnn::bad_param;
  *conv = {*x, *y, *w, *how, dnn_dtype(x->type)};
  if (how->compute != (conv->type == DType::f64 ? cudnn::real_f64 : cudnn::real_f32)) return cudnn::not_supported;
  bool fits = x->size[0] == y->size[0] && x->size[1] == w->size[1] * how->groups && y->size[1] == w->size[0] &&
              w->size[0] % how->groups == 0;
  for (int i = 0; i < 2; ++i)
    fits = fits &&
           y->size[i + 2] ==
               (x->size[i + 2] + 2 * how->pad[i] - how->dilation[i] * (w->size[i + 2] - 1) - 1) / how->stride[i] + 1;
  if (!fits) return cudnn::bad_param;
  if (w->format != cudnn::nhwc) return cudnn::success;
  const bool dilated = how->dilation[0] > 1 || how->dilation[1] > 1;
  return conv->type == DType::f64 || dilated || !packed_nhwc(*x) || !packed_nhwc(*y) ? cudnn::not_supported
                                                                                     : cudnn::success;
}

/// The one algorithm of a pass that may be called.
int right_algo(Pass pass, const Conv& conv) {
  if (pass == Pass::data) return cudnn::data_1;
  if (pass == Pass::filter) return cudnn::filter_1;
  return conv.w.format == cudnn::nhwc ? cudnn::forward_precomputed_gemm : cudnn::forward_implicit_gemm;
}
size_t room_of(Pass pass, const Conv& conv) {
  return pass == Pass::forward && right_algo(pass, conv) == cudnn::forward_implicit_gemm ? 0 : kConvRoom;
}

int offer(Pass pass, int status, const Conv& conv, int wanted, int* found, cudnn::Perf* results) {
  *found = 0;
  if (status == cudnn::bad_param || wanted < 1) return cudnn::bad_param;
  const int good = right_algo(pass, conv);
  const auto one_of = [pass](int forward, int data, int filter) {
    return pass == Pass::forward ? forward : pass == Pass::data ? data : filter;
  };
  const int ways = one_of(cudnn::forward_algos, cudnn::data_algos, cudnn::filter_algos);
  const cudnn::Perf all[] = {
      {one_of(cudnn::forward_gemm, cudnn::data_0, cudnn::filter_0),
       0,
       1,
       0,
       cudnn::not_deterministic,
       conv.how.math,
       {}},
      {one_of(cudnn::forward_winograd, cudnn::data_winograd, cudnn::filter_winograd_nonfused),
       0,
       2,
       0,
       cudnn::deterministic,
       conv.how.math,
       {}},
      {good, 0, 3, kTooMuch, cudnn::deterministic, cudnn::tensor_op_math_with_conversion, {}},
      // Of f32 by TF32; of halves the same algorithm without tensor cores, on this device impossible.
      {good,
       conv.type == DType::f32 ? 0 : 3000,
       4,
       0,
       cudnn::deterministic,
       conv.type == DType::f32 ? cudnn::tensor_op_math : cudnn::fma_math,
       {}},
      {good, 0, 5, room_of(pass, conv), cudnn::deterministic, conv.how.math, {}},
  };
  static_assert(std::size(all) <= cudnn::data_algos);
  *found = std::min(std::min(wanted, ways), static_cast<int>(std::size(all)));
  std::copy_n(all, *found, results);
  if (status)
    for (int i = 0; i < *found; ++i) results[i].status = status;
  return cudnn::success;
}

int room(Pass pass, int status, const Conv& conv, int algo, size_t* bytes) {
  if (status) return status;
  *bytes = conv.how.math == cudnn::tensor_op_math_with_conversion ? kTooMuch
           : algo == right_algo(pass, conv)                       ? room_of(pass, conv)
                                                                  : 0;
  return cudnn::success;
}

/// What every call is held against.
int callable(Pass pass, int status, const Conv& conv, int algo, const void* workspace, size_t bytes) {
  if (status) return status;
  const int math = conv.type == DType::f64   ? cudnn::default_math
                   : conv.type == DType::f32 ? cudnn::fma_math
                                             : cudnn::tensor_op_math;
  if (algo != right_algo(pass, conv) || (conv.how.math != math && !conv.by_tf32())) return cudnn::not_supported;
  if (conv.how.pad[0] > 2) return cudnn::not_supported;  // so that a caller is seen to bear what was offered in vain
  return bytes < room_of(pass, conv) || (bytes > 0 && !workspace) ? cudnn::bad_param : cudnn::success;
}

double scale_of(const Conv& conv, const void* at) {
  return conv.type == DType::f64 ? *static_cast<const double*>(at) : double{*static_cast<const float*>(at)};
}

/// A result of which element `at` is `sum`.
struct Target {
  double alpha, beta;
  void* data;
  void put(const Conv& conv, int64_t at, double sum, double more = 0) const {
    sum = alpha * sum + more;
    if (beta != 0) sum += beta * tenon::emulated::number_at(data, conv.type, at);
    tenon::emulated::put_number(data, conv.type, at, sum);
  }
};

void compute_forward(const Conv& c, const void* x, const void* w, const void* bias, const Target& y) {
  for (int64_t n = 0; n < c.y.size[0]; ++n)
    for (int64_t k = 0; k < c.y.size[1]; ++k)
      for (int64_t row = 0; row < c.y.size[2]; ++row)
        for (int64_t col = 0; col < c.y.size[3]; ++col) {
          double sum = 0;
          for (int64_t i = 0; i < c.in_group(); ++i)
            for (int64_t ky = 0; ky < c.w.size[2]; ++ky)
              for (int64_t kx = 0; kx < c.w.size[3]; ++kx) {
                const int64_t h = c.under(0, row, ky), at = c.under(1, col, kx);
                if (h < 0 || at < 0) continue;
                sum +=
                    c.read(x, c.x.at(n, k / c.out_group() * c.in_group() + i, h, at)) * c.read(w, c.w.at(k, i, ky, kx));
              }
          y.put(c, c.y.at(n, k, row, col), sum, bias ? tenon::emulated::number_at(bias, c.type, k) : 0);
        }
}

/// The output whose tap lies over place `at` of x, or -1.
int64_t over(const Conv& c, int axis, int64_t at, int64_t tap) {
  const int64_t from = at + c.how.pad[axis] - tap * c.how.dilation[axis];
  if (from < 0 || from % c.how.stride[axis]) return -1;
  return from / c.how.stride[axis] < c.y.size[axis + 2] ? from / c.how.stride[axis] : -1;
}

void compute_data(const Conv& c, const void* w, const void* dy, const Target& dx) {
  for (int64_t n = 0; n < c.x.size[0]; ++n)
    for (int64_t i = 0; i < c.x.size[1]; ++i)
      for (int64_t row = 0; row < c.x.size[2]; ++row)
        for (int64_t col = 0; col < c.x.size[3]; ++col) {
          double sum = 0;
          for (int64_t of_group = 0; of_group < c.out_group(); ++of_group)
            for (int64_t ky = 0; ky < c.w.size[2]; ++ky)
              for (int64_t kx = 0; kx < c.w.size[3]; ++kx) {
                const int64_t h = over(c, 0, row, ky), at = over(c, 1, col, kx);
                const int64_t k = i / c.in_group() * c.out_group() + of_group;
                if (h < 0 || at < 0) continue;
                sum += c.read(dy, c.y.at(n, k, h, at)) * c.read(w, c.w.at(k, i % c.in_group(), ky, kx));
              }
          dx.put(c, c.x.at(n, i, row, col), sum);
        }
}

void compute_filter(const Conv& c, const void* x, const void* dy, const Target& dw) {
  for (int64_t k = 0; k < c.w.size[0]; ++k)
    for (int64_t i = 0; i < c.w.size[1]; ++i)
      for (int64_t ky = 0; ky < c.w.size[2]; ++ky)
        for (int64_t kx = 0; kx < c.w.size[3]; ++kx) {
          double sum = 0;
          for (int64_t n = 0; n < c.y.size[0]; ++n)
            for (int64_t row = 0; row < c.y.size[2]; ++row)
              for (int64_t col = 0; col < c.y.size[3]; ++col) {
                const int64_t h = c.under(0, row, ky), at = c.under(1, col, kx);
                if (h < 0 || at < 0) continue;
                sum += c.read(dy, c.y.at(n, k, row, col)) *
                       c.read(x, c.x.at(n, k / c.out_group() * c.in_group() + i, h, at));
              }
          dw.put(c, c.w.at(k, i, ky, kx), sum);
        }
}

/// Queues f after the working memory has been overwritten.
template <class F>
void queue_conv(cudnn::Handle handle, void* workspace, size_t bytes, F f) {
  simt::on_stream(handle->stream, [=] {
    if (bytes) std::memset(simt::reachable(workspace), 0xff, bytes);
    f();
  });
}

template <class T>
int make(T** made) {
  *made = new T;
  return cudnn::success;
}

}  // namespace

#define EMULATED_DNN extern "C" __attribute__((visibility("default")))

EMULATED_DNN size_t cudnnGetVersion() { return 91900; }
EMULATED_DNN const char* cudnnGetErrorString(int status) {
  return status == cudnn::bad_param ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED";
}
EMULATED_DNN int cudnnCreate(cudnn::Handle* handle) { return make(handle); }
EMULATED_DNN int cudnnSetStream(cudnn::Handle handle, cudaStream_t stream) {
  handle->stream = stream;
  return cudnn::success;
}
EMULATED_DNN int cudnnCreateTensorDescriptor(cudnn::TensorDesc* t) { return make(t); }
EMULATED_DNN int cudnnSetTensor4dDescriptorEx(cudnn::TensorDesc t, int type, int n, int c, int h, int w, int by_n,
                                              int by_c, int by_h, int by_w) {
  *t = {type, {n, c, h, w}, {by_n, by_c, by_h, by_w}};
  bool fits = known_type(type);
  int64_t last = 0;
  for (int i = 0; i < 4; ++i)
    fits = fits && t->size[i] > 0 && t->stride[i] > 0, last += (t->size[i] - 1) * t->stride[i];
  return !fits ? cudnn::bad_param : last >= INT32_MAX ? cudnn::not_supported : cudnn::success;
}
EMULATED_DNN int cudnnCreateFilterDescriptor(cudnn::FilterDesc* w) { return make(w); }
EMULATED_DNN int cudnnSetFilter4dDescriptor(cudnn::FilterDesc w, int type, int format, int k, int c, int h, int width) {
  *w = {type, format, {k, c, h, width}};
  const bool fits = known_type(type) && k > 0 && c > 0 && h > 0 && width > 0;
  return fits && (format == cudnn::nchw || format == cudnn::nhwc) ? cudnn::success : cudnn::bad_param;
}
EMULATED_DNN int cudnnCreateConvolutionDescriptor(cudnn::ConvDesc* how) { return make(how); }
EMULATED_DNN int cudnnSetConvolution2dDescriptor(cudnn::ConvDesc how, int pad_h, int pad_w, int stride_h, int stride_w,
                                                 int dilation_h, int dilation_w, int mode, int compute) {
  *how = {{pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}};
  how->compute = compute;
  if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1)
    return cudnn::bad_param;
  return mode == cudnn::cross_correlation ? cudnn::success : cudnn::not_supported;
}
EMULATED_DNN int cudnnSetConvolutionGroupCount(cudnn::ConvDesc how, int groups) {
  how->groups = groups;
  return groups < 1 ? cudnn::bad_param : cudnn::success;
}
EMULATED_DNN int cudnnSetConvolutionMathType(cudnn::ConvDesc how, int math) {
  how->math = math;
  return math < cudnn::default_math || math > cudnn::fma_math ? cudnn::bad_param : cudnn::success;
}
EMULATED_DNN int cudnnCreateActivationDescriptor(cudnn::ActivationDesc* a) { return make(a); }
EMULATED_DNN int cudnnSetActivationDescriptor(cudnn::ActivationDesc a, int mode, int, double) {
  a->mode = mode;
  return cudnn::success;
}

EMULATED_DNN int cudnnGetConvolutionForwardAlgorithm_v7(cudnn::Handle, cudnn::TensorDesc x, cudnn::FilterDesc w,
                                                        cudnn::ConvDesc how, cudnn::TensorDesc y, int wanted,
                                                        int* found, cudnn::Perf* results) {
  Conv c;
  const int status = conv_of(x, w, how, y, &c);
  return offer(Pass::forward, status, c, wanted, found, results);
}
EMULATED_DNN int cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnn::Handle, cudnn::FilterDesc w, cudnn::TensorDesc dy,
                                                             cudnn::ConvDesc how, cudnn::TensorDesc dx, int wanted,
                                                             int* found, cudnn::Perf* results) {
  Conv c;
  const int status = conv_of(dx, w, how, dy, &c);
  return offer(Pass::data, status, c, wanted, found, results);
}
EMULATED_DNN int cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnn::Handle, cudnn::TensorDesc x, cudnn::TensorDesc dy,
                                                               cudnn::ConvDesc how, cudnn::FilterDesc dw, int wanted,
                                                               int* found, cudnn::Perf* results) {
  Conv c;
  const int status = conv_of(x, dw, how, dy, &c);
  return offer(Pass::filter, status, c, wanted, found, results);
}
EMULATED_DNN int cudnnGetConvolutionForwardWorkspaceSize(cudnn::Handle, cudnn::TensorDesc x, cudnn::FilterDesc w,
                                                         cudnn::ConvDesc how, cudnn::TensorDesc y, int algo,
                                                         size_t* bytes) {
  Conv c;
  const int status = conv_of(x, w, how, y, &c);
  return room(Pass::forward, status, c, algo, bytes);
}
EMULATED_DNN int cudnnGetConvolutionBackwardDataWorkspaceSize(cudnn::Handle, cudnn::FilterDesc w, cudnn::TensorDesc dy,
                                                              cudnn::ConvDesc how, cudnn::TensorDesc dx, int algo,
                                                              size_t* bytes) {
  Conv c;
  const int status = conv_of(dx, w, how, dy, &c);
  return room(Pass::data, status, c, algo, bytes);
}
EMULATED_DNN int cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnn::Handle, cudnn::TensorDesc x,
                                                                cudnn::TensorDesc dy, cudnn::ConvDesc how,
                                                                cudnn::FilterDesc dw, int algo, size_t* bytes) {
  Conv c;
  const int status = conv_of(x, dw, how, dy, &c);
  return room(Pass::filter, status, c, algo, bytes);
}

namespace {
int forward_with(cudnn::Handle handle, const void* alpha, cudnn::TensorDesc lx, const void* x, cudnn::FilterDesc lw,
                 const void* w, cudnn::ConvDesc how, int algo, void* workspace, size_t bytes, const void* beta,
                 const void* bias, cudnn::TensorDesc ly, void* y) {
  Conv c;
  int status = conv_of(lx, lw, how, ly, &c);
  status = callable(Pass::forward, status, c, algo, workspace, bytes);
  if (status) return status;
  const Target to{scale_of(c, alpha), scale_of(c, beta), simt::reachable(y)};
  queue_conv(handle, workspace, bytes, [=] {
    compute_forward(c, simt::reachable(x), simt::reachable(w), bias ? simt::reachable(bias) : nullptr, to);
  });
  return cudnn::success;
}
}  // namespace

EMULATED_DNN int cudnnConvolutionForward(cudnn::Handle handle, const void* alpha, cudnn::TensorDesc lx, const void* x,
                                         cudnn::FilterDesc lw, const void* w, cudnn::ConvDesc how, int algo,
                                         void* workspace, size_t bytes, const void* beta, cudnn::TensorDesc ly,
                                         void* y) {
  return forward_with(handle, alpha, lx, x, lw, w, how, algo, workspace, bytes, beta, nullptr, ly, y);
}
EMULATED_DNN int cudnnConvolutionBiasActivationForward(
    cudnn::Handle handle, const void* alpha, cudnn::TensorDesc lx, const void* x, cudnn::FilterDesc lw, const void* w,
    cudnn::ConvDesc how, int algo, void* workspace, size_t bytes, const void* beta, cudnn::TensorDesc lz, const void* z,
    cudnn::TensorDesc lb, const void* bias, cudnn::ActivationDesc activation, cudnn::TensorDesc ly, void* y) {
  if (!bias || !lb || lb->type != ly->type || lb->size[1] != ly->size[1] || lb->stride[1] != 1) return cudnn::bad_param;
  if (lz != ly || z != y || activation->mode != cudnn::identity) return cudnn::not_supported;
  // No such convolution of bf16 here, so that a caller is seen to go on without.
  if (algo != cudnn::forward_precomputed_gemm || ly->type == cudnn::real_bf16) return cudnn::not_supported;
  return forward_with(handle, alpha, lx, x, lw, w, how, algo, workspace, bytes, beta, bias, ly, y);
}
EMULATED_DNN int cudnnConvolutionBackwardData(cudnn::Handle handle, const void* alpha, cudnn::FilterDesc lw,
                                              const void* w, cudnn::TensorDesc ly, const void* dy, cudnn::ConvDesc how,
                                              int algo, void* workspace, size_t bytes, const void* beta,
                                              cudnn::TensorDesc lx, void* dx) {
  Conv c;
  int status = conv_of(lx, lw, how, ly, &c);
  status = callable(Pass::data, status, c, algo, workspace, bytes);
  if (status) return status;
  const Target to{scale_of(c, alpha), scale_of(c, beta), simt::reachable(dx)};
  queue_conv(handle, workspace, bytes, [=] { compute_data(c, simt::reachable(w), simt::reachable(dy), to); });
  return cudnn::success;
}
EMULATED_DNN int cudnnConvolutionBackwardFilter(cudnn::Handle handle, const void* alpha, cudnn::TensorDesc lx,
                                                const void* x, cudnn::TensorDesc ly, const void* dy,
                                                cudnn::ConvDesc how, int algo, void* workspace, size_t bytes,
                                                const void* beta, cudnn::FilterDesc lw, void* dw) {
  Conv c;
  int status = conv_of(lx, lw, how, ly, &c);
  status = callable(Pass::filter, status, c, algo, workspace, bytes);
  if (status) return status;
  const Target to{scale_of(c, alpha), scale_of(c, beta), simt::reachable(dw)};
  queue_conv(handle, workspace, bytes, [=] { compute_filter(c, simt::reachable(x), simt::reachable(dy), to); });
  return cudnn::success;
}
