#include "engine/kernels/dnnl.h"

#include <omp.h>

#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/error.h"
#include "engine/kernels/dnnl_engine.h"

namespace tenon::kernels {

// Note [oneDNN and threads]
// oneDNN divides work by the number of OpenMP threads it sees, reductions included, so its bits would change with it.
// Every thread that gets here tells OpenMP once that it has no others; pieces and the order in which partial results
// are added are ours. OpenMP keeps this setting per calling thread, so nothing else in the process is affected.
void dnnl_alone() {
  thread_local bool told = false;
  if (told) return;
  omp_set_num_threads(1);
  told = true;
}
dnnl::engine& dnnl_engine() {
  static auto* e = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // leaked: threads may outlive statics
  return *e;
}
dnnl::stream& dnnl_stream() {
  thread_local dnnl::stream s(dnnl_engine());
  return s;
}

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kF32 = memory::data_type::f32;

struct Key {
  ConvShape s;
  ConvPass pass;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const {
    const int64_t v[] = {k.s.n,
                         k.s.ic,
                         k.s.ih,
                         k.s.iw,
                         k.s.oc,
                         k.s.oh,
                         k.s.ow,
                         k.s.kh,
                         k.s.kw,
                         k.s.sh,
                         k.s.sw,
                         k.s.ph,
                         k.s.pw,
                         k.s.dh,
                         k.s.dw,
                         k.s.groups,
                         k.s.bias,
                         k.s.pb,
                         k.s.bf16 << 4 | static_cast<int64_t>(k.pass)};
    uint64_t h = 0xcbf29ce484222325ull;
    for (int64_t x : v) h = (h ^ static_cast<uint64_t>(x)) * 0x100000001b3ull;
    return static_cast<size_t>(h ^ (h >> 29));
  }
};

struct Conv {
  memory::desc src, packed, bias, dst, plain;
  memory m_src, m_packed, m_bias, m_dst;
  dnnl::primitive primitive;
  dnnl::reorder pack, unpack;
};

std::unique_ptr<Conv> make_conv(const ConvShape& s, ConvPass pass) {
  auto c = std::make_unique<Conv>();
  memory::dims w = {s.oc, s.ic, s.kh, s.kw};
  if (s.groups > 1) w = {s.groups, s.oc / s.groups, s.ic / s.groups, s.kh, s.kw};
  const auto type = s.bf16 ? memory::data_type::bf16 : kF32, weights = pass == ConvPass::backward_weights ? kF32 : type;
  c->src = memory::desc({s.n, s.ic, s.ih, s.iw}, type, Tag::nhwc);
  c->dst = memory::desc({s.n, s.oc, s.oh, s.ow}, type, Tag::nhwc);
  c->plain = memory::desc(w, weights, s.groups > 1 ? Tag::goihw : Tag::oihw);
  const memory::desc any(w, type, Tag::any), gradient(w, kF32, Tag::any);
  c->bias = s.bias ? memory::desc({s.oc}, weights, Tag::x) : memory::desc();
  const memory::desc row = s.bias ? memory::desc({s.oc}, type, Tag::x) : memory::desc();
  const memory::dims stride = {s.sh, s.sw}, dilation = {s.dh - 1, s.dw - 1}, pad = {s.ph, s.pw},
                     below = {s.pb < 0 ? s.ph : s.pb, s.pw};
  const auto direct = dnnl::algorithm::convolution_direct;
  using fwd = dnnl::convolution_forward;
  fwd::primitive_desc forward(
      s.bias
          ? fwd::desc(dnnl::prop_kind::forward_training, direct, c->src, any, row, c->dst, stride, dilation, pad, below)
          : fwd::desc(dnnl::prop_kind::forward_training, direct, c->src, any, c->dst, stride, dilation, pad, below),
      dnnl_engine());
  if (pass == ConvPass::forward) {
    c->packed = forward.weights_desc();
    c->primitive = fwd(forward);
  } else if (pass == ConvPass::backward_data) {
    using bwd = dnnl::convolution_backward_data;
    bwd::primitive_desc pd(bwd::desc(direct, c->src, any, c->dst, stride, dilation, pad, below), dnnl_engine(),
                           forward);
    c->packed = pd.weights_desc();
    c->primitive = bwd(pd);
  } else {
    using bwd = dnnl::convolution_backward_weights;
    bwd::primitive_desc pd(s.bias ? bwd::desc(direct, c->src, gradient, c->bias, c->dst, stride, dilation, pad, below)
                                  : bwd::desc(direct, c->src, gradient, c->dst, stride, dilation, pad, below),
                           dnnl_engine(), forward);
    c->packed = pd.diff_weights_desc();
    c->primitive = bwd(pd);
  }
  c->m_src = memory(c->src, dnnl_engine(), nullptr);
  c->m_dst = memory(c->dst, dnnl_engine(), nullptr);
  c->m_packed = memory(c->packed, dnnl_engine(), nullptr);
  if (s.bias) c->m_bias = memory(c->bias, dnnl_engine(), nullptr);
  return c;
}

/// Primitives carry scratch memory, so each thread has its own; creating one that another thread has made costs
/// microseconds.
Conv& conv(const ConvShape& s, ConvPass pass) {
  thread_local std::unordered_map<Key, std::unique_ptr<Conv>, KeyHash> cache;
  Key key{s, pass};
  if (pass == ConvPass::backward_data) key.s.bias = false;
  auto found = cache.find(key);
  if (found != cache.end()) return *found->second;
  if (cache.size() >= 512) cache.clear();
  return *cache.emplace(key, make_conv(key.s, pass)).first->second;
}

void reorder(const memory::desc& from, const void* a, const memory::desc& to, void* b, dnnl::reorder& cached) {
  memory ma(from, dnnl_engine(), const_cast<void*>(a)), mb(to, dnnl_engine(), b);
  if (!cached) cached = dnnl::reorder(ma, mb);
  cached.execute(dnnl_stream(), ma, mb);
}

}  // namespace

