// Which range of an activation's values its integers stand for.
#include "engine/formats/onnx/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/formats/onnx/run.h"
#include "engine/formats/quant_grid.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

constexpr size_t kBins = 2048;

Registry<CalibrationDef>& calibration_registry() {
  static auto& all = *new Registry<CalibrationDef>("calibration");
  return all;
}

CalibrationRange whole_range(const ValueHistogram& h, int) { return {h.lo, h.hi}; }

/// Where `wanted` of the values lie below, linear within a bin.
double quantile(const ValueHistogram& h, double wanted) {
  double below = 0;
  for (size_t b = 0; b < h.counts.size(); ++b) {
    const auto here = static_cast<double>(h.counts[b]);
    if (here > 0 && below + here >= wanted)
      return h.lo + (static_cast<double>(b) + std::clamp((wanted - below) / here, 0.0, 1.0)) * h.width();
    below += here;
  }
  return h.hi;
}

CalibrationRange percentile_range(const ValueHistogram& h, int) {
  constexpr double kCut = 1e-4;  // half of it at each end
  const auto all = static_cast<double>(h.total());
  return {std::min(0.0, quantile(h, all * kCut / 2)), std::max(0.0, quantile(h, all * (1 - kCut / 2)))};
}

/// The mean over the values of what the grid of a range makes of them: the middle of each bin stands for it.
double mean_square(const ValueHistogram& h, const CalibrationRange& r, int levels) {
  const QuantGrid g = asymmetric_grid(r.lo, r.hi, static_cast<int>(std::lround(std::log2(levels))));
  double sum = 0;
  for (size_t b = 0; b < h.counts.size(); ++b) {
    if (!h.counts[b]) continue;
    const double x = h.middle(b), d = x - g.value(g.quantized(static_cast<float>(x)));
    sum += static_cast<double>(h.counts[b]) * d * d;
  }
  return sum / static_cast<double>(h.total());
}

CalibrationRange least_squares_range(const ValueHistogram& h, int levels) {
  constexpr int kSteps = 100;
  CalibrationRange best{h.lo, h.hi};
  double least = std::numeric_limits<double>::infinity();
  for (int k = kSteps; k > 0; --k) {
    const double share = static_cast<double>(k) / kSteps;
    const CalibrationRange r{h.lo * share, h.hi * share};
    const double error = mean_square(h, r, levels);
    if (error < least) best = r, least = error;
  }
  return best;
}

/// What is lost of a distribution when bins `first` to `last` are kept, what lies outside is put into the outermost of
/// them, and the kept ones are told apart in `levels` steps alone (Migacz, 8-bit inference with TensorRT, 2017).
double divergence(const ValueHistogram& h, size_t first, size_t last, int levels) {
  const size_t kept = last - first + 1;
  std::vector<double> p(h.counts.begin() + static_cast<std::ptrdiff_t>(first),
                        h.counts.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  std::vector<double> q(kept, 0.0);
  for (int l = 0; l < levels; ++l) {
    const size_t from = kept * static_cast<size_t>(l) / static_cast<size_t>(levels),
                 to = kept * static_cast<size_t>(l + 1) / static_cast<size_t>(levels);
    double sum = 0, filled = 0;
    for (size_t b = from; b < to; ++b) sum += p[b], filled += p[b] > 0;
    for (size_t b = from; b < to; ++b)
      if (p[b] > 0) q[b] = sum / filled;
  }
  for (size_t b = 0; b < first; ++b) p.front() += static_cast<double>(h.counts[b]);
  for (size_t b = last + 1; b < h.counts.size(); ++b) p.back() += static_cast<double>(h.counts[b]);
  const double all = std::accumulate(p.begin(), p.end(), 0.0), of_q = std::accumulate(q.begin(), q.end(), 0.0);
  if (!(of_q > 0)) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t b = 0; b < kept; ++b) {
    if (p[b] == 0) continue;
    // An end that holds nothing but what was cut off has no counterpart: as good as lost.
    const double share = p[b] / all, other = q[b] > 0 ? q[b] / of_q : 1e-12;
    sum += share * std::log(share / other);
  }
  return sum;
}

