#include "engine/cuda/conv_library.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "engine/cuda/cudnn.h"
#include "engine/cuda/strided.h"

// Note [Convolutions by cuDNN]
// They go through its older calls, cudnnConvolutionForward and the two gradients, and not through its graphs, which
// could also fuse what follows: nothing of this could be tried on a GPU so far, and these have the fewest ways of being
// wrong. Which algorithm runs is asked once for every shape and kept, so that a run asks for the same one again.
// Of those offered, the first that fits is taken:
//   - it says that it is deterministic, as everything of Tenon's is;
//   - sums are sums of products. Those of transforms (FFT, Winograd) carry the rounding of the largest numbers of a
//     tile, or of a whole image, into all of its others, and an infinity too;
//   - f32 is multiplied as f32, and as TF32 only where the call allows it; halves by tensor cores with sums in f32.
// The library is fast with images that are channels-last and filters of the same order. Ours mostly lie by output
// channel, input channel, row and column, and are copied before, or their gradient after; so is a gradient of the
// result that came in another order. f64 is left as it lies: the library has no channels-last algorithms for it. A
// convolution of one tap that moves by one pixel is a product of matrices, and cuBLASLt's.
namespace tenon::cuda {
namespace {

constexpr size_t kConvWorkspace = size_t{256} << 20;

/// An image or a filter as the library takes it.
struct DnnPlace {
  int32_t size[4], stride[4];
};

/// What the choice of an algorithm depends on. Ordered by its bytes: no room between its members.
struct DnnKey {
  DnnPlace x, y;
  int32_t filter[4];  ///< output channels, input channels of a group, rows, columns
  int32_t padding[2], stride[2], dilation[2], groups;
  int32_t device, direction, type, format, bias, tf32;
  bool operator<(const DnnKey& o) const { return std::memcmp(this, &o, sizeof *this) < 0; }
};
static_assert(sizeof(DnnKey) == 4 * (2 * 8 + 4 + 6 + 1 + 6));

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
  key->tf32 = y.type() == DType::f32 && c.tf32();
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

bool make_dnn_place(const cudnn::Calls& dnn, const DnnPlace& p, int type, cudnn::TensorDesc* desc) {
  return dnn.tensor_create(desc) == cudnn::success &&
         dnn.tensor_set(*desc, type, p.size[0], p.size[1], p.size[2], p.size[3], p.stride[0], p.stride[1], p.stride[2],
                        p.stride[3]) == cudnn::success;
}

/// f32 that is multiplied as it is.
bool exact_f32(const DnnKey& key) { return static_cast<DType>(key.type) == DType::f32 && !key.tf32; }

bool describe_conv(const cudnn::Calls& dnn, const DnnKey& key, DnnConv* p) {
  const auto type = static_cast<DType>(key.type);
  const int real = cudnn_type(type);
  const int compute = type == DType::f64 ? cudnn::real_f64 : cudnn::real_f32;
  // "Default" is TF32 for f32.
  const int math = exact_f32(key)                             ? cudnn::fma_math
                   : type == DType::f64 || type == DType::f32 ? cudnn::default_math
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

DnnConv prepare_conv(const cudnn::Calls& dnn, cudnn::Handle handle, const DnnKey& key) {
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
  const bool exact = exact_f32(key);
  for (int i = 0; i < found; ++i) {
    const cudnn::Perf& offer = offers[i];
    const bool tensor_cores =
        offer.math == cudnn::tensor_op_math || offer.math == cudnn::tensor_op_math_with_conversion;
    if (offer.status || offer.determinism != cudnn::deterministic || !conv_adds_products(direction, offer.algo) ||
        (exact && tensor_cores))
      continue;
    // An offer is an algorithm together with a way of multiplying; f32's is the one that was asked for.
    if (!exact && dnn.conv_set_math(p.conv, offer.math)) continue;
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

DnnDevice open_dnn(const cudnn::Calls& dnn) {
  DnnDevice d;
  if (dnn.create(&d.handle)) d.handle = nullptr;
  if (dnn.activation_create(&d.none) || dnn.activation_set(d.none, cudnn::identity, cudnn::propagate_nan, 0))
    d.none = nullptr;
  return d;
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
  // Images as the library sees them: without data where they are copied first.
  Operand image_x = x, image_y = y;
  for (Operand* read : {&image_x, &image_y}) {
    const bool written = direction == (read == &image_x ? ConvDirection::of_input : ConvDirection::result);
    if (!written && read->type() != DType::f64 && !image_packed_in(*read, kChannelsLast))
      *read = image_packed_as(*read, kChannelsLast, nullptr);
  }
  DnnKey key;
  if (!dnn_key_of(c, direction, shape, image_x, w, image_y, biased, &key)) return false;
  const cudnn::Calls& dnn = cudnn::calls();
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

  // Where there is no room the call fails: kernels of our own would give other bits.
  void* room = p.workspace ? c.scratch<char>(static_cast<int64_t>(p.workspace)) : nullptr;
  const auto& order = key.format == cudnn::nhwc ? kChannelsLast : kRowMajor;
  for (Operand* read : {&image_x, &image_y}) {
    if (read->data) continue;
    const Operand& given = read == &image_x ? x : y;
    read->data = c.scratch<char>(given.numel() * static_cast<int64_t>(itemsize(given.type())));
    copy_elements(c, *read, given);
  }
  Operand filter = w;
  if (!image_packed_in(w, order)) {
    void* packed = c.scratch<char>(w.numel() * static_cast<int64_t>(itemsize(w.type())));
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
    status = dnn.backward_data(handle, alpha, p.w, filter.data, p.y, image_y.data, p.conv, p.algo, room, p.workspace,
                               beta, p.x, image_x.data);
  } else if (direction == ConvDirection::of_weight) {
    status = dnn.backward_filter(handle, alpha, p.x, image_x.data, p.y, image_y.data, p.conv, p.algo, room, p.workspace,
                                 beta, p.w, filter.data);
    if (status == cudnn::success && filter.data != w.data) copy_elements(c, w, filter);
  } else {
    const bool at_once = p.with_bias && device->second.none && bias.stride[0] == 1;
    if (at_once)
      status = dnn.forward_bias(handle, alpha, p.x, image_x.data, p.w, filter.data, p.conv, p.algo, room, p.workspace,
                                beta, p.y, image_y.data, p.bias, bias.data, device->second.none, p.y, image_y.data);
    if (at_once && dnn_refused(status)) p.with_bias = false;
    if (!at_once || dnn_refused(status)) {
      status = dnn.forward(handle, alpha, p.x, image_x.data, p.w, filter.data, p.conv, p.algo, room, p.workspace, beta,
                           p.y, image_y.data);
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
  c.by(cudnn::kName);
  return true;
}

}  // namespace tenon::cuda