void dnnl_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, float beta, float* c, int64_t ldc) {
  dnnl_alone();
  dnnl_status_t status = dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl_success)
    throw Error("product [" + std::to_string(m) + ", " + std::to_string(k) + "] x [" + std::to_string(k) + ", " +
                std::to_string(n) + "] in oneDNN failed with status " + std::to_string(static_cast<int>(status)));
}

size_t dnnl_conv_weight_bytes(const ConvShape& s, ConvPass pass) {
  return dnnl_guarded("convolution", [&] { return conv(s, pass).packed.get_size(); });
}

bool dnnl_conv_same_weights(const ConvShape& a, const ConvShape& b, ConvPass pass) {
  if (a == b) return true;
  return dnnl_guarded("convolution", [&] {
    const memory::desc first = conv(a, pass).packed;  // a copy: making the second may empty the cache
    return first == conv(b, pass).packed;
  });
}

void dnnl_conv_pack(const ConvShape& s, ConvPass pass, const void* plain, void* packed) {
  dnnl_guarded("convolution weights", [&] {
    Conv& c = conv(s, pass);
    reorder(c.plain, plain, c.packed, packed, c.pack);
  });
}

void dnnl_conv_unpack(const ConvShape& s, ConvPass pass, const float* packed, float* plain) {
  dnnl_guarded("convolution weights", [&] {
    Conv& c = conv(s, pass);
    reorder(c.packed, packed, c.plain, plain, c.unpack);
  });
}

void dnnl_conv_forward(const ConvShape& s, const void* x, const void* packed, const void* bias, void* y) {
  dnnl_guarded("convolution", [&] {
    Conv& c = conv(s, ConvPass::forward);
    c.m_src.set_data_handle(const_cast<void*>(x));
    c.m_packed.set_data_handle(const_cast<void*>(packed));
    c.m_dst.set_data_handle(y);
    std::unordered_map<int, memory> args{
        {DNNL_ARG_SRC, c.m_src}, {DNNL_ARG_WEIGHTS, c.m_packed}, {DNNL_ARG_DST, c.m_dst}};
    if (s.bias) {
      c.m_bias.set_data_handle(const_cast<void*>(bias));
      args.emplace(DNNL_ARG_BIAS, c.m_bias);
    }
    c.primitive.execute(dnnl_stream(), args);
  });
}

void dnnl_conv_backward_data(const ConvShape& s, const void* gy, const void* packed, void* gx) {
  dnnl_guarded("convolution backward data", [&] {
    Conv& c = conv(s, ConvPass::backward_data);
    c.m_dst.set_data_handle(const_cast<void*>(gy));
    c.m_packed.set_data_handle(const_cast<void*>(packed));
    c.m_src.set_data_handle(gx);
    c.primitive.execute(dnnl_stream(),
                        {{DNNL_ARG_DIFF_DST, c.m_dst}, {DNNL_ARG_WEIGHTS, c.m_packed}, {DNNL_ARG_DIFF_SRC, c.m_src}});
  });
}

void dnnl_conv_backward_weights(const ConvShape& s, const void* x, const void* gy, float* packed_gw, float* gbias) {
  dnnl_guarded("convolution backward weights", [&] {
    Conv& c = conv(s, ConvPass::backward_weights);
    c.m_src.set_data_handle(const_cast<void*>(x));
    c.m_dst.set_data_handle(const_cast<void*>(gy));
    c.m_packed.set_data_handle(packed_gw);
    std::unordered_map<int, memory> args{
        {DNNL_ARG_SRC, c.m_src}, {DNNL_ARG_DIFF_DST, c.m_dst}, {DNNL_ARG_DIFF_WEIGHTS, c.m_packed}};
    if (s.bias) {
      c.m_bias.set_data_handle(gbias);
      args.emplace(DNNL_ARG_DIFF_BIAS, c.m_bias);
    }
    c.primitive.execute(dnnl_stream(), args);
  });
}

const char* dnnl_name() {
  static const std::string name = [] {
    const dnnl_version_t* v = dnnl_version();
    return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }();
  return name.c_str();
}

}  // namespace tenon::kernels
