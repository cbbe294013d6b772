#pragma once
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "tests/tracing/made_traces.h"

// The traces of the ranks of one session, each by its own clock.
namespace tenon::tracing {

/// Ten steps of a rank, each with a collective that ends on all ranks at once. Rank 2 comes late to them.
inline std::string made_rank(int rank, int64_t clock) {
  MadeTrace t(rank, clock + 10000000);
  for (int s = 0; s < 10; ++s) {
    t.begin_step(s);
    for (int i = 0; i < 20; ++i)
      t.op("aten::op of rank " + std::to_string(rank), 10000, "kernel", rank == 2 ? 30000 : 20000);
    const int64_t all = 1000000 + (s + 1) * int64_t{2000000}, begin = std::max(t.gpu_end(), t.now() + 12000);
    t.op("c10d::allreduce_", 10000, "ncclDevKernel_AllReduce_Sum_f32", all - begin, 7);
    t.sync();
    t.end_step();
  }
  return t.text();
}

/// host_RANK.pt.trace.json in a folder, as tensorboard_trace_handler names them; returns its path.
inline std::string write_rank(const std::string& folder, int rank, int64_t clock, const std::string& host = "host") {
  const std::string path = folder + "/" + host + "_" + std::to_string(rank) + ".pt.trace.json";
  std::ofstream(path) << made_rank(rank, clock);
  return path;
}

}  // namespace tenon::tracing
