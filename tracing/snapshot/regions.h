#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

/// A stretch of a recording that its program marked by name.
struct Region {
  std::string name;
  size_t begin = 0, end = 0;  ///< events [begin, end) of the device
  uint32_t depth = 0;         ///< in how many others it lies
  bool open = false;          ///< its end was not recorded
};
/// Those of a device, by begin, the outer before the inner. PyTorch 2.4 records them as events, later versions with a
/// time beside the events: these are left out where the events have no times. An end without a begin belongs to one
/// that began before the recording.
std::vector<Region> regions(const Snapshot& snapshot, size_t trace);

}  // namespace tenon::snapshot
