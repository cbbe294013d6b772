#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/formats/model_file.h"
#include "engine/formats/onnx/feed.h"
#include "engine/formats/onnx/prepared.h"
#include "views/shared/table.h"
#include "views/shared/tensor_stats.h"

namespace tenon::views {

/// What a run of a model came to. `tenon exec` and the window show the same.
struct ModelRun {
  formats::NamedTensors outputs;
  std::vector<TensorStats> stats;  ///< by output
  double seconds = 0;              ///< of the run itself, without what is made up, read and counted
  int64_t nodes = 0;               ///< of the model's graph
  int64_t integer = 0;             ///< of those, the ones that multiplied integers
  bool random = false;             ///< random numbers were drawn: another run may give others

  // Where it failed: these, and no outputs.
  std::string error, hint;
  std::string failed_value;  ///< the first value that the node at fault makes; empty: no node is
  bool stopped = false;      ///< asked for
  bool ok() const { return error.empty() && !stopped; }

  /// "3 nodes ran in 12.4 ms: 1 output", or the error.
  std::string sentence() const;
  /// A row an output: name, type, shape, least, mean, largest, values that are NaN.
  Table table() const;
  /// The outputs as a file in memory, to be looked at as a file's tensors are.
  std::shared_ptr<const formats::ModelFile> as_file() const;
};

using formats::Arithmetic;
/// Feeds the model's inputs and runs it. `go_on` is told the nodes done of how many; false stops it. What cannot be run
/// is told by the result, nothing is thrown.
ModelRun run_model(const formats::OnnxModel& model, const std::vector<formats::OnnxFeed>& feeds,
                   const std::function<bool(int64_t done, int64_t of)>& go_on = {},
                   Arithmetic quantized = Arithmetic::integers);

/// Why a file cannot be run, and what can be done; both empty: it can.
struct NoRun {
  std::string why, hint;
  explicit operator bool() const { return !why.empty(); }
};
/// By its kind.
NoRun why_no_run(const formats::ModelFile& file);
/// By what it asks for: operators that are missing, inputs that are no tensors.
NoRun why_no_run(const formats::OnnxModel& model);

}  // namespace tenon::views
