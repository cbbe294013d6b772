// cuBLASLt for the emulated GPU: the calls of engine/cuda/cublas_lt.h, computed as its documentation says, on the
// stream that is given. Descriptions that the real library would refuse are refused, and what a call may not depend on
// (C where beta is 0) is not read.
#include <simt_runtime.h>

#include <vector>

#include "engine/cuda/cublas_lt.h"
#include "tests/simt/libraries/numbers.h"

namespace cublas = tenon::cuda::cublas;
using tenon::emulated::number_at;
using tenon::emulated::put_number;

namespace tenon::cuda::cublas {
struct HandleOpaque {};
struct DescOpaque {
  int compute, scale;
  int32_t transa = plain, transb = plain;
  uint32_t epilogue = 1;
  const void* bias = nullptr;
};
struct LayoutOpaque {
  int type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batches = 1;
  int64_t batch_stride = 0;
};
struct PreferenceOpaque {
  uint64_t workspace = 0;
  uint32_t schemes = 7, alignment[4] = {256, 256, 256, 256};
};
}  // namespace tenon::cuda::cublas

namespace {

constexpr int kInvalid = 7, kNotSupported = 15;
constexpr size_t kWanted = 4096;  // of working memory, whose use is proven by writing all of it

tenon::DType dtype_of(int type) {
  return type == cublas::real_f64    ? tenon::DType::f64
         : type == cublas::real_f16  ? tenon::DType::f16
         : type == cublas::real_bf16 ? tenon::DType::bf16
                                     : tenon::DType::f32;
}

struct Product {
  cublas::DescOpaque desc;
  cublas::LayoutOpaque a, b, c;
  int64_t m, n, k;
};

/// 0 where the four belong together.
int product_of(cublas::Desc desc, cublas::Layout a, cublas::Layout b, cublas::Layout c, cublas::Layout d, Product* p) {
  *p = {*desc, *a, *b, *c, 0, 0, 0};
  const auto rows = [](const cublas::LayoutOpaque& l, int32_t turn) { return turn ? l.cols : l.rows; };
  const auto cols = [](const cublas::LayoutOpaque& l, int32_t turn) { return turn ? l.rows : l.cols; };
  p->m = static_cast<int64_t>(rows(*a, desc->transa));
  p->k = static_cast<int64_t>(cols(*a, desc->transa));
  p->n = static_cast<int64_t>(cols(*b, desc->transb));
  const bool sizes = p->k == static_cast<int64_t>(rows(*b, desc->transb)) && p->m == static_cast<int64_t>(c->rows) &&
                     p->n == static_cast<int64_t>(c->cols) && d->rows == c->rows && d->cols == c->cols;
  const bool wide = c->type == cublas::real_f64;
  const bool types = a->type == b->type && b->type == c->type && c->type == d->type &&
                     (desc->compute == (wide ? cublas::compute_f64 : cublas::compute_f32) ||
                      (desc->compute == cublas::compute_tf32 && c->type == cublas::real_f32)) &&
                     desc->scale == (wide ? cublas::real_f64 : cublas::real_f32);
  const bool batches = a->batches == b->batches && b->batches == c->batches && c->batches == d->batches;
  if (!sizes || !types || !batches) return kInvalid;
  for (const cublas::LayoutOpaque* l : {a, b, c, d})
    if (l->rows == 0 || l->cols == 0 || l->ld < static_cast<int64_t>(l->rows)) return kInvalid;
  if (desc->epilogue != 1 && (desc->epilogue != cublas::epilogue_bias || wide || !desc->bias)) return kNotSupported;
  return cublas::success;
}

void compute(const Product& p, bool add, const void* a, const void* b, void* c) {
  const tenon::DType type = dtype_of(p.c.type);
  const auto factor = [&](const void* data, int64_t at) {
    const double x = number_at(data, type, at);
    return p.desc.compute == cublas::compute_tf32 ? tenon::emulated::as_tf32(x) : x;
  };
  const int64_t a_row = p.desc.transa ? p.a.ld : 1, a_col = p.desc.transa ? 1 : p.a.ld;
  const int64_t b_row = p.desc.transb ? p.b.ld : 1, b_col = p.desc.transb ? 1 : p.b.ld;
  for (int64_t batch = 0; batch < p.c.batches; ++batch)
    for (int64_t j = 0; j < p.n; ++j)
      for (int64_t i = 0; i < p.m; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < p.k; ++l)
          sum += factor(a, batch * p.a.batch_stride + i * a_row + l * a_col) *
                 factor(b, batch * p.b.batch_stride + l * b_row + j * b_col);
        const int64_t at = batch * p.c.batch_stride + j * p.c.ld + i;
        if (p.desc.epilogue == cublas::epilogue_bias) sum += number_at(simt::reachable(p.desc.bias), type, i);
        if (add) sum += number_at(c, type, at);
        put_number(c, type, at, sum);
      }
}

}  // namespace

#define EMULATED extern "C" __attribute__((visibility("default")))

