#include "engine/kernels/int8_conv.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/parallel.h"
#include "engine/kernels/conv.h"
#include "engine/kernels/dnnl_engine.h"
#include "engine/kernels/scratch.h"

namespace tenon::kernels {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

memory::desc plain_weights(const Int8ConvShape& s) {
  if (s.groups == 1) return {{s.oc, s.ic, s.kh, s.kw}, Type::s8, Tag::oihw};
  return {{s.groups, s.oc / s.groups, s.ic / s.groups, s.kh, s.kw}, Type::s8, Tag::goihw};
}

/// u8 saturates at 0: where that is the grid's zero, ReLU is there already.
dnnl::primitive_attr attributes(const Int8ConvShape& s, const std::vector<float>& scale) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_output_scales(1 << 1, scale);
  dnnl::post_ops after;
  if (s.relu && !(s.to_u8 && s.out_zero == 0)) after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
  if (s.to_u8 && s.out_zero != 0)
    after.append_eltwise(1, dnnl::algorithm::eltwise_linear, 1, static_cast<float>(s.out_zero));
  attr.set_post_ops(after);
  return attr;
}

/// With padding that holds zero points.
void pad_images(const ConvSizes& s, int64_t c, uint8_t zero, const uint8_t* x, uint8_t* to) {
  const int64_t width = (s.left + s.iw + s.right) * c, height = s.top + s.ih + s.bottom;
  for (int64_t i = 0; i < s.n; ++i)
    for (int64_t y = 0; y < height; ++y, to += width) {
      const int64_t from = y - s.top;
      if (from < 0 || from >= s.ih) {
        std::memset(to, zero, static_cast<size_t>(width));
        continue;
      }
      std::memset(to, zero, static_cast<size_t>(s.left * c));
      std::memcpy(to + s.left * c, x + (i * s.ih + from) * s.iw * c, static_cast<size_t>(s.iw * c));
      std::memset(to + (s.left + s.iw) * c, zero, static_cast<size_t>(s.right * c));
    }
}

}  // namespace

bool has_exact_int8() {
  using enum dnnl::cpu_isa;
  return dnnl_runs_on({avx2_vnni, avx512_core_vnni, avx512_core_bf16, avx512_core_amx});
}

struct Int8Conv::Impl {
  struct Ready {
    memory::desc src, dst, scratch;
    memory weights;
    dnnl::convolution_forward primitive;
  };
  Int8ConvShape shape;
  std::vector<int8_t> plain;
  std::vector<int32_t> bias;
  std::vector<float> scale;
  ReadyOnes<ConvSizes, Ready> ready{64};
  std::vector<memory> packed;  ///< in each layout that some sizes want

  memory packed_as(const memory::desc& wanted) {
    for (const memory& m : packed)
      if (m.get_desc() == wanted) return m;
    const memory from(plain_weights(shape), dnnl_engine(), plain.data()), to(wanted, dnnl_engine());
    dnnl::reorder(from, to).execute(dnnl_stream(), const_cast<memory&>(from), const_cast<memory&>(to));
    packed.push_back(to);
    return to;
  }

  std::shared_ptr<const Ready> make(const ConvSizes& s) {
    auto r = std::make_shared<Ready>();
    r->src = memory::desc({s.n, shape.ic, s.ih, s.iw}, Type::u8, Tag::nhwc);
    r->dst = memory::desc({s.n, shape.oc, s.oh, s.ow}, shape.to_u8 ? Type::u8 : Type::f32, Tag::nhwc);
    const memory::desc any(plain_weights(shape).dims(), Type::s8, Tag::any), b({shape.oc}, Type::s32, Tag::x);
    using fwd = dnnl::convolution_forward;
    const fwd::desc what(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, r->src, any, b,
                         r->dst, {shape.sh, shape.sw}, {shape.dh - 1, shape.dw - 1}, {s.top, s.left},
                         {s.bottom, s.right});
    const fwd::primitive_desc pd(what, attributes(shape, scale), dnnl_engine());
    r->scratch = pd.scratchpad_desc();
    r->weights = packed_as(pd.weights_desc());
    r->primitive = fwd(pd);
    return r;
  }