/// The ends move towards 0 together, as far as each reaches.
CalibrationRange entropy_range(const ValueHistogram& values, int levels) {
  ValueHistogram h = values;
  const double width = h.width(), most = std::max(h.hi, -h.lo);
  if (!(width > 0)) return {h.lo, h.hi};
  CalibrationRange best{h.lo, h.hi};
  double least = std::numeric_limits<double>::infinity();
  const size_t bins = h.counts.size();
  const auto zero = static_cast<size_t>(std::clamp(-h.lo / width, 0.0, static_cast<double>(bins - 1)));
  // Every grid meets 0 exactly, and behind a ReLU half of the values are 0: they are not what is lost.
  h.counts[zero] = std::min(h.counts[zero], h.counts[zero + 1 < bins ? zero + 1 : zero - 1]);
  for (double reach = most; reach > 0; reach -= width) {
    const CalibrationRange r{std::max(h.lo, -reach), std::min(h.hi, reach)};
    const auto first = static_cast<size_t>(std::clamp((r.lo - h.lo) / width, 0.0, static_cast<double>(zero))),
               end = static_cast<size_t>(std::ceil(std::clamp((r.hi - h.lo) / width, 1.0, static_cast<double>(bins))));
    const size_t last = std::max(end - 1, zero);
    if (last - first + 1 < static_cast<size_t>(levels)) break;
    const double lost = divergence(h, first, last, levels);
    if (lost < least) best = r, least = lost;
  }
  return best;
}

const bool registered_calibrations =
    register_calibration({"minmax", "from the smallest to the largest value seen", whole_range}) &&
    register_calibration({"percentile", "without the 0.005 % of the values at each end", percentile_range}) &&
    register_calibration({"entropy", "what loses the least of the distribution (Kullback-Leibler)", entropy_range}) &&
    register_calibration({"mse", "what leaves the least squared error", least_squares_range});

/// Calls `see` with every value of the tensors named.
void each_value(const OnnxModel& model, const std::vector<std::string>& names, const std::vector<Tensor>& batches,
                const std::function<void(size_t name, const float* x, int64_t n)>& see,
                const std::function<bool()>& go_on) {
  for (const Tensor& batch : batches) {
    if (!go_on()) throw Error("cancelled");
    const std::vector<Tensor> values = values_within(model, names, batch);
    for (size_t i = 0; i < names.size(); ++i) {
      const Tensor x = contiguous(cast(values[i], DType::f32));
      see(i, x.data<float>(), x.numel());
    }
  }
}

}  // namespace

int64_t ValueHistogram::total() const { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

bool register_calibration(CalibrationDef def, Place place) { return calibration_registry().add(std::move(def), place); }
const Registry<CalibrationDef>& calibrations() { return calibration_registry(); }

const CalibrationDef& calibration_named(const std::string& name) {
  if (const CalibrationDef* def = calibrations().find(name)) return *def;
  std::string all;
  for (const CalibrationDef& def : calibrations()) all += (all.empty() ? "" : ", ") + def.name;
  throw Error::usage("there is no calibration \"" + name + "\"", all);
}

std::vector<Tensor> values_within(const OnnxModel& model, const std::vector<std::string>& names, const Tensor& input) {
  return run_onnx(with_outputs(model, names), {input});
}

std::map<std::string, ValueHistogram> observe(const OnnxModel& model, const std::vector<std::string>& names,
                                              const std::vector<Tensor>& batches, const QuantProgress& progress) {
  std::vector<ValueHistogram> seen(names.size());
  const int64_t total = 2 * static_cast<int64_t>(batches.size());
  int64_t done = 0;
  auto go_on = [&] { return !progress || progress(done++, total); };
  // Twice: bins are laid over a range that is known.
  each_value(
      model, names, batches,
      [&](size_t i, const float* x, int64_t n) {
        for (int64_t k = 0; k < n; ++k) {
          if (!std::isfinite(x[k])) throw Error(fmt::format("a value of '{}' is not finite", names[i]));
          seen[i].lo = std::min<double>(seen[i].lo, x[k]);
          seen[i].hi = std::max<double>(seen[i].hi, x[k]);
        }
      },
      go_on);
  for (ValueHistogram& h : seen) h.counts.assign(kBins, 0);
  each_value(
      model, names, batches,
      [&](size_t i, const float* x, int64_t n) {
        ValueHistogram& h = seen[i];
        const double scale = h.hi > h.lo ? static_cast<double>(kBins) / (h.hi - h.lo) : 0;
        for (int64_t k = 0; k < n; ++k)
          ++h.counts[std::min(static_cast<size_t>((static_cast<double>(x[k]) - h.lo) * scale), kBins - 1)];
      },
      go_on);
  std::map<std::string, ValueHistogram> out;
  for (size_t i = 0; i < names.size(); ++i) out.emplace(names[i], std::move(seen[i]));
  return out;
}

}  // namespace tenon::formats
