#include "views/shared/tensor_stats.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "core/backend.h"
#include "core/mapped_file.h"
#include "core/parallel.h"
#include "core/tensor_values.h"
#include "engine/formats/model_file.h"
#include "engine/kernels/value_sums.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

std::string format_tensors(size_t n) {
  return n == 1 ? tr("1 tensor") : tr("{} tensors", format_grouped(static_cast<int64_t>(n)));
}

// Note [Statistics of many values]
// What an element's bits are decides how it is read. Of types of 16 bits each pattern is counted, which takes one look
// at an element; everything else is worked out of 65536 counts, whole numbers that are the same whoever counts first.
// Other types are summed up in pieces of a fixed size, put together in their order, and looked at again for the
// histogram, whose ends are not known before. Values of f32 and f64 that lie in a row are read where they are, all
// others through a buffer of doubles.
namespace {

using kernels::ValueSums;
using GoOn = std::function<bool(int64_t, int64_t)>;

constexpr int64_t kPiece = int64_t{1} << 16;         // elements that are summed up together
constexpr int64_t kRound = 64;                       // pieces between two looks at whether to go on
constexpr int64_t kPatternPiece = int64_t{1} << 22;  // elements whose patterns are counted together
constexpr size_t kPatterns = 65536;

/// Where the values begin, where they lie in a row and are no views of anything narrower; null else.
const char* in_a_row(const Tensor& t) {
  return t.layout().is_contiguous() && t.storage() ? static_cast<const char*>(t.storage()->data) +
                                                         t.layout().offset * static_cast<int64_t>(itemsize(t.dtype()))
                                                   : nullptr;
}

/// Calls fn(pointer, count, T of what lies there) for the elements `from` to `to` in logical order, in blocks that are
/// the same whoever asks.
template <class Fn>
void blocks(const Tensor& t, int64_t from, int64_t to, Fn fn) {
  const char* row = in_a_row(t);
  if (row && t.dtype() == DType::f32) return fn(row + from * 4, to - from, float());
  if (row && t.dtype() == DType::f64) return fn(row + from * 8, to - from, double());
  std::array<double, 4096> values;
  for (int64_t begin = from; begin < to; begin += std::ssize(values)) {
    const int64_t n = std::min<int64_t>(to - begin, std::ssize(values));
    read_values(t, begin, begin + n, values.data());
    fn(values.data(), n, double());
  }
}

ValueSums sums_of(const Tensor& t, int64_t from, int64_t to) {
  ValueSums s;
  const double tiny = t.dtype() != DType::f64 ? static_cast<double>(FLT_MIN) : 0;
  blocks(t, from, to,
         [&](const void* p, int64_t n, auto type) { s.add(kernels::sums_of<decltype(type)>(p, n, tiny)); });
  return s;
}

/// Works through all pieces, a round of them at a time; false where it was told to stop. What pieces give is taken in
/// their order.
template <class Piece, class Taken>
bool in_pieces(int64_t n, int64_t size, int64_t done_before, int64_t all, const GoOn& go_on, Piece piece, Taken taken) {
  using Result = decltype(piece(int64_t{0}, int64_t{0}));
  const int64_t round = std::max<int64_t>(kRound * kPiece / size, num_threads()) * size;
  std::vector<Result> results(static_cast<size_t>(round / size));
  for (int64_t begin = 0; begin < n; begin += round) {
    if (go_on && !go_on(done_before + begin, all)) return false;
    const int64_t end = std::min(n, begin + round), pieces = (end - begin + size - 1) / size;
    parallel_for(pieces, 1, [&](int64_t a, int64_t b) {
      for (int64_t i = a; i < b; ++i)
        results[static_cast<size_t>(i)] = piece(begin + i * size, std::min(end, begin + (i + 1) * size));
    });
    for (int64_t i = 0; i < pieces; ++i) taken(results[static_cast<size_t>(i)]);
  }
  return true;
}

/// The bin of a finite value, of `bins` of them from `min` on.
size_t bin_of(double v, double min, double width, size_t bins) {
  return width > 0 && std::isfinite(width) ? std::min(static_cast<size_t>((v - min) / width), bins - 1) : 0;
}

/// Of a type of 16 bits.
bool by_patterns(const Tensor& t, int64_t n, const GoOn& go_on, ValueSums& all, std::vector<int64_t>& bins) {
  std::vector<int64_t> counts(kPatterns, 0);
  const char* row = in_a_row(t);
  const auto counted = [&](int64_t from, int64_t to) {
    std::vector<uint32_t> here(kPatterns, 0);
    if (row) return kernels::count_patterns(row + 2 * from, to - from, here.data()), here;
    std::array<uint64_t, 1024> bits;
    for (int64_t begin = from; begin < to; begin += std::ssize(bits)) {
      const int64_t few = std::min<int64_t>(to - begin, std::ssize(bits));
      read_bits(t, begin, begin + few, bits.data());
      for (int64_t i = 0; i < few; ++i) ++here[bits[static_cast<size_t>(i)]];
    }
    return here;
  };
  // Told as if each were read twice, as it is of other types.
  const auto halves = [&](int64_t done, int64_t) { return go_on(2 * done, 2 * n); };
  if (!in_pieces(n, kPatternPiece, 0, n, go_on ? GoOn(halves) : GoOn(), counted,
                 [&](const std::vector<uint32_t>& here) {
                   for (size_t k = 0; k < kPatterns; ++k) counts[k] += here[k];
                 }))
    return false;
  std::vector<uint16_t> patterns(kPatterns);
  std::iota(patterns.begin(), patterns.end(), uint16_t{0});
  const Tensor each =
      from_blob(patterns.data(), 2 * kPatterns, Layout::contiguous({int64_t{kPatterns}}), t.dtype(), [](Storage*) {});
  std::vector<double> values(kPatterns);
  read_values(each, 0, int64_t{kPatterns}, values.data());
  all.count = n;
  double sum = 0;
  for (size_t k = 0; k < kPatterns; ++k) {
    const double v = values[k], many = static_cast<double>(counts[k]);
    if (counts[k] == 0) continue;
    if (!std::isfinite(v)) {
      (std::isnan(v) ? all.nan : all.inf) += counts[k];
      continue;
    }
    all.min = std::min(all.min, v);
    all.max = std::max(all.max, v);
    all.zeros += v == 0 ? counts[k] : 0;
    all.negative += v < 0 ? counts[k] : 0;
    all.denormal += v != 0 && std::fabs(v) < static_cast<double>(FLT_MIN) ? counts[k] : 0;
    sum += many * v;
    all.squares += many * v * v;
  }
  if (all.finite() == 0) return true;
  all.mean = sum / static_cast<double>(all.finite());
  const double width = (all.max - all.min) / static_cast<double>(bins.size());
  for (size_t k = 0; k < kPatterns; ++k) {
    if (counts[k] == 0 || !std::isfinite(values[k])) continue;
    const double off = values[k] - all.mean;
    all.around += static_cast<double>(counts[k]) * off * off;
    bins[bin_of(values[k], all.min, width, bins.size())] += counts[k];
  }
  return true;
}

/// Of every other type.
bool by_values(const Tensor& t, int64_t n, const GoOn& go_on, ValueSums& all, std::vector<int64_t>& bins) {
  if (!in_pieces(
          n, kPiece, 0, 2 * n, go_on, [&](int64_t a, int64_t b) { return sums_of(t, a, b); },
          [&](const ValueSums& one) { all.add(one); }))
    return false;
  if (all.finite() == 0) return true;
  const double width = (all.max - all.min) / static_cast<double>(bins.size());
  if (!(width > 0) || !std::isfinite(width)) {
    bins[0] = all.finite();
    return !go_on || go_on(n, 2 * n);
  }
  return in_pieces(
      n, kPiece, n, 2 * n, go_on,
      [&](int64_t a, int64_t b) {
        std::vector<int64_t> counts(bins.size(), 0);
        blocks(t, a, b, [&](const void* p, int64_t count, auto type) {
          kernels::count_bins<decltype(type)>(p, count, all.min, width, counts.data(), static_cast<int>(bins.size()));
        });
        return counts;
      },
      [&](const std::vector<int64_t>& counts) {
        for (size_t i = 0; i < counts.size(); ++i) bins[i] += counts[i];
      });
}
}  // namespace

