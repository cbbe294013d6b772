#include "engine/kernels/packed_product.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <vector>

#include "core/parallel.h"
#include "engine/kernels/dnnl_engine.h"
#include "engine/kernels/scratch.h"

namespace tenon::kernels {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kNumber = memory::data_type::f32;

constexpr int64_t kPanel = 64;              ///< columns
constexpr int64_t kPieceNumbers = 1 << 17;  ///< of the matrix, read in about 30 us

/// The sums of so many products are added up: errors stay small however long a row is.
constexpr int64_t kRun = 512;

void panel_sums(int64_t k, const float* x, const float* panel, float* sums) {
  std::fill_n(sums, kPanel, 0.0f);
  for (int64_t begin = 0; begin < k; begin += kRun) {
    float part[kPanel] = {};
    for (int64_t i = begin; i < std::min(k, begin + kRun); ++i)
      for (int64_t j = 0; j < kPanel; ++j) part[j] = __builtin_fmaf(x[i], panel[i * kPanel + j], part[j]);
    for (int64_t j = 0; j < kPanel; ++j) sums[j] += part[j];
  }
}

}  // namespace

struct PackedProduct::Impl {
  struct Ready {
    memory::desc src, dst, scratch;
    memory weights, bias;
    dnnl::matmul primitive;
  };
  /// How many rows, and which columns.
  using Piece = std::tuple<int64_t, int64_t, int64_t>;
  int64_t k, n;
  bool turned;
  const float *plain, *bias;
  std::mutex mutex;  ///< of the panels
  ReadyOnes<Piece, Ready> ready{256};
  std::vector<std::tuple<int64_t, int64_t, memory>> packed;  ///< of which columns, in each layout that is wanted

  std::vector<float> panels;  ///< of kPanel columns, for one row

  void make_panels();
  void run_row(const float* x, float* y, const AfterPiece& after);

  memory packed_as(const memory::desc& wanted, int64_t first, int64_t count) {
    for (const auto& [at, of, m] : packed)
      if (at == first && of == count && m.get_desc() == wanted) return m;
    const memory::dims strides = turned ? memory::dims{1, k} : memory::dims{n, 1};
    memory from({{k, count}, kNumber, strides}, dnnl_engine(), const_cast<float*>(plain + first * strides[1]));
    memory to(wanted, dnnl_engine());
    dnnl::reorder(from, to).execute(dnnl_stream(), from, to);
    packed.emplace_back(first, count, to);
    return to;
  }

  std::shared_ptr<const Ready> make(const Piece& piece) {
    const auto [rows, first, count] = piece;
    auto r = std::make_shared<Ready>();
    r->src = memory::desc({rows, k}, kNumber, Tag::ab);
    r->dst = memory::desc({rows, count}, kNumber, memory::dims{n, 1});
    const memory::desc any({k, count}, kNumber, Tag::any), b({1, count}, kNumber, Tag::ab);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc pd(
        bias ? dnnl::matmul::desc(r->src, any, b, r->dst) : dnnl::matmul::desc(r->src, any, r->dst), attr,
        dnnl_engine());
    r->scratch = pd.scratchpad_desc();
    r->weights = packed_as(pd.weights_desc(), first, count);
    if (bias) r->bias = memory(b, dnnl_engine(), const_cast<float*>(bias + first));
    r->primitive = dnnl::matmul(pd);
    return r;
  }

  void run(int64_t rows, int64_t first, int64_t count, const float* x, float* y) {
    dnnl_guarded("product", [&] {
      const auto r = ready.get(
          {rows, first, count}, [&](const Piece& piece) { return make(piece); }, [&] { packed.clear(); });
      const Scratch<char> scratch(static_cast<int64_t>(r->scratch.get_size()));
      std::unordered_map<int, memory> args{{DNNL_ARG_SRC, memory(r->src, dnnl_engine(), const_cast<float*>(x))},
                                           {DNNL_ARG_WEIGHTS, r->weights},
                                           {DNNL_ARG_DST, memory(r->dst, dnnl_engine(), y)},
                                           {DNNL_ARG_SCRATCHPAD, memory(r->scratch, dnnl_engine(), scratch.data())}};
      if (bias) args.emplace(DNNL_ARG_BIAS, r->bias);
      r->primitive.execute(dnnl_stream(), args);
    });
  }
};

