#include "engine/kernels/dnnl_matmul.h"

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/kernels/dnnl_engine.h"

namespace tenon::kernels {
namespace {

using dnnl::memory;

struct ShapeHash {
  size_t operator()(const MatmulShape& s) const {
    const int64_t v[] = {
        s.m, s.n, s.k, s.lda, s.ldb, s.ldc, s.ta | s.tb << 1 | s.bf16 << 2 | s.add << 3 | s.bias << 4 | s.packed << 5};
    uint64_t h = 0xcbf29ce484222325ull;
    for (int64_t x : v) h = (h ^ static_cast<uint64_t>(x)) * 0x100000001b3ull;
    return static_cast<size_t>(h ^ (h >> 29));
  }
};

struct Matmul {
  memory a, b, bias, c;
  memory::desc plain;   ///< of b before it is packed
  bool blocks = false;  ///< its kernel reads b in blocks, whatever order they lie in
  dnnl::primitive primitive;
  std::vector<dnnl_exec_arg_t> all;  ///< the operands as the primitive takes them
};

std::unique_ptr<Matmul> make_matmul(const MatmulShape& s) {
  const auto type = s.bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  auto side = [&](int64_t rows, int64_t cols, int64_t ld, bool turned) {
    return turned ? memory::desc({rows, cols}, type, memory::dims{1, ld})
                  : memory::desc({rows, cols}, type, memory::dims{ld, 1});
  };
  const memory::desc any({s.k, s.n}, type, memory::format_tag::any), plain = side(s.k, s.n, s.ldb, s.tb);
  const memory::desc a = side(s.m, s.k, s.lda, s.ta), b = s.packed ? any : plain, c = side(s.m, s.n, s.ldc, false),
                     bias = s.bias ? memory::desc({1, s.n}, type, memory::dims{s.n, 1}) : memory::desc();
  dnnl::primitive_attr attr;
  if (s.add) {
    dnnl::post_ops after;
    after.append_sum();
    attr.set_post_ops(after);
  }
  const auto desc = s.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  auto m = std::make_unique<Matmul>();
  const dnnl::matmul::primitive_desc pd(desc, attr, dnnl_engine());
  m->primitive = dnnl::matmul(pd);
  m->plain = plain;
  m->blocks = std::string_view(pd.impl_info_str()).starts_with("brg");
  m->a = memory(a, dnnl_engine(), nullptr);
  m->b = memory(pd.weights_desc(), dnnl_engine(), nullptr);
  m->c = memory(c, dnnl_engine(), nullptr);
  m->all = {{DNNL_ARG_SRC, m->a.get()}, {DNNL_ARG_WEIGHTS, m->b.get()}, {DNNL_ARG_DST, m->c.get()}};
  if (s.bias) {
    m->bias = memory(bias, dnnl_engine(), nullptr);
    m->all.push_back({DNNL_ARG_BIAS, m->bias.get()});
  }
  return m;
}

/// Primitives carry scratch memory, so each thread has its own.
Matmul& matmul_of(const MatmulShape& s) {
  thread_local std::unordered_map<MatmulShape, std::unique_ptr<Matmul>, ShapeHash> cache;
  const auto found = cache.find(s);
  if (found != cache.end()) return *found->second;
  if (cache.size() >= 512) cache.clear();
  return *cache.emplace(s, make_matmul(s)).first->second;
}

}  // namespace

bool has_bf16_products() {
  using enum dnnl::cpu_isa;
  static const bool has = dnnl_runs_on({avx512_core_bf16, avx512_core_amx});
  return has;
}

bool has_bf16_tile_products() {
  static const bool has = dnnl_runs_on({dnnl::cpu_isa::avx512_core_amx});
  return has;
}

bool packs_products() {
  using enum dnnl::cpu_isa;
  static const bool packs = dnnl_runs_on({avx512_core, avx512_core_vnni, avx512_core_bf16, avx512_core_amx});
  return packs;
}

bool dnnl_matmul_packs(const MatmulShape& s) {
  if (!packs_products()) return false;
  return dnnl_guarded("product", [&] {
    MatmulShape plain = s;
    plain.packed = false;
    const bool packed_blocks = matmul_of(s).blocks;
    return packed_blocks && matmul_of(plain).blocks;
  });
}

size_t dnnl_matmul_packed_bytes(const MatmulShape& s) {
  return dnnl_guarded("product", [&] { return matmul_of(s).b.get_desc().get_size(); });
}

bool dnnl_matmul_same_packing(const MatmulShape& a, const MatmulShape& b) {
  if (a == b) return true;
  return dnnl_guarded("product", [&] {
    const memory::desc first = matmul_of(a).b.get_desc();  // a copy: making the second may empty the cache
    return first == matmul_of(b).b.get_desc();
  });
}

void dnnl_matmul_pack(const MatmulShape& s, const void* b, void* packed) {
  dnnl_guarded("weights of a product", [&] {
    const Matmul& m = matmul_of(s);
    memory from(m.plain, dnnl_engine(), const_cast<void*>(b)), to(m.b.get_desc(), dnnl_engine(), packed);
    dnnl::reorder(from, to).execute(dnnl_stream(), from, to);
  });
}

void dnnl_matmul(const MatmulShape& s, const void* a, const void* b, const void* bias, void* c) {
  dnnl_guarded("product", [&] {
    Matmul& m = matmul_of(s);
    m.a.set_data_handle(const_cast<void*>(a));
    m.b.set_data_handle(const_cast<void*>(b));
    m.c.set_data_handle(c);
    if (s.bias) m.bias.set_data_handle(const_cast<void*>(bias));
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(m.primitive.get(), dnnl_stream().get(), static_cast<int>(m.all.size()), m.all.data()),
        "could not execute a product");
  });
}

}  // namespace tenon::kernels
