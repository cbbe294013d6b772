#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/registry.h"
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// How the values of a tensor are spread over all samples that were seen.
struct ValueHistogram {
  double lo = 0, hi = 0;        ///< of all values and 0
  std::vector<int64_t> counts;  ///< of equal bins from lo to hi
  double width() const { return (hi - lo) / static_cast<double>(counts.size()); }
  double middle(size_t bin) const { return lo + (static_cast<double>(bin) + 0.5) * width(); }
  int64_t total() const;
};

struct CalibrationRange {
  double lo = 0, hi = 0;
};

/// A way to choose what range of values 8 bits are spent on; values outside are cut off. Registered where it is
/// defined.
struct CalibrationDef {
  std::string name, help;
  /// `levels`: integers that the range is divided among. The range lies within the histogram's and holds 0.
  CalibrationRange (*range)(const ValueHistogram& values, int levels);
};
bool register_calibration(CalibrationDef def, Place place = Place::current());
/// Sorted by name.
const Registry<CalibrationDef>& calibrations();
/// Throws Error (usage) naming those that there are.
const CalibrationDef& calibration_named(const std::string& name);

/// Called now and then with done and total; returning false ends the call with the Error "cancelled".
using QuantProgress = std::function<bool(int64_t done, int64_t total)>;

/// Runs a model of one input on each batch in turn and counts the values of the tensors named: the same whatever the
/// number of threads. Throws Error naming a tensor with a value that is not finite.
std::map<std::string, ValueHistogram> observe(const OnnxModel& model, const std::vector<std::string>& names,
                                              const std::vector<Tensor>& batches, const QuantProgress& progress = {});

/// The values of the tensors named, on one input, in their order.
std::vector<Tensor> values_within(const OnnxModel& model, const std::vector<std::string>& names, const Tensor& input);

}  // namespace tenon::formats
