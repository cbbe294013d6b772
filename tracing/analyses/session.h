#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tracing/trace/joined_trace.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {

/// The traces that the ranks of one session wrote.
struct Session {
  std::vector<std::shared_ptr<const traces::Trace>> ranks;  ///< by rank; those that tell none behind them, by name
  std::vector<std::string> left_out;                        ///< a sentence for each file that is not among them
};
/// Reads files, folders and zips of traces. What cannot be read is left out; so is, of several of one rank, every one
/// but that which begins last: torch.profiler writes one a cycle, and the last ones of all ranks belong together.
/// Progress is told in bytes of the files. Throws Error where there is no file, or none that can be read.
Session read_session(const std::vector<std::string>& paths, const traces::ReadOptions& options = {});
/// "rank 3"; of a trace that tells none "trace 2", by its place among all.
std::string rank_name(const traces::Trace& trace, size_t place);

/// On one axis, the first one's, with the clocks as align_clocks() has them. Those that share nothing to align them by
/// stand as their clocks say, and where a file says no time of day they begin with the first one.
traces::JoinedTraces join_ranks(const std::vector<std::shared_ptr<const traces::Trace>>& ranks,
                                const std::string& path);

}  // namespace tenon::tracing
