#include "engine/kernels/packed_conv.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/parallel.h"
#include "engine/kernels/packed_product.h"
#include "engine/kernels/ready_call.h"

namespace tenon::kernels {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

memory::desc plain_form(const PackedConv::Form& f) {
  if (f.groups == 1) return {{f.oc, f.ic, f.kh, f.kw}, kFloat, Tag::oihw};
  return {{f.groups, f.oc / f.groups, f.ic / f.groups, f.kh, f.kw}, kFloat, Tag::goihw};
}

/// Some work of a call: what it multiplies, and what it moves, which counts as ten products a byte.
double work_of(const PackedConv::Form& f, int64_t out_pixels, int64_t in_pixels) {
  const auto out = static_cast<double>(out_pixels * f.oc), in = static_cast<double>(in_pixels * f.ic);
  return 2 * out * static_cast<double>(f.ic / f.groups * f.kh * f.kw) + 40 * (out + in);
}
constexpr double kPieceWork = 3e6;  ///< about 30 us
constexpr int64_t kMostPieces = 16;

}  // namespace

struct PackedConv::Impl {
  Form form;
  const float *plain, *bias;
  ReadyOnes<ConvSizes, ReadyCall> ready{64};
  std::vector<memory> packed;           ///< in each layout that some sizes want
  std::optional<PackedProduct> pixels;  ///< a kernel of one pixel is a product of all pixels

  memory packed_as(const memory::desc& wanted) {
    for (const memory& m : packed)
      if (m.get_desc() == wanted) return m;
    memory from(plain_form(form), dnnl_engine(), const_cast<float*>(plain)), to(wanted, dnnl_engine());
    dnnl::reorder(from, to).execute(dnnl_stream(), from, to);
    packed.push_back(to);
    return to;
  }

  std::shared_ptr<const ReadyCall> make(const ConvSizes& s) {
    const memory::desc src({s.n, form.ic, s.ih, s.iw}, kFloat, Tag::nhwc),
        dst({s.n, form.oc, s.oh, s.ow}, kFloat, Tag::nhwc);
    const memory::desc any(plain_form(form).dims(), kFloat, Tag::any), b({form.oc}, kFloat, Tag::x);
    const memory::dims stride = {form.sh, form.sw}, dilation = {form.dh - 1, form.dw - 1}, front = {s.top, s.left},
                       back = {s.bottom, s.right};
    using fwd = dnnl::convolution_forward;
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto direct = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const fwd::primitive_desc pd(bias ? fwd::desc(kind, direct, src, any, b, dst, stride, dilation, front, back)
                                      : fwd::desc(kind, direct, src, any, dst, stride, dilation, front, back),
                                 attr, dnnl_engine());
    ReadyCall::Fixed fixed = {{DNNL_ARG_WEIGHTS, packed_as(pd.weights_desc())}};
    if (bias) fixed.emplace_back(DNNL_ARG_BIAS, memory(b, dnnl_engine(), const_cast<float*>(bias)));
    return std::make_shared<ReadyCall>(fwd(pd), src, dst, pd.scratchpad_desc(), std::move(fixed));
  }

  void piece(const ConvSizes& s, const float* x, float* y) {
    dnnl_guarded("convolution", [&] { ready.get(s, [&](const ConvSizes& sizes) { return make(sizes); })->run(x, y); });
  }

  /// Rows [first, last) of one image's result.
  void run_rows(const ConvSizes& s, int64_t first, int64_t last, const float* x, float* y) {
    const int64_t reach = form.dh * (form.kh - 1) + 1, begin = first * form.sh - s.top,
                  end = (last - 1) * form.sh - s.top + reach;
    ConvSizes p = s;
    p.n = 1, p.oh = last - first;
    p.top = std::max<int64_t>(0, -begin), p.bottom = std::max<int64_t>(0, end - s.ih);
    p.ih = end - begin - p.top - p.bottom;
    piece(p, x + std::max<int64_t>(0, begin) * s.iw * form.ic, y);
  }
};

PackedConv::PackedConv(const Form& form, const float* weights, const float* bias) : impl_(std::make_unique<Impl>()) {
  impl_->form = form;
  impl_->plain = weights;
  impl_->bias = bias;
  if (form.kh == 1 && form.kw == 1 && form.groups == 1) impl_->pixels.emplace(form.ic, form.oc, true, weights, bias);
}
PackedConv::~PackedConv() = default;

const PackedConv::Form& PackedConv::form() const { return impl_->form; }

void PackedConv::run(const ConvSizes& s, const float* x, float* y, const AfterPiece& after) const {
  const Form& f = impl_->form;
  if (s.n == 0 || s.oh == 0 || s.ow == 0) return;
  if (impl_->pixels && f.sh == 1 && f.sw == 1 && !(s.top || s.left || s.bottom || s.right))
    return impl_->pixels->run(s.n * s.ih * s.iw, x, y, after);
  const double image = work_of(f, s.oh * s.ow, s.ih * s.iw);
  const int64_t image_x = s.ih * s.iw * f.ic, row_y = s.ow * f.oc, image_y = s.oh * row_y;
  // Where a row of the result may see padding alone, an image stays whole.
  const int64_t reach = f.dh * (f.kh - 1) + 1;
  const bool cuts = s.top < reach && s.bottom < reach && s.ih >= reach;
  const int64_t wanted = cuts ? std::clamp<int64_t>(static_cast<int64_t>(image / kPieceWork), 1, kMostPieces) : 1;
  if (wanted > 1) {
    const int64_t rows = (s.oh + wanted - 1) / wanted, each = (s.oh + rows - 1) / rows;
    parallel_for(s.n * each, 1, [&](int64_t i, int64_t e) {
      for (; i < e; ++i) {
        const int64_t n = i / each, first = i % each * rows, last = std::min(s.oh, first + rows);
        float* to = y + n * image_y + first * row_y;
        impl_->run_rows(s, first, last, x + n * image_x, to);
        if (after) after(to, n * image_y + first * row_y, (last - first) * row_y);
      }
    });
    return;
  }
  const int64_t images = std::clamp<int64_t>(static_cast<int64_t>(kPieceWork / image), 1, 8);
  parallel_for(s.n, images, [&](int64_t i, int64_t e) {
    ConvSizes p = s;
    p.n = e - i;
    impl_->piece(p, x + i * image_x, y + i * image_y);
    if (after) after(y + i * image_y, i * image_y, (e - i) * image_y);
  });
}

}  // namespace tenon::kernels