  void run(const ConvSizes& s, const uint8_t* x, void* y) {
    if (shape.zero != 0 && (s.top || s.left || s.bottom || s.right)) {
      ConvSizes wide = s;
      wide.ih += s.top + s.bottom, wide.iw += s.left + s.right;
      wide.top = wide.left = wide.bottom = wide.right = 0;
      const Scratch<uint8_t> padded(s.n * wide.ih * wide.iw * shape.ic);
      pad_images(s, shape.ic, static_cast<uint8_t>(shape.zero), x, padded.data());
      return run(wide, padded.data(), y);
    }
    dnnl_guarded("convolution of integers", [&] {
      const auto r = ready.get(s, [&](const ConvSizes& sizes) { return make(sizes); });
      const Scratch<uint8_t> scratch(static_cast<int64_t>(r->scratch.get_size()));
      const memory b({{shape.oc}, Type::s32, Tag::x}, dnnl_engine(), bias.data());
      r->primitive.execute(dnnl_stream(), {{DNNL_ARG_SRC, memory(r->src, dnnl_engine(), const_cast<uint8_t*>(x))},
                                           {DNNL_ARG_WEIGHTS, r->weights},
                                           {DNNL_ARG_BIAS, b},
                                           {DNNL_ARG_DST, memory(r->dst, dnnl_engine(), y)},
                                           {DNNL_ARG_SCRATCHPAD, memory(r->scratch, dnnl_engine(), scratch.data())}});
    });
  }
};

Int8Conv::Int8Conv(const Int8ConvShape& shape, const int8_t* weights, std::vector<int32_t> bias,
                   std::vector<float> scale)
    : impl_(std::make_unique<Impl>()) {
  impl_->shape = shape;
  const int64_t each = shape.ic / shape.groups * shape.kh * shape.kw;
  impl_->plain.assign(weights, weights + shape.oc * each);
  impl_->bias = std::move(bias);
  impl_->scale = std::move(scale);
  for (int64_t c = 0; c < shape.oc; ++c) {
    int32_t sum = 0;
    for (int64_t i = 0; i < each; ++i) sum += weights[c * each + i];
    impl_->bias[static_cast<size_t>(c)] -= shape.zero * sum;
  }
}
Int8Conv::~Int8Conv() = default;

const Int8ConvShape& Int8Conv::shape() const { return impl_->shape; }

void Int8Conv::run(const ConvSizes& s, const uint8_t* x, void* y) const {
  if (s.n == 0) return;
  const Int8ConvShape& c = impl_->shape;
  const int64_t grain = conv_batch_cut(
      {s.n, c.ic, s.ih, s.iw, c.oc, s.oh, s.ow, c.kh, c.kw, c.sh, c.sw, s.top, s.left, c.dh, c.dw, c.groups, true});
  const int64_t image_x = s.ih * s.iw * c.ic;
  const auto image_y = s.oh * s.ow * c.oc * static_cast<int64_t>(c.to_u8 ? 1 : sizeof(float));
  parallel_for(s.n, grain, [&](int64_t i, int64_t e) {
    ConvSizes piece = s;
    piece.n = e - i;
    impl_->run(piece, x + i * image_x, static_cast<char*>(y) + i * image_y);
  });
}

/// One picture, a row high: what the rows share, the weights, is read once for many of them.
void Int8Conv::run_rows(int64_t rows, const uint8_t* x, void* y) const {
  const Int8ConvShape& c = impl_->shape;
  const auto row_y = c.oc * static_cast<int64_t>(c.to_u8 ? 1 : sizeof(float));
  // About 16 MFLOP a piece, in steps of 16 rows.
  const int64_t wanted = static_cast<int64_t>(1.6e7 / (2.0 * static_cast<double>(c.ic * c.oc))) / 16 * 16;
  parallel_for(rows, std::max<int64_t>(16, wanted), [&](int64_t i, int64_t e) {
    impl_->run({1, 1, e - i, 1, e - i}, x + i * c.ic, static_cast<char*>(y) + i * row_y);
  });
}

}  // namespace tenon::kernels