EMULATED size_t cublasLtGetVersion() { return 130100; }
EMULATED const char* cublasLtGetStatusName(int status) {
  return status == kInvalid ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_NOT_SUPPORTED";
}
EMULATED int cublasLtCreate(cublas::Handle* handle) {
  *handle = new cublas::HandleOpaque;
  return cublas::success;
}
EMULATED int cublasLtMatmulDescCreate(cublas::Desc* desc, int compute, int scale) {
  *desc = new cublas::DescOpaque{compute, scale};
  return cublas::success;
}
EMULATED int cublasLtMatmulDescDestroy(cublas::Desc desc) {
  delete desc;
  return cublas::success;
}

namespace {
template <class V>
int set_to(V* member, const void* value, size_t bytes) {
  if (bytes != sizeof *member) return kInvalid;
  std::memcpy(member, value, bytes);
  return cublas::success;
}
}  // namespace

EMULATED int cublasLtMatmulDescSetAttribute(cublas::Desc d, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case cublas::desc_transa:
      return set_to(&d->transa, value, bytes);
    case cublas::desc_transb:
      return set_to(&d->transb, value, bytes);
    case cublas::desc_epilogue:
      return set_to(&d->epilogue, value, bytes);
    case cublas::desc_bias_pointer:
      return set_to(&d->bias, value, bytes);
  }
  return kInvalid;
}
EMULATED int cublasLtMatrixLayoutCreate(cublas::Layout* l, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  *l = new cublas::LayoutOpaque{type, rows, cols, ld};
  return cublas::success;
}
EMULATED int cublasLtMatrixLayoutDestroy(cublas::Layout l) {
  delete l;
  return cublas::success;
}
EMULATED int cublasLtMatrixLayoutSetAttribute(cublas::Layout l, int attribute, const void* value, size_t bytes) {
  if (attribute == cublas::layout_batch_count) return set_to(&l->batches, value, bytes);
  if (attribute == cublas::layout_batch_stride) return set_to(&l->batch_stride, value, bytes);
  return kInvalid;
}
EMULATED int cublasLtMatmulPreferenceCreate(cublas::Preference* p) {
  *p = new cublas::PreferenceOpaque;
  return cublas::success;
}
EMULATED int cublasLtMatmulPreferenceDestroy(cublas::Preference p) {
  delete p;
  return cublas::success;
}
EMULATED int cublasLtMatmulPreferenceSetAttribute(cublas::Preference p, int attribute, const void* value,
                                                  size_t bytes) {
  if (attribute == cublas::preference_workspace_bytes) return set_to(&p->workspace, value, bytes);
  if (attribute == cublas::preference_reduction_schemes) return set_to(&p->schemes, value, bytes);
  if (attribute >= cublas::preference_alignment_a && attribute <= cublas::preference_alignment_d)
    return set_to(&p->alignment[attribute - cublas::preference_alignment_a], value, bytes);
  return kInvalid;
}
EMULATED int cublasLtMatmulAlgoGetHeuristic(cublas::Handle, cublas::Desc desc, cublas::Layout a, cublas::Layout b,
                                            cublas::Layout c, cublas::Layout d, cublas::Preference preference,
                                            int wanted, cublas::Heuristic* results, int* found) {
  *found = 0;
  if (wanted < 1) return kInvalid;
  Product p;
  if (const int status = product_of(desc, a, b, c, d, &p)) return status;
  *results = {};
  results->workspace = preference->workspace < kWanted ? 0 : kWanted;
  // What the algorithm was chosen for; a call with operands that are less aligned is refused.
  for (int i = 0; i < 4; ++i) results->algo.data[i] = preference->alignment[i];
  results->algo.data[4] = results->workspace;
  *found = 1;
  return cublas::success;
}
EMULATED int cublasLtMatmul(cublas::Handle, cublas::Desc desc, const void* alpha, const void* a, cublas::Layout la,
                            const void* b, cublas::Layout lb, const void* beta, const void* c, cublas::Layout lc,
                            void* d, cublas::Layout ld, const cublas::Algo* algo, void* workspace, size_t bytes,
                            cudaStream_t stream) {
  Product p;
  if (const int status = product_of(desc, la, lb, lc, ld, &p)) return status;
  const auto scale = [&](const void* at) {
    return desc->scale == cublas::real_f64 ? *static_cast<const double*>(at) : double{*static_cast<const float*>(at)};
  };
  if (scale(alpha) != 1 || c != d || bytes < algo->data[4] || (bytes > 0 && !workspace)) return kInvalid;
  const void* operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<uintptr_t>(operands[i]) % algo->data[i] != 0) return kInvalid;
  const bool add = scale(beta) == 1;
  if (!add && scale(beta) != 0) return kNotSupported;
  simt::on_stream(stream, [=] {
    if (bytes) std::memset(simt::reachable(workspace), 0xff, bytes);
    compute(p, add, simt::reachable(a), simt::reachable(b), simt::reachable(d));
  });
  return cublas::success;
}
