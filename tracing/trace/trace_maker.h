#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracing/trace/parts.h"

namespace tenon::traces {

/// Makes a store of events that were in no file, such as those of our own profiler: what draws and analyses traces
/// works on them as it does on a file's. An event's text is written when someone asks for it.
class TraceMaker {
 public:
  /// A thread of process 1; `number` is its tid, `name` what it is called. The row to put slices on.
  uint32_t row(int64_t number, std::string_view name);
  /// `number` is the caller's own, Trace::number() of the event; `arguments` are asked for by it.
  void slice(uint32_t row, std::string_view category, std::string_view name, int64_t start_ns, int64_t duration_ns,
             uint64_t number);
  /// From the op that starts at one time on a row to the first one of its gradient, on another or the same.
  void forward_backward(uint32_t from_row, int64_t from_ns, uint32_t to_row, int64_t to_ns);
  /// `arguments`: fields of an event's "args" as JSON without the braces, by its number; it lives as long as the store.
  std::shared_ptr<const Trace> finish(std::string process, std::vector<std::pair<std::string, std::string>> metadata,
                                      std::function<std::string(uint64_t number)> arguments);

 private:
  Part part_;
  Interner texts_;  ///< of rows: a part holds views
};

/// As Chrome-trace JSON in the fields PyTorch's profiler writes, which its viewers and Perfetto open: metadata, slices,
/// their links and the names of rows of a store that a TraceMaker made.
std::string chrome_json(const Trace& made);

}  // namespace tenon::traces
