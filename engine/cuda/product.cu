#include "engine/cuda/product.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/cuda/library.h"
#include "engine/cuda/cublas_lt.h"

#if defined(__CUDACC__) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
namespace tenon::cuda::cublas {
constexpr bool same(int64_t ours, int64_t theirs) { return ours == theirs; }
static_assert(same(success, CUBLAS_STATUS_SUCCESS) && same(plain, CUBLAS_OP_N) && same(transposed, CUBLAS_OP_T) &&
              same(real_f32, CUDA_R_32F) && same(real_f64, CUDA_R_64F) && same(real_f16, CUDA_R_16F) &&
              same(real_bf16, CUDA_R_16BF) && same(compute_f32, CUBLAS_COMPUTE_32F) &&
              same(compute_f64, CUBLAS_COMPUTE_64F) && same(compute_tf32, CUBLAS_COMPUTE_32F_FAST_TF32) &&
              same(epilogue_bias, CUBLASLT_EPILOGUE_BIAS) && same(reduction_none, CUBLASLT_REDUCTION_SCHEME_NONE) &&
              same(reduction_compute_type, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) &&
              same(desc_transa, CUBLASLT_MATMUL_DESC_TRANSA) && same(desc_transb, CUBLASLT_MATMUL_DESC_TRANSB) &&
              same(desc_epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE) &&
              same(desc_bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER) &&
              same(layout_batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) &&
              same(layout_batch_stride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) &&
              same(preference_workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) &&
              same(preference_reduction_schemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) &&
              same(preference_alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) &&
              same(preference_alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(sizeof(Algo) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(Heuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
}  // namespace tenon::cuda::cublas
#endif

// Note [Products by cuBLASLt]
// Its matrices lie by columns, ours mostly by rows: C by rows is C' by columns, and C' = B' A'. Which algorithm runs is
// asked once for every shape and kept, so that a run asks for the same one again; sums that several blocks add into
// one place as they come are not asked for. Its bits are those of one GPU and one version of the library.
namespace tenon::cuda {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;  // what NVIDIA advises for compute capability 9.0

#if CUDART_VERSION >= 13000
#define TENON_CUBLAS_FILE "libcublasLt.so.13"
#else
#define TENON_CUBLAS_FILE "libcublasLt.so.12"
#endif

const Library cublas_library("cuBLASLt", TENON_CUBLAS_FILE, "computes products of matrices",
                             "kernels of Tenon's own compute products of matrices", "nvidia-cublas",
                             [](const Library& l, char* text, size_t room) {
                               decltype(cublas::version)* version = nullptr;
                               if (!l.find(version, "cublasLtGetVersion")) return;
                               const size_t v = version();
                               const size_t unit = v >= 100000 ? 10000 : 1000;  // 13.1.0 is 130100, 11.9.2 is 11902
                               std::snprintf(text, room, "%zu.%zu.%zu", v / unit, v % unit / 100, v % 100);
                             });

struct CublasCalls {
  decltype(cublas::create)* create;
  decltype(cublas::desc_create)* desc_create;
  decltype(cublas::desc_destroy)* desc_destroy;
  decltype(cublas::desc_set)* desc_set;
  decltype(cublas::layout_create)* layout_create;
  decltype(cublas::layout_destroy)* layout_destroy;
  decltype(cublas::layout_set)* layout_set;
  decltype(cublas::preference_create)* preference_create;
  decltype(cublas::preference_destroy)* preference_destroy;
  decltype(cublas::preference_set)* preference_set;
  decltype(cublas::heuristic)* heuristic;
  decltype(cublas::matmul)* matmul;
  decltype(cublas::status_name)* status_name;
  bool found;

  CublasCalls() {
    const Library& l = cublas_library;
    found = l.find(create, "cublasLtCreate") && l.find(desc_create, "cublasLtMatmulDescCreate") &&
            l.find(desc_destroy, "cublasLtMatmulDescDestroy") && l.find(desc_set, "cublasLtMatmulDescSetAttribute") &&
            l.find(layout_create, "cublasLtMatrixLayoutCreate") &&
            l.find(layout_destroy, "cublasLtMatrixLayoutDestroy") &&
            l.find(layout_set, "cublasLtMatrixLayoutSetAttribute") &&
            l.find(preference_create, "cublasLtMatmulPreferenceCreate") &&
            l.find(preference_destroy, "cublasLtMatmulPreferenceDestroy") &&
            l.find(preference_set, "cublasLtMatmulPreferenceSetAttribute") &&
            l.find(heuristic, "cublasLtMatmulAlgoGetHeuristic") && l.find(matmul, "cublasLtMatmul") &&
            l.find(status_name, "cublasLtGetStatusName");
  }
};
const CublasCalls& cublas_calls() {
  static const CublasCalls calls;
  return calls;
}

/// A matrix as the library takes it: by columns, perhaps to be transposed.
struct LtMatrix {
  int64_t rows, cols, ld, batch_stride, operation;
};

/// The matrix [r, c] of strides, or its transpose where `turned`, as one by columns that `operation` turns into it.
bool by_columns(int64_t r, int64_t c, int64_t row, int64_t col, bool turned, LtMatrix* m) {
  if (turned) std::swap(r, c), std::swap(row, col);
  if ((row == 1 || r == 1) && (c == 1 || col >= r)) {
    m->rows = r, m->cols = c, m->ld = c == 1 ? r : col, m->operation = cublas::plain;
    return true;
  }
  if ((col == 1 || c == 1) && (r == 1 || row >= c)) {
    m->rows = c, m->cols = r, m->ld = r == 1 ? c : row, m->operation = cublas::transposed;
    return true;
  }
  return false;
}

/// What the choice of an algorithm depends on. Ordered by its bytes: no room between its members.
struct LtKey {
  LtMatrix a, b, c;
  int64_t batches;
  int32_t device, type, bias, add;
  int32_t by_rows;  ///< a is B' and b is A'
  int32_t tf32;
  uint32_t alignment[4];  ///< in bytes: of a, b, c and the bias
  bool operator<(const LtKey& o) const { return std::memcmp(this, &o, sizeof *this) < 0; }
};
static_assert(sizeof(LtMatrix) == 5 * 8 && sizeof(LtKey) == 3 * 40 + 8 + 16 + 8 + 16);

uint32_t alignment_of(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  const uintptr_t low = address & (~address + 1);
  return static_cast<uint32_t>(low == 0 || low > 256 ? 256 : low);
}

/// Null where the library cannot take the operands.
bool key_of(const Args& args, const GemmPlan& p, LtKey* key) {
  std::memset(static_cast<void*>(key), 0, sizeof *key);
  // Where C lies by rows the library computes C' = B' A'. A bias goes along its rows, which are then C's columns.
  const bool by_rows = (p.c.col == 1 || p.n == 1) && (p.m == 1 || p.c.row >= p.n);
  if (p.k == 0 || p.axes > 1 || (p.bias && (!by_rows || p.bias_stride != 1 || p.type == DType::f64))) return false;
  const GemmMatrix &left = by_rows ? p.b : p.a, &right = by_rows ? p.a : p.b;
  const bool fit = by_rows ? by_columns(p.k, p.n, left.row, left.col, true, &key->a) &&
                                 by_columns(p.m, p.k, right.row, right.col, true, &key->b)
                           : by_columns(p.m, p.k, left.row, left.col, false, &key->a) &&
                                 by_columns(p.k, p.n, right.row, right.col, false, &key->b);
  if (!fit || !by_columns(p.m, p.n, p.c.row, p.c.col, by_rows, &key->c) || key->c.operation != cublas::plain)
    return false;
  for (const LtMatrix* m : {&key->a, &key->b, &key->c})
    if (m->rows > INT32_MAX || m->cols > INT32_MAX) return false;
  key->batches = p.batches();
  if (key->batches > INT32_MAX) return false;
  if (p.axes == 1) {
    key->a.batch_stride = left.batch[0], key->b.batch_stride = right.batch[0], key->c.batch_stride = p.c.batch[0];
    if (key->a.batch_stride < 0 || key->b.batch_stride < 0 || key->c.batch_stride <= 0) return false;
  }
  key->by_rows = by_rows;
  key->tf32 = p.type == DType::f32 && args.tf32();
  key->device = args.device();
  key->type = static_cast<int32_t>(p.type);
  key->bias = p.bias != nullptr;
  key->add = p.add;
  key->alignment[0] = alignment_of(left.data);
  key->alignment[1] = alignment_of(right.data);
  key->alignment[2] = alignment_of(p.c.data);
  key->alignment[3] = p.bias ? alignment_of(p.bias) : 256;
  return true;
}

int cublas_type(DType t) {
  switch (t) {
    case DType::f64:
      return cublas::real_f64;
    case DType::f16:
      return cublas::real_f16;
    case DType::bf16:
      return cublas::real_bf16;
    default:
      return cublas::real_f32;
  }
}

/// A product as it is asked for. Kept until the process ends.
struct LtProduct {
  cublas::Desc desc = nullptr;
  cublas::Layout a = nullptr, b = nullptr, c = nullptr;
  cublas::Algo algo{};
  size_t workspace = 0;
  bool usable = false;
};

template <class V>
bool set_of(const CublasCalls& lt, cublas::Desc d, int attribute, const V& value) {
  return lt.desc_set(d, attribute, &value, sizeof value) == cublas::success;
}

bool make_layout(const CublasCalls& lt, const LtMatrix& m, int type, int64_t batches, cublas::Layout* layout) {
  if (lt.layout_create(layout, type, static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.cols), m.ld)) return false;
  if (batches == 1) return true;
  const auto count = static_cast<int32_t>(batches);
  return lt.layout_set(*layout, cublas::layout_batch_count, &count, sizeof count) == cublas::success &&
         lt.layout_set(*layout, cublas::layout_batch_stride, &m.batch_stride, sizeof m.batch_stride) == cublas::success;
}

LtProduct prepare(const CublasCalls& lt, cublas::Handle handle, const LtKey& key, const void* bias) {
  LtProduct p;
  const auto type = static_cast<DType>(key.type);
  const int real = cublas_type(type);
  if (lt.desc_create(&p.desc,
                     type == DType::f64 ? cublas::compute_f64
                     : key.tf32         ? cublas::compute_tf32
                                        : cublas::compute_f32,
                     type == DType::f64 ? cublas::real_f64 : cublas::real_f32))
    return p;
  bool made = set_of(lt, p.desc, cublas::desc_transa, static_cast<int32_t>(key.a.operation)) &&
              set_of(lt, p.desc, cublas::desc_transb, static_cast<int32_t>(key.b.operation));
  if (key.bias)
    made = made && set_of(lt, p.desc, cublas::desc_epilogue, cublas::epilogue_bias) &&
           set_of(lt, p.desc, cublas::desc_bias_pointer, bias);
  made = made && make_layout(lt, key.a, real, key.batches, &p.a) && make_layout(lt, key.b, real, key.batches, &p.b) &&
         make_layout(lt, key.c, real, key.batches, &p.c);
  cublas::Preference preference = nullptr;
  if (!made || lt.preference_create(&preference)) return p;
  const uint64_t room = kWorkspace;
  const uint32_t schemes = cublas::reduction_none | cublas::reduction_compute_type;
  const auto prefer = [&](int attribute, const auto& value) {
    made = made && lt.preference_set(preference, attribute, &value, sizeof value) == cublas::success;
  };
  prefer(cublas::preference_workspace_bytes, room);
  prefer(cublas::preference_reduction_schemes, schemes);
  prefer(cublas::preference_alignment_a, key.alignment[0]);
  prefer(cublas::preference_alignment_b, key.alignment[1]);
  prefer(cublas::preference_alignment_c, key.alignment[2]);
  prefer(cublas::preference_alignment_d, key.alignment[2]);
  cublas::Heuristic best{};
  int found = 0;
  p.usable = made &&
             lt.heuristic(handle, p.desc, p.a, p.b, p.c, p.c, preference, 1, &best, &found) == cublas::success &&
             found > 0 && best.state == cublas::success && best.workspace <= kWorkspace;
  p.algo = best.algo;
  p.workspace = best.workspace;
  lt.preference_destroy(preference);
  return p;
}

struct LtProducts {
  std::mutex mutex;
  std::map<int, cublas::Handle> handles;  ///< by device; null where there is none
  std::map<LtKey, LtProduct> all;
};
LtProducts& lt_products() {
  static auto* all = new LtProducts;
  return *all;
}

}  // namespace

bool cublas_there() { return cublas_library.there(); }

bool product_by_cublas(const Args& c, const GemmPlan& plan) {
  LtKey key;
  if (!key_of(c, plan, &key)) return false;
  const CublasCalls& lt = cublas_calls();
  if (!lt.found) return false;
  LtProducts& products = lt_products();
  std::lock_guard lock(products.mutex);  // descriptions are shared, and the bias's address is written into them
  const auto [device, fresh] = products.handles.try_emplace(c.device(), nullptr);
  if (fresh && lt.create(&device->second)) device->second = nullptr;
  const cublas::Handle handle = device->second;
  if (!handle) return false;
  auto found = products.all.find(key);
  if (found == products.all.end()) found = products.all.emplace(key, prepare(lt, handle, key, plan.bias)).first;
  const LtProduct& p = found->second;
  if (!p.usable) return false;
  if (plan.bias && !set_of(lt, p.desc, cublas::desc_bias_pointer, plan.bias)) return false;
  void* room = p.workspace ? c.scratch<char>(static_cast<int64_t>(p.workspace)) : nullptr;
  const double one = 1, none = 0;
  const float one_f32 = 1, none_f32 = 0;
  const bool wide = plan.type == DType::f64;
  const void* alpha = wide ? static_cast<const void*>(&one) : &one_f32;
  const void* beta = plan.add ? alpha : wide ? static_cast<const void*>(&none) : &none_f32;
  const void* left = key.by_rows ? plan.b.data : plan.a.data;
  const void* right = key.by_rows ? plan.a.data : plan.b.data;
  const int status = lt.matmul(handle, p.desc, alpha, left, p.a, right, p.b, beta, plan.c.data, p.c, plan.c.data, p.c,
                               &p.algo, room, p.workspace, static_cast<cudaStream_t>(c.stream()));
  if (status != cublas::success) {
    char text[256];
    std::snprintf(text, sizeof text, "a product by cuBLASLt: %s", lt.status_name(status));
    throw Failure(text);
  }
  c.by(cublas_library.name());
  return true;
}

}  // namespace tenon::cuda
