#pragma once
#include <nlohmann/json_fwd.hpp>

#include "app/cli/output.h"

namespace tenon::app {

/// Says on standard error, once each time, that a run waits for room on the disk, and that it goes on.
class DiskWatch {
 public:
  /// The same as a JSON line; null where there is nothing new.
  nlohmann::json look(const projects::RunStatus& s, Bar& bar);

 private:
  bool waits_ = false;
};

}  // namespace tenon::app