PackedProduct::PackedProduct(int64_t k, int64_t n, bool turned, const float* matrix, const float* bias)
    : impl_(std::make_unique<Impl>()) {
  impl_->k = k;
  impl_->n = n;
  impl_->turned = turned;
  impl_->plain = matrix;
  impl_->bias = bias;
}
PackedProduct::~PackedProduct() = default;

int64_t PackedProduct::k() const { return impl_->k; }
int64_t PackedProduct::n() const { return impl_->n; }

/// One row: the matrix is read once, column by column of panels, as fast as the memory gives it.
void PackedProduct::Impl::run_row(const float* x, float* y, const AfterPiece& after) {
  {
    const std::lock_guard lock(mutex);
    if (panels.empty()) make_panels();
  }
  const int64_t count = (n + kPanel - 1) / kPanel;
  const int64_t grain = std::max<int64_t>(1, kPieceNumbers / (k * kPanel));
  parallel_for(count, grain, [&](int64_t p, int64_t last) {
    const int64_t first = p * kPanel;
    for (; p < last; ++p) {
      alignas(64) float sums[kPanel];
      panel_sums(k, x, panels.data() + p * k * kPanel, sums);
      for (int64_t j = p * kPanel; j < std::min(n, (p + 1) * kPanel); ++j)
        y[j] = bias ? sums[j - p * kPanel] + bias[j] : sums[j - p * kPanel];
    }
    if (after) after(y + first, first, std::min(n, last * kPanel) - first);
  });
}

void PackedProduct::Impl::make_panels() {
  panels.assign(static_cast<size_t>((n + kPanel - 1) / kPanel * kPanel * k), 0);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < k; ++i)
      panels[static_cast<size_t>(j / kPanel * kPanel * k + i * kPanel + j % kPanel)] =
          turned ? plain[j * k + i] : plain[i * n + j];
}

void PackedProduct::run(int64_t rows, const float* x, float* y, const AfterPiece& after) const {
  const int64_t k = impl_->k, n = impl_->n;
  if (rows == 0 || n == 0) return;
  if (rows == 1) return impl_->run_row(x, y, after);
  // A piece takes about 30 us: of its products, or of reading its share of the matrix once.
  const auto matrix = static_cast<double>(k * n);
  const double work = std::max(2 * matrix * static_cast<double>(rows), 40 * matrix);
  const int64_t pieces = std::clamp<int64_t>(static_cast<int64_t>(work / 3e6), 1, 16);
  const int64_t down = std::clamp<int64_t>(rows / 64, 1, pieces),
                across = std::clamp<int64_t>(n / 64, 1, pieces / down);
  const int64_t height = (rows + down - 1) / down, width = ((n + across - 1) / across + 15) / 16 * 16;
  const int64_t columns = (n + width - 1) / width, stripes = (rows + height - 1) / height;
  parallel_for(stripes * columns, 1, [&](int64_t p, int64_t e) {
    for (; p < e; ++p) {
      const int64_t i = p / columns * height, j = p % columns * width;
      const int64_t tall = std::min(height, rows - i), wide = std::min(width, n - j);
      impl_->run(tall, j, wide, x + i * k, y + i * n + j);
      if (!after) continue;
      if (wide == n)
        after(y + i * n, i * n, tall * n);
      else
        for (int64_t r = i; r < i + tall; ++r) after(y + r * n + j, r * n + j, wide);
    }
  });
}

}  // namespace tenon::kernels
