#include "tracing/analyses/event_names.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace tenon::tracing {

using traces::EventId;
using traces::EventKind;

namespace {
bool any_of(std::string_view lower, std::initializer_list<std::string_view> words) {
  for (std::string_view w : words)
    if (lower.find(w) != lower.npos) return true;
  return false;
}
}  // namespace

EventNames::EventNames(const traces::Trace& t) : trace_(t), is_(t.names()) {
  std::string low;
  for (uint32_t n = 0; n < t.names(); ++n) {
    const std::string_view s = t.text(n);
    low.assign(s);
    for (char& c : low)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    uint16_t is = 0;
    if (any_of(low, {"nccl", "rccl", "all_reduce", "allreduce_kernel", "nvshmem", "multimem", "oneccl"}))
      is |= kCommunication;
    // Freeing memory of the GPU waits for it as well. A copy that does not say "async" is one that blocks.
    if (any_of(low, {"synchronize", "eventquery_wait", "streamwaitvalue"}) || low == "cudafree" || low == "hipfree")
      is |= kWaits;
    if (any_of(low, {"cudamalloc", "cudafree", "cudahostalloc", "cudahostregister", "hipmalloc", "hipfree",
                     "hiphostmalloc", "cumemalloc", "cumemcreate", "cumemmap", "cumemunmap", "cumemfree", "cumodule",
                     "culibrary", "cudamodule"}) &&
        !any_of(low, {"async", "get"}))
      is |= kAllocation;
    if (any_of(low, {"memcpy"})) is |= any_of(low, {"async"}) ? kCopies : kWaits;
    if (any_of(low, {"dataloader", "data loading", "data_loading", "dataset.fetch", "load_batch", "wait for batch"}))
      is |= kDataLoading;
    // The thread that pins batches stands in its loop all the time, whoever waits for it.
    if (any_of(low, {"torch/utils/data/", "torch\\utils\\data\\"}) && !any_of(low, {"_pin_memory_loop"}))
      is |= kLoaderFrame;
    if (s.starts_with("Optimizer.") || any_of(low, {"optimizer.step", "optimizer.zero_grad"}) || s == "optimizer")
      is |= kOptimizer;
    if (s.starts_with("autograd::engine::evaluate_function") || s == "backward" || s.starts_with("## Backward"))
      is |= kBackward;
    if (s.starts_with(kStepPrefix)) is |= kStep;
    if (s.starts_with(kModulePrefix)) is |= kModule;
    if (any_of(low, {"run_backward", "_thread.lock", "built-in method acquire", "threading.py(", "queue.py(",
                     "concurrent/futures/", "multiprocessing/connection.py(", "selectors.py("}))
      is |= kWaitingFrame;
    if (s.starts_with("gloo:") || s.starts_with("mpi:") || s.starts_with("ucc:")) is |= kHostCollective;
    is_[n] = is;
  }
  constexpr int64_t kHeldUp = 20000;  // nanoseconds from the call to its copy, where nothing lies before it
  for (const traces::Link& l : t.launches()) {
    if (t.kind(l.to) != EventKind::memcpy || t.end(l.to) > t.end(l.from)) continue;
    if (t.event_name(l.to).find("DtoH") != std::string_view::npos || t.start(l.to) - t.start(l.from) > kHeldUp)
      waiting_copies_.push_back(l.from);
  }
  std::sort(waiting_copies_.begin(), waiting_copies_.end());
}

bool EventNames::waits_for_copy(EventId e) const {
  return std::binary_search(waiting_copies_.begin(), waiting_copies_.end(), e);
}

bool EventNames::data_loading(EventId e) const {
  switch (trace_.kind(e)) {
    case EventKind::python:
      return has(e, kLoaderFrame);
    case EventKind::annotation:
    case EventKind::cpu_op:
    case EventKind::other:
      return has(e, kDataLoading);
    default:
      return false;
  }
}

std::string short_name(std::string_view name, size_t most) {
  std::string text(name);
  for (std::string_view noise : {"void ", "at::native::", "(anonymous namespace)::", "c10::", "at::"})
    for (size_t at = text.find(noise); at != std::string::npos; at = text.find(noise, at))
      // "void" also stands among parameters, and "at::" ends "mat::".
      if (noise == "void " ? at == 0 : at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1])))
        text.erase(at, noise.size());
      else
        at += noise.size();
  if (text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // no half a character
  return text.substr(0, end) + "...";
}

}  // namespace tenon::tracing
