#include "engine/kernels/packed_product.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <vector>

#include "core/parallel.h"
#include "engine/kernels/ready_call.h"
#include "engine/kernels/tiled_gemm.h"
#include "engine/kernels/tiles.h"

namespace tenon::kernels {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kNumber = memory::data_type::f32;

constexpr int64_t kPanel = 64;              ///< columns
constexpr int64_t kPieceNumbers = 1 << 17;  ///< of the matrix, read in about 30 us

// Tiles of our own are 1.02 to 1.6 times as fast as oneDNN's product from so many columns on, on two cores with
// AVX-512; with fewer, or with very many rows, 0.5 to 1.
constexpr int64_t kTiledColumns = 192, kTiledRows = 2048;

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
  /// How many rows, and which columns.
  using Piece = std::tuple<int64_t, int64_t, int64_t>;
  int64_t k, n;
  bool turned;
  const float *plain, *bias;
  std::mutex mutex;  ///< of the panels
  ReadyOnes<Piece, ReadyCall> ready{256};
  std::vector<std::tuple<int64_t, int64_t, memory>> packed;  ///< of which columns, in each layout that is wanted

  std::vector<float> panels;      ///< of kPanel columns, for one row
  std::unique_ptr<float[]> room;  ///< of `tiled`
  float* tiled = nullptr;         ///< as tiled_gemm_packed() reads it

  void make_panels();
  void make_tiles();
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

  std::shared_ptr<const ReadyCall> make(const Piece& piece) {
    const auto [rows, first, count] = piece;
    const memory::desc src({rows, k}, kNumber, Tag::ab), dst({rows, count}, kNumber, memory::dims{n, 1});
    const memory::desc any({k, count}, kNumber, Tag::any), b({1, count}, kNumber, Tag::ab);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc pd(
        bias ? dnnl::matmul::desc(src, any, b, dst) : dnnl::matmul::desc(src, any, dst), attr, dnnl_engine());
    ReadyCall::Fixed fixed = {{DNNL_ARG_WEIGHTS, packed_as(pd.weights_desc(), first, count)}};
    if (bias) fixed.emplace_back(DNNL_ARG_BIAS, memory(b, dnnl_engine(), const_cast<float*>(bias + first)));
    return std::make_shared<ReadyCall>(dnnl::matmul(pd), src, dst, pd.scratchpad_desc(), std::move(fixed));
  }

  void run(int64_t rows, int64_t first, int64_t count, const float* x, float* y) {
    dnnl_guarded("product", [&] {
      ready
          .get(
              {rows, first, count}, [&](const Piece& piece) { return make(piece); }, [&] { packed.clear(); })
          ->run(x, y);
    });
  }
  void run_tiles(int64_t rows, int64_t first, int64_t count, const float* x, float* y);
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

/// Begins with the bias, to which the products are added.
void PackedProduct::Impl::run_tiles(int64_t rows, int64_t first, int64_t count, const float* x, float* y) {
  if (bias)
    for (int64_t i = 0; i < rows; ++i) std::copy_n(bias + first, count, y + i * n);
  tiled_gemm_packed(rows, n, k, x, k, tiled, {first, count}, y, n, bias != nullptr);
}

void PackedProduct::Impl::make_tiles() {
  const std::lock_guard lock(mutex);
  if (tiled) return;
  constexpr size_t kLine = 64;
  const auto bytes = static_cast<size_t>(tiled_side<float>(n, k)) * sizeof(float);
  size_t space = bytes + kLine;
  room = std::make_unique_for_overwrite<float[]>(space / sizeof(float));
  void* at = room.get();
  auto* const aligned = static_cast<float*>(std::align(kLine, bytes, at, space));
  tiled_pack(turned, n, k, plain, turned ? k : n, aligned);
  tiled = aligned;
}

void PackedProduct::run(int64_t rows, const float* x, float* y, const AfterPiece& after) const {
  const int64_t k = impl_->k, n = impl_->n;
  if (rows == 0 || n == 0) return;
  if (rows == 1) return impl_->run_row(x, y, after);
  const bool tiles = product_tiles<float>().in_strips && n >= kTiledColumns && rows <= kTiledRows;
  if (tiles) impl_->make_tiles();
  // A piece takes about 30 us: of its products, or of reading its share of the matrix once.
  const auto matrix = static_cast<double>(k * n);
  const double work = std::max(2 * matrix * static_cast<double>(rows), 40 * matrix);
  const int64_t pieces = std::clamp<int64_t>(static_cast<int64_t>(work / 3e6), 1, 16);
  const int64_t down = std::clamp<int64_t>(rows / (tiles ? 48 : 64), 1, pieces),
                across = std::clamp<int64_t>(n / 64, 1, pieces / down);
  const int64_t height =
      tiles ? ((rows + down - 1) / down + kMostTall - 1) / kMostTall * kMostTall : (rows + down - 1) / down;
  const int64_t width = ((n + across - 1) / across + 31) / 32 * 32;
  const int64_t columns = (n + width - 1) / width, stripes = (rows + height - 1) / height;
  parallel_for(stripes * columns, 1, [&](int64_t p, int64_t e) {
    for (; p < e; ++p) {
      const int64_t i = p / columns * height, j = p % columns * width;
      const int64_t tall = std::min(height, rows - i), wide = std::min(width, n - j);
      tiles ? impl_->run_tiles(tall, j, wide, x + i * k, y + i * n + j)
            : impl_->run(tall, j, wide, x + i * k, y + i * n + j);
      if (!after) continue;
      if (wide == n)
        after(y + i * n, i * n, tall * n);
      else
        for (int64_t r = i; r < i + tall; ++r) after(y + r * n + j, r * n + j, wide);
    }
  });
}

}  // namespace tenon::kernels
