#include "engine/cuda/conv_library.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

#include "core/cuda/library.h"
#include "engine/cuda/cudnn.h"
#include "engine/cuda/product.h"
#include "engine/cuda/strided.h"

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

// Note [Convolutions by cuDNN]
// They go through its older calls, cudnnConvolutionForward and the two gradients, and not through its graphs, which
// could also fuse what follows: nothing of this could be tried on a GPU so far, and these have the fewest ways of being
// wrong. Which algorithm runs is asked once for every shape and kept, so that a run asks for the same one again.
// Of those offered, the first that fits is taken:
//   - it says that it is deterministic, as everything of Tenon's is;
//   - sums are sums of products. Those of transforms (FFT, Winograd) carry the rounding of a tile's, or a whole
//   image's,
//     largest numbers into all of its others, and an infinity too;
//   - f32 is multiplied as f32 and not as TF32, halves by tensor cores with sums in f32.
// Filters that the library is fast with have the order of the images. Ours mostly lie by output channel, input channel,
// row and column while images are channels-last, so they are copied before, or their gradient after. f64 is left in the
// filters' own order: the library has no channels-last algorithms for it.
// A convolution of one tap that moves by one pixel is a product of matrices, and cuBLASLt's.
namespace tenon::cuda {
namespace {

constexpr size_t kConvWorkspace = size_t{256} << 20;

#if CUDART_VERSION >= 13000
#define TENON_CUDNN_PACKAGE "nvidia-cudnn-cu13"
#else
#define TENON_CUDNN_PACKAGE "nvidia-cudnn-cu12"
#endif

const Library cudnn_library("cuDNN", "libcudnn.so.9", "computes convolutions",
                            "kernels of Tenon's own compute convolutions", TENON_CUDNN_PACKAGE,
                            [](const Library& l, char* text, size_t room) {
                              decltype(cudnn::version)* version = nullptr;
                              if (!l.find(version, "cudnnGetVersion")) return;
                              const size_t v = version();  // 9.19.0 is 91900
                              std::snprintf(text, room, "%zu.%zu.%zu", v / 10000, v % 10000 / 100, v % 100);
                            });

struct CudnnCalls {
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
  bool found;

