#include "core/cuda/graph.h"

#include "core/cuda/device.h"
#include "core/cuda/runtime.h"

namespace tenon::cuda {

// "Relaxed": memory may be taken from the driver while a stream is recorded. What kernels read and write is the
// caller's to keep where it is.
Outcome graph_begin(int32_t device, void* stream, Why* why) {
  const OnDevice on(device);
  return ended(
      on.error() ? on.error() : cudaStreamBeginCapture(static_cast<cudaStream_t>(stream), cudaStreamCaptureModeRelaxed),
      "recording a graph", why);
}

Outcome graph_end(int32_t device, void* stream, void** graph, Why* why) {
  *graph = nullptr;
  const OnDevice on(device);
  cudaGraph_t recorded = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaError_t error = on.error();
  if (!error) error = cudaStreamEndCapture(static_cast<cudaStream_t>(stream), &recorded);
  if (!error) error = cudaGraphInstantiate(&ready, recorded, 0);
  if (recorded) cudaGraphDestroy(recorded);
  *graph = ready;
  return ended(error, "making a graph", why);
}

Outcome graph_replay(int32_t device, void* graph, void* stream, Why* why) {
  const OnDevice on(device);
  return ended(
      on.error() ? on.error() : cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), static_cast<cudaStream_t>(stream)),
      "doing a graph", why);
}

void graph_drop(int32_t device, void* graph, void* stream) {
  const OnDevice on(device);
  if (stream) cudaStreamSynchronize(static_cast<cudaStream_t>(stream));  // it may be under way
  cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
  cudaGetLastError();  // what could be said of a failure belongs to work queued before: its own sync() tells it
}

}  // namespace tenon::cuda
