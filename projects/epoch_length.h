#pragma once
#include <cstdint>
#include <optional>

namespace tenon::projects {

struct RunInfo;

/// How a run counts its steps in epochs and samples. None of it can change in a run that has begun: the data and the
/// batch size are what its states hang on.
struct EpochLength {
  int64_t steps = 0;    ///< in an epoch; 0: not known
  int64_t samples = 0;  ///< in an epoch, of which its last batch has what is left over; 0: not known
  int64_t batch = 0;    ///< samples of every other step
  int64_t shift = 0;    ///< of a branch: by how much the number of a batch is more than that of its step

  bool operator==(const EpochLength&) const = default;
  /// After so many steps; nothing where it is not known.
  std::optional<double> epochs_after(int64_t step) const;
  std::optional<int64_t> samples_after(int64_t step) const;
};

/// What the project holds of it; of a run that was made before that was kept, what its recipe tells beyond doubt.
EpochLength epoch_of(const RunInfo& run);

}  // namespace tenon::projects
