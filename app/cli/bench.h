#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/profile.h"

namespace tenon::app {

/// What `tenon bench` was asked for, and where its figures go.
struct Bench {
  double seconds = 3;
  int64_t threads = 0;
  bool json = false;
  int64_t runs = 5000, points = 100'000;  ///< of the project of `curves`
  std::string project;                    ///< its file; empty: one that goes when it was measured
  std::string file;                       ///< of `open`

  void emit(const std::string& workload, const std::string& metric, double value, const char* unit) const;

  /// Median calls per second over slices that share `seconds`: one slow slice on a shared machine does not count.
  template <class F>
  double rate(F&& step, int slices = 7) const {
    for (int i = 0; i < 3; ++i) step();
    int64_t n = 0, start = now_ns();
    while (now_ns() - start < 200'000'000) {
      step();
      ++n;
    }
    auto calls = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(n) * (seconds / slices) / 0.2));
    std::vector<double> rates;
    for (int s = 0; s < slices; ++s) {
      int64_t t = now_ns();
      for (int64_t i = 0; i < calls; ++i) step();
      rates.push_back(static_cast<double>(calls) * 1e9 / static_cast<double>(now_ns() - t));
    }
    std::sort(rates.begin(), rates.end());
    return rates[rates.size() / 2];
  }
};

/// A folder that goes with the measurement.
struct BenchFolder {
  explicit BenchFolder(const std::filesystem::path& in = std::filesystem::temp_directory_path());
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  std::string path;
};

/// A project of many runs, some of them long: made, opened, filtered, and its curves drawn.
void bench_curves(const Bench& b);
/// A large trace, snapshot or model file in the window: opened, flown through, opened again.
void bench_open(const Bench& b);

}  // namespace tenon::app
