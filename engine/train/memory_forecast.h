#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/state.h"

namespace tenon {

class Recipe;
struct ModelSpec;
namespace data {
struct Split;
}

// Note [Memory told beforehand]
// A forecast is a training session on the dry device (core/dry_device.h): the session, model, loss and optimizer that a
// run has, two steps of them and a batch of an evaluation, with memory that is counted and never there. So there is no
// second account of what a step needs that could differ from it. What it does not know: memory beside the pool's (the
// files of the data set, oneDNN's primitives, the program itself), and sizes that follow from values.

using BytesByCategory = std::array<int64_t, kCategories>;

/// What this machine computes and moves in a second at best, measured in about 50 ms on the first call.
struct MachineRates {
  double flops = 0, bytes = 0;
};
MachineRates machine_rates();

/// Memory of one layer of the model.
struct LayerMemory {
  std::string layer;              ///< empty: what belongs to none: batches, the loss
  BytesByCategory at_peak{};      ///< live at the step's highest moment
  int64_t largest_workspace = 0;  ///< taken by one call of an op, at any time
};

struct MemoryForecast {
  int64_t batch = 0;
  int64_t peak_bytes = 0;     ///< live in the pool at the highest moment of a step
  BytesByCategory at_peak{};  ///< the same by what it is for
  BytesByCategory most{};     ///< the highest of each, at any moment
  /// What the pool takes from the system and keeps: of every size class as many blocks as are ever live at once.
  int64_t held_bytes = 0;
  /// The same of an evaluation behind the steps, in which nothing is kept for gradients, but more samples go through at
  /// once. What metrics gather on the host is not in it.
  int64_t evaluation_bytes = 0, held_with_evaluation = 0;
  int64_t checkpoint_bytes = 0;     ///< a copy of the state, which is written while training goes on
  std::vector<LayerMemory> layers;  ///< in the order of the model, what belongs to none last
  // The highest moment: when the block was taken that led to it.
  Phase phase = Phase::none;
  std::string layer, op;
  int64_t step = 0;                   ///< 1 or 2: from the second one on every step is alike
  double flops = 0, moved_bytes = 0;  ///< of the second step, by the ops' cost
  /// The second step at machine_rates(): each op takes what it computes or what it moves, whichever is longer. A lower
  /// bound; what it is good for is the comparison of two recipes.
  double seconds = 0;

  /// What a run needs at most: it is this that must fit.
  int64_t needed_bytes() const { return held_with_evaluation + checkpoint_bytes; }
  int64_t highest_bytes() const { return std::max(peak_bytes, evaluation_bytes); }
};

/// Asked between forecasts; true: throws Error "cancelled".
using Cancelled = std::function<bool()>;

/// What a forecast asks of data: their sizes. It holds no samples and no files, so whoever keeps data for many
/// forecasts keeps this. Where the recipe balances classes, which are counted sample by sample, it is the data
/// themselves.
std::shared_ptr<const data::Split> outline_of(const data::Split& data, const Recipe& recipe);

/// What a step of this model and recipe will need. `data` is what open_data() gives for the recipe, or its outline.
/// Throws Error as a session does for what does not fit together; a batch that would not fit is none of that.
MemoryForecast forecast_memory(const ModelSpec& spec, const Recipe& recipe,
                               const std::shared_ptr<const data::Split>& data);

/// The largest batch (data.batch_size) whose run needs `limit` bytes at most; all else as in the recipe.
struct LargestBatch {
  int64_t batch = 0;         ///< 0: not even the smallest one fits
  bool whole_data = false;   ///< it is the whole training set: more there is not
  int64_t needed_bytes = 0;  ///< with it
};
LargestBatch largest_batch(const ModelSpec& spec, const Recipe& recipe, const std::shared_ptr<const data::Split>& data,
                           int64_t limit, const Cancelled& cancelled = {});

}  // namespace tenon
