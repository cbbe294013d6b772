#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

/// A recording as PyTorch writes it, made of allocations by named places.
class MadeSnapshot {
 public:
  uint64_t alloc(const std::string& site, int64_t bytes, int64_t stream = 0) {
    uint64_t address = next_ += 1 << 20;
    add("alloc", address, bytes, site, stream);
    sizes_[address] = {bytes, site};
    return address;
  }
  void free(uint64_t address) {
    auto [bytes, site] = sizes_[address];
    add("free_requested", address, bytes, site, 0);
    add("free_completed", address, bytes, site, 0);
    sizes_.erase(address);
  }
  /// A segment that was taken from the driver, or given back to it.
  void driver(const char* action, uint64_t address, int64_t bytes) { add(action, address, bytes, "model.py", 0); }
  void oom(int64_t bytes, int64_t free) {
    trace_.push_back({{"action", "oom"},
                      {"device_free", free},
                      {"size", bytes},
                      {"stream", 0},
                      {"time_us", time_ += 10},
                      {"frames", frames("model.py")}});
  }
  void segment(uint64_t address, int64_t total, const std::vector<std::tuple<int64_t, bool, std::string>>& blocks) {
    nlohmann::json list = nlohmann::json::array();
    int64_t active = 0;
    for (const auto& [size, taken, site] : blocks) {
      list.push_back({{"size", size},
                      {"requested_size", size},
                      {"state", taken ? "active_allocated" : "inactive"},
                      {"frames", frames(site)}});
      active += taken ? size : 0;
    }
    segments_.push_back({{"device", 0},
                         {"address", address},
                         {"total_size", total},
                         {"allocated_size", active},
                         {"active_size", active},
                         {"stream", 0},
                         {"segment_type", "large"},
                         {"blocks", list}});
  }
  std::string text() const { return nlohmann::json{{"segments", segments_}, {"device_traces", {trace_}}}.dump(); }
  std::shared_ptr<const Snapshot> done() const { return parse_snapshot(text()); }

 private:
  static nlohmann::json frames(const std::string& site) { return {{{"filename", site}, {"line", 1}, {"name", "f"}}}; }
  void add(const char* action, uint64_t address, int64_t bytes, const std::string& site, int64_t stream) {
    trace_.push_back({{"action", action},
                      {"addr", address},
                      {"size", bytes},
                      {"stream", stream},
                      {"time_us", time_ += 10},
                      {"frames", frames(site)}});
  }
  nlohmann::json trace_ = nlohmann::json::array(), segments_ = nlohmann::json::array();
  std::map<uint64_t, std::pair<int64_t, std::string>> sizes_;
  uint64_t next_ = uint64_t{1} << 40;
  int64_t time_ = 1000;
};

}  // namespace tenon::snapshot
