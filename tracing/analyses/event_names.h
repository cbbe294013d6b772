#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracing/trace/trace_store.h"

// What events are, told by their names as PyTorch and the vendors' libraries give them.
namespace tenon::tracing {

constexpr std::string_view kModulePrefix = "nn.Module: ";
/// Of the annotation around each step, before its number.
constexpr std::string_view kStepPrefix = "ProfilerStep#";
/// Steps are one call made again and again: their numbers are left out, as torch's own tables do.
inline std::string_view without_step_number(std::string_view name) {
  return name.starts_with(kStepPrefix) ? "ProfilerStep*" : name;
}

// Note [Copies that wait]
// cudaMemcpyAsync() between a GPU and memory that is not pinned is not asynchronous: it returns when the copy is done,
// and the copy begins when all before it on the stream is. That is where .item() and .cpu() wait, the
// cudaStreamSynchronize() after it finds nothing left to do. So a call waits if its copy ended before it returned; a
// copy to the GPU only if it was held up, since else the time is that of the copy itself.

/// Names are looked at once, not once an event.
class EventNames {
 public:
  explicit EventNames(const traces::Trace& trace);
  bool communication(traces::EventId e) const {
    return trace_.kind(e) == traces::EventKind::kernel && has(e, kCommunication);
  }
  /// A call in which the CPU stands until work of the GPU is done.
  bool waits(traces::EventId e) const {
    return trace_.kind(e) == traces::EventKind::runtime && (has(e, kWaits) || (has(e, kCopies) && waits_for_copy(e)));
  }
  /// A call that takes or frees memory of the device, or loads code onto it: the driver does one such at a time.
  bool allocation(traces::EventId e) const {
    return trace_.kind(e) == traces::EventKind::runtime && has(e, kAllocation);
  }
  /// A frame of Python counts where it is one of torch.utils.data: a script may have "dataloader" in its path.
  bool data_loading(traces::EventId e) const;
  bool optimizer(traces::EventId e) const { return has(e, kOptimizer); }
  bool backward(traces::EventId e) const { return has(e, kBackward); }
  /// ProfilerStep#N
  bool step(traces::EventId e) const { return has(e, kStep); }
  bool module(traces::EventId e) const { return has(e, kModule); }
  /// A collective that a thread of the CPU carries out: Gloo's, MPI's.
  bool host_collective(traces::EventId e) const {
    return trace_.kind(e) == traces::EventKind::annotation && has(e, kHostCollective);
  }
  /// Python stands in it until another thread is done.
  bool waiting_frame(traces::EventId e) const { return has(e, kWaitingFrame); }

 private:
  enum : uint16_t {
    kCommunication = 1,
    kWaits = 2,
    kDataLoading = 4,
    kLoaderFrame = 8,
    kOptimizer = 16,
    kBackward = 32,
    kStep = 64,
    kModule = 128,
    kWaitingFrame = 256,
    kHostCollective = 512,
    kCopies = 1024,
    kAllocation = 2048
  };
  bool has(traces::EventId e, uint16_t what) const { return is_[trace_.columns().name[e]] & what; }
  bool waits_for_copy(traces::EventId e) const;
  const traces::Trace& trace_;
  std::vector<uint16_t> is_;
  std::vector<traces::EventId> waiting_copies_;  ///< calls, sorted
};

/// A name as a sentence can hold it: without return type and PyTorch's namespaces, and no longer than `most`
/// characters.
std::string short_name(std::string_view name, size_t most = 72);

}  // namespace tenon::tracing