TensorStats tensor_stats(const Tensor& given, int bins, const std::function<bool(int64_t, int64_t)>& go_on) {
  TensorStats s;
  if (!given.defined() || given.is_meta()) return s;
  const Tensor t = to_host(given);
  const int64_t n = t.numel();
  if (go_on && !go_on(0, 2 * n)) return s;
  ValueSums all;
  s.bins.assign(static_cast<size_t>(std::max(bins, 1)), 0);
  if (!(itemsize(t.dtype()) == 2 ? by_patterns : by_values)(t, n, go_on, all, s.bins)) return {};
  if (const auto finite = static_cast<double>(all.finite()); finite > 0) {
    s.min = all.min;
    s.max = all.max;
    s.mean = all.mean;
    s.std = finite > 1 ? std::sqrt(all.around / (finite - 1)) : 0;
    s.l2 = std::sqrt(all.squares);
  }
  s.count = all.count;
  s.nan = all.nan;
  s.inf = all.inf;
  s.zeros = all.zeros;
  s.negative = all.negative;
  s.denormal = all.denormal;
  return s;
}

TensorStats file_tensor_stats(const formats::ModelFile& file, size_t entry, int bins,
                              const std::function<bool(int64_t, int64_t)>& go_on) {
  constexpr int64_t kBetween = int64_t{1} << 23, kTimes = 64;
  const Tensor t = file.tensor(entry);
  // Elements that are read between two times that pages are let go of; each time takes as long as the tensor is large.
  const int64_t between = std::max(kBetween, t.numel() / kTimes);
  int64_t next = between;
  TensorStats s = tensor_stats(t, bins, [&](int64_t done, int64_t total) {
    if (done >= next) {
      forget_pages(t);
      next = done + between;
    }
    return !go_on || go_on(done, total);
  });
  forget_pages(t);
  return s;
}

}  // namespace tenon::views