  CudnnCalls() {
    // It opens cuBLASLt by its name alone, and then finds the one that is open already.
    cublas_there();
    const Library& l = cudnn_library;
    found =
        l.find(error_string, "cudnnGetErrorString") && l.find(create, "cudnnCreate") &&
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
};
const CudnnCalls& cudnn_calls() {
  static const CudnnCalls calls;
  return calls;
}

/// An image or a filter as the library takes it.
struct DnnPlace {
  int32_t size[4], stride[4];
};

/// What the choice of an algorithm depends on. Ordered by its bytes: no room between its members.
struct DnnKey {
  DnnPlace x, y;
  int32_t filter[4];  ///< output channels, input channels of a group, rows, columns
  int32_t padding[2], stride[2], dilation[2], groups;
  int32_t device, direction, type, format, bias;
  bool operator<(const DnnKey& o) const { return std::memcmp(this, &o, sizeof *this) < 0; }
};
static_assert(sizeof(DnnKey) == 4 * (2 * 8 + 4 + 6 + 1 + 5));

constexpr int kRowMajor[] = {3, 2, 1, 0}, kChannelsLast[] = {1, 3, 2, 0};  // axes, the innermost first

/// Without gaps in that order of its axes.
bool image_packed_in(const Operand& t, const int (&order)[4]) {
  int64_t step = 1;
  for (const int i : order) {
    if (t.size[i] != 1 && t.stride[i] != step) return false;
    step *= t.size[i];
  }
  return true;
}

/// t's sizes, and the strides of its elements one after the other in that order of its axes.
Operand image_packed_as(const Operand& t, const int (&order)[4], void* data) {
  Operand p = t;
  p.data = data;
  int64_t step = 1;
  for (const int i : order) {
    p.stride[i] = step;
    step *= t.size[i];
  }
  return p;
}

/// False where elements are missing, share a place, or lie further than the library counts.
bool dnn_place(Operand t, bool last, DnnPlace* place) {
  // Of an axis of one element the stride may be anything; what is packed but for that is told as packed.
  const bool rows = !last && image_packed_in(t, kRowMajor), packed = rows || image_packed_in(t, kChannelsLast);
  if (packed) t = rows ? image_packed_as(t, kRowMajor, t.data) : image_packed_as(t, kChannelsLast, t.data);
  int by_stride[] = {0, 1, 2, 3};
  for (int i = 1; i < 4; ++i)
    for (int j = i; j > 0 && t.stride[by_stride[j]] < t.stride[by_stride[j - 1]]; --j)
      std::swap(by_stride[j], by_stride[j - 1]);
  int64_t reach = 0;  // the furthest element of the axes so far
  for (const int i : by_stride) {
    if (t.size[i] < 1) return false;
    if (t.size[i] > 1 && t.stride[i] <= reach) return false;
    if (t.size[i] == 1 && !packed) t.stride[i] = reach + 1;
    if (t.stride[i] > INT32_MAX) return false;
    reach += (t.size[i] - 1) * t.stride[i];
    if (reach >= INT32_MAX) return false;
  }
  for (int i = 0; i < 4; ++i) {
    place->size[i] = static_cast<int32_t>(t.size[i]);
    place->stride[i] = static_cast<int32_t>(t.stride[i]);
  }
  return true;
}

bool dnn_key_of(const Args& c, ConvDirection direction, const ConvShape& s, const Operand& x, const Operand& w,
                const Operand& y, bool bias, DnnKey* key) {
  std::memset(static_cast<void*>(key), 0, sizeof *key);
  const bool last = y.type() != DType::f64 && image_packed_in(x, kChannelsLast) && image_packed_in(y, kChannelsLast);
  if (!dnn_place(x, last, &key->x) || !dnn_place(y, last, &key->y)) return false;
  if (w.numel() < 1 || w.numel() > INT32_MAX) return false;
  for (int i = 0; i < 4; ++i) key->filter[i] = static_cast<int32_t>(w.size[i]);
  for (int i = 0; i < 2; ++i)
    key->padding[i] = s.padding[i], key->stride[i] = s.stride[i], key->dilation[i] = s.dilation[i];
  key->groups = s.groups;
  key->device = c.device();
  key->direction = static_cast<int32_t>(direction);
  key->type = y.dtype;
  key->format = last ? cudnn::nhwc : cudnn::nchw;
  key->bias = bias;
  return true;
}

int cudnn_type(DType t) {
  switch (t) {
    case DType::f64:
      return cudnn::real_f64;
    case DType::f16:
      return cudnn::real_f16;
    case DType::bf16:
      return cudnn::real_bf16;
    default:
      return cudnn::real_f32;
  }
}

/// A convolution as it is asked for. Kept until the process ends.
struct DnnConv {
  cudnn::TensorDesc x = nullptr, y = nullptr, bias = nullptr;
  cudnn::FilterDesc w = nullptr;
  cudnn::ConvDesc conv = nullptr;
  int algo = 0;
  size_t workspace = 0;
  bool usable = false;
  bool with_bias = false;  ///< the library adds it to the sums; else it is added to the result
};

bool make_dnn_place(const CudnnCalls& dnn, const DnnPlace& p, int type, cudnn::TensorDesc* desc) {
  return dnn.tensor_create(desc) == cudnn::success &&
         dnn.tensor_set(*desc, type, p.size[0], p.size[1], p.size[2], p.size[3], p.stride[0], p.stride[1], p.stride[2],
                        p.stride[3]) == cudnn::success;
}

bool describe_conv(const CudnnCalls& dnn, const DnnKey& key, DnnConv* p) {
  const auto type = static_cast<DType>(key.type);
  const int real = cudnn_type(type);
  const int compute = type == DType::f64 ? cudnn::real_f64 : cudnn::real_f32;
  const int math = type == DType::f64   ? cudnn::default_math
                   : type == DType::f32 ? cudnn::fma_math
                                        : cudnn::tensor_op_math;
  const int channels = key.filter[0];
  return make_dnn_place(dnn, key.x, real, &p->x) && make_dnn_place(dnn, key.y, real, &p->y) &&
         (!key.bias || make_dnn_place(dnn, {{1, channels, 1, 1}, {channels, 1, 1, 1}}, real, &p->bias)) &&
         dnn.filter_create(&p->w) == cudnn::success &&
         dnn.filter_set(p->w, real, key.format, channels, key.filter[1], key.filter[2], key.filter[3]) ==
             cudnn::success &&
         dnn.conv_create(&p->conv) == cudnn::success &&
         dnn.conv_set(p->conv, key.padding[0], key.padding[1], key.stride[0], key.stride[1], key.dilation[0],
                      key.dilation[1], cudnn::cross_correlation, compute) == cudnn::success &&
         dnn.conv_set_groups(p->conv, key.groups) == cudnn::success &&
         dnn.conv_set_math(p->conv, math) == cudnn::success;
}

bool conv_adds_products(ConvDirection direction, int algo) {
  switch (direction) {
    case ConvDirection::result:
      return algo <= cudnn::forward_direct;
    case ConvDirection::of_input:
      return algo <= cudnn::data_1;
    default:
      return algo <= cudnn::filter_1 || algo == cudnn::filter_3;
  }
}

DnnConv prepare_conv(const CudnnCalls& dnn, cudnn::Handle handle, const DnnKey& key) {
  DnnConv p;
  if (!describe_conv(dnn, key, &p)) return p;
  const auto direction = static_cast<ConvDirection>(key.direction);
  cudnn::Perf offers[cudnn::forward_algos] = {};
  int found = 0, status;
  if (direction == ConvDirection::result)
    status = dnn.forward_find(handle, p.x, p.w, p.conv, p.y, cudnn::forward_algos, &found, offers);
  else if (direction == ConvDirection::of_input)
    status = dnn.data_find(handle, p.w, p.y, p.conv, p.x, cudnn::data_algos, &found, offers);
  else
    status = dnn.filter_find(handle, p.x, p.y, p.conv, p.w, cudnn::filter_algos, &found, offers);
  if (status) return p;
  const bool f32 = static_cast<DType>(key.type) == DType::f32;
  for (int i = 0; i < found; ++i) {
    const cudnn::Perf& offer = offers[i];
    const bool tensor_cores =
        offer.math == cudnn::tensor_op_math || offer.math == cudnn::tensor_op_math_with_conversion;
    if (offer.status || offer.determinism != cudnn::deterministic || offer.memory > kConvWorkspace ||
        !conv_adds_products(direction, offer.algo) || (f32 && tensor_cores))
      continue;
    // An offer is an algorithm together with a way of multiplying; f32's is the one that was asked for.
    if (!f32 && dnn.conv_set_math(p.conv, offer.math)) continue;
    if (direction == ConvDirection::result)
      status = dnn.forward_room(handle, p.x, p.w, p.conv, p.y, offer.algo, &p.workspace);
    else if (direction == ConvDirection::of_input)
      status = dnn.data_room(handle, p.w, p.y, p.conv, p.x, offer.algo, &p.workspace);
    else
      status = dnn.filter_room(handle, p.x, p.y, p.conv, p.w, offer.algo, &p.workspace);
    if (status || p.workspace > kConvWorkspace) continue;
    p.algo = offer.algo;
    p.usable = true;
    p.with_bias = key.bias && p.algo == cudnn::forward_precomputed_gemm;  // the only one that does
    return p;
  }
  return p;
}

struct DnnDevice {
  cudnn::Handle handle = nullptr;  ///< null where there is none
  cudnn::ActivationDesc none = nullptr;
};
struct DnnConvs {
  std::mutex mutex;
  std::map<int, DnnDevice> devices;
  std::map<DnnKey, DnnConv> all;
};
DnnConvs& dnn_convs() {
  static auto* all = new DnnConvs;
  return *all;
}

DnnDevice open_dnn(const CudnnCalls& dnn) {
  DnnDevice d;
  if (dnn.create(&d.handle)) d.handle = nullptr;
  if (dnn.activation_create(&d.none) || dnn.activation_set(d.none, cudnn::identity, cudnn::propagate_nan, 0))
    d.none = nullptr;
  return d;
}

/// Null where there is none left.
void* dnn_room(const Args& c, int64_t bytes) {
  try {
    return c.scratch<char>(bytes);
  } catch (const OutOfMemory&) {
    return nullptr;
  }
}

bool dnn_refused(int status) { return status / 1000 == 2 || status / 1000 == 3; }

template <class T>
__global__ void conv_add_bias(T* y, const T* bias, Strided<2> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[2];
    p.find(i, at);
    y[at[0]] = element::made<T>(element::number(y[at[0]]) + element::number(bias[at[1]]));
  }
}
void add_channel_bias(const Args& c, const Operand& y, const Operand& bias) {
  Operand channels = y;
  for (int i = 0; i < 4; ++i)
    channels.size[i] = i == 1 ? y.size[1] : 1, channels.stride[i] = i == 1 ? bias.stride[0] : 0;
  const Operand both[] = {y, channels};
  with_product_type(y.type(), [&](auto one) {
    using T = decltype(one);
    launch(conv_add_bias<T>, blocks_for(y.numel(), 256), 256, c, y.at<T>(), bias.at<const T>(), strided_of(both));
  });
}

}  // namespace

bool conv_by_cudnn(const Args& c, ConvDirection direction, const ConvShape& shape, const Operand& x, const Operand& w,
                   const Operand& y, const Operand& bias) {
  const bool biased = bias.there();
  DnnKey key;
  if (!dnn_key_of(c, direction, shape, x, w, y, biased, &key)) return false;
  const CudnnCalls& dnn = cudnn_calls();
  if (!dnn.found) return false;
  DnnConvs& convs = dnn_convs();
  std::lock_guard lock(convs.mutex);  // a handle has one stream at a time
  auto device = convs.devices.find(c.device());
  if (device == convs.devices.end()) device = convs.devices.emplace(c.device(), open_dnn(dnn)).first;
  const cudnn::Handle handle = device->second.handle;
  if (!handle || dnn.set_stream(handle, static_cast<cudaStream_t>(c.stream()))) return false;
  auto found = convs.all.find(key);
  if (found == convs.all.end()) found = convs.all.emplace(key, prepare_conv(dnn, handle, key)).first;
  DnnConv& p = found->second;
  if (!p.usable) return false;

  void* room = p.workspace ? dnn_room(c, static_cast<int64_t>(p.workspace)) : nullptr;
  if (p.workspace && !room) return false;
  const auto& order = key.format == cudnn::nhwc ? kChannelsLast : kRowMajor;
  Operand filter = w;
  if (!image_packed_in(w, order)) {
    void* packed = dnn_room(c, w.numel() * static_cast<int64_t>(itemsize(w.type())));
    if (!packed) return false;
    filter = image_packed_as(w, order, packed);
    if (direction != ConvDirection::of_weight) copy_elements(c, filter, w);
  }

  const double one = 1, zero = 0;
  const float one_f32 = 1, zero_f32 = 0;
  const bool wide = y.type() == DType::f64;
  const void* alpha = wide ? static_cast<const void*>(&one) : &one_f32;
  const void* beta = wide ? static_cast<const void*>(&zero) : &zero_f32;
  int status = cudnn::not_supported;
  if (direction == ConvDirection::of_input) {
    status = dnn.backward_data(handle, alpha, p.w, filter.data, p.y, y.data, p.conv, p.algo, room, p.workspace, beta,
                               p.x, x.data);
  } else if (direction == ConvDirection::of_weight) {
    status = dnn.backward_filter(handle, alpha, p.x, x.data, p.y, y.data, p.conv, p.algo, room, p.workspace, beta, p.w,
                                 filter.data);
    if (status == cudnn::success && filter.data != w.data) copy_elements(c, w, filter);
  } else {
    const bool at_once = p.with_bias && device->second.none && bias.stride[0] == 1;
    if (at_once)
      status = dnn.forward_bias(handle, alpha, p.x, x.data, p.w, filter.data, p.conv, p.algo, room, p.workspace, beta,
                                p.y, y.data, p.bias, bias.data, device->second.none, p.y, y.data);
    if (at_once && dnn_refused(status)) p.with_bias = false;
    if (!at_once || dnn_refused(status)) {
      status = dnn.forward(handle, alpha, p.x, x.data, p.w, filter.data, p.conv, p.algo, room, p.workspace, beta, p.y,
                           y.data);
      if (status == cudnn::success && biased) add_channel_bias(c, y, bias);
    }
  }
  if (dnn_refused(status)) {
    p.usable = false;
    return false;
  }
  if (status != cudnn::success) {
    char text[256];
    std::snprintf(text, sizeof text, "a convolution by cuDNN: %s", dnn.error_string(status));
    throw Failure(text);
  }
  c.by(cudnn_library.name());
  return true;
}

}  // namespace tenon::cuda
