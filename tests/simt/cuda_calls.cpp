#include "tests/simt/cuda_calls.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/simt/streams.h"

struct simt_event {
  std::shared_ptr<simt::Passing> mark;
};

namespace {

struct DeviceBlock {
  int device;
  size_t bytes;
};
struct Machine {
  std::mutex mutex;
  std::map<uintptr_t, DeviceBlock> blocks;  // by the address that was given out
  std::map<uintptr_t, size_t> pinned;       // of the host
};
Machine& machine() {
  static auto* m = new Machine;
  return *m;
}
thread_local int t_device = 0;
thread_local cudaError_t t_error = cudaSuccess;

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}
int devices() { return static_cast<int>(setting("TENON_SIMT_DEVICES", 1)); }
size_t memory() { return static_cast<size_t>(setting("TENON_SIMT_MEMORY", int64_t{1} << 30)); }

size_t used_locked(const Machine& m, int device) {
  size_t used = 0;
  for (const auto& [data, block] : m.blocks)
    if (block.device == device) used += block.bytes;
  return used;
}
cudaError_t ended(cudaError_t error) {
  if (error && error != cudaErrorLaunchFailure) t_error = error;  // a device's fault is the streams' to keep
  return error;
}

enum class Place { wrong, device, pinned, pageable };
uintptr_t number_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

/// Where the bytes lie; wrong: not all in one block of a device.
Place place_of(const void* data, size_t bytes) {
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  const uintptr_t at = number_of(data);
  if (at >= simt::kAway) {
    auto after = m.blocks.upper_bound(at);
    if (after == m.blocks.begin()) return Place::wrong;
    const auto& [begin, block] = *--after;
    return at + bytes <= begin + block.bytes ? Place::device : Place::wrong;
  }
  auto after = m.pinned.upper_bound(at);
  if (after == m.pinned.begin()) return Place::pageable;
  const auto& [begin, size] = *--after;
  return at + bytes <= begin + size ? Place::pinned : Place::pageable;
}

simt_stream* named(cudaStream_t stream) { return stream ? stream : simt::unnamed_stream(t_device); }

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices() > 0 ? devices() : 0;
  return ended(devices() < 0 ? cudaErrorInsufficientDriver : devices() == 0 ? cudaErrorNoDevice : cudaSuccess);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = devices() < 0 ? 0 : 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* facts, int device) {
  if (device < 0 || device >= devices()) return ended(cudaErrorInvalidDevice);
  *facts = {};
  std::strcpy(facts->name, "Emulated GPU");
  facts->major = 9;
  facts->multiProcessorCount = 1;
  facts->totalGlobalMem = memory();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int room, int device) {
  if (device < 0 || device >= devices()) return ended(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<size_t>(room), "0000:%02X:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  *total = memory();
  const size_t used = used_locked(m, t_device);
  *free = used < *total ? *total - used : 0;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = t_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices()) return ended(cudaErrorInvalidDevice);
  t_device = device;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = nullptr;
  if (const cudaError_t fault = simt::fault_of(t_device)) return ended(fault);
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  if (used_locked(m, t_device) + bytes > memory()) return ended(cudaErrorMemoryAllocation);
  void* block = std::malloc(bytes ? bytes : 1);
  if (!block) return ended(cudaErrorMemoryAllocation);
  std::memset(block, 0xff, bytes);  // NaN: what is read before it is written shows
  const uintptr_t address = number_of(block) + simt::kAway;
  m.blocks[address] = {t_device, bytes};
  *data = reinterpret_cast<void*>(address);
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  if (!data) return cudaSuccess;
  const cudaError_t fault = simt::finish_device(t_device);
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  if (m.blocks.erase(number_of(data)) == 0) return ended(cudaErrorInvalidValue);
  std::free(simt::reachable(data));
  return ended(fault);
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  *data = nullptr;
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  size_t used = bytes;
  for (const auto& [at, size] : m.pinned) used += size;
  if (used > static_cast<size_t>(setting("TENON_SIMT_PINNED", int64_t{1} << 30)))
    return ended(cudaErrorMemoryAllocation);
  *data = std::malloc(bytes ? bytes : 1);
  m.pinned[number_of(*data)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  if (!data) return cudaSuccess;
  const cudaError_t fault = simt::finish_device(t_device);
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  if (m.pinned.erase(number_of(data)) == 0) return ended(cudaErrorInvalidValue);
  std::free(data);
  return ended(fault);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  const Place source = place_of(from, bytes), target = place_of(to, bytes);
  if (source == Place::wrong || target == Place::wrong) return ended(cudaErrorInvalidValue);
  simt_stream* s = named(stream);
  if (source == Place::pageable && target != Place::pageable) {
    const auto* begin = static_cast<const char*>(from);
    auto kept = std::make_shared<std::vector<char>>(begin, begin + bytes);
    return ended(simt::give(s, [=] { std::memcpy(simt::reachable(to), kept->data(), bytes); }));
  }
  const cudaError_t error = simt::give(s, [=] { std::memmove(simt::reachable(to), simt::reachable(from), bytes); });
  return ended(error || target != Place::pageable ? error : simt::finish(s));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = simt::make_stream(t_device);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return ended(simt::finish(named(stream))); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return ended(simt::hold_for(named(stream), event->mark));
}
cudaError_t cudaDeviceSynchronize() { return ended(simt::finish_device(t_device)); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new simt_event{simt::make_passing(!(flags & cudaEventDisableTiming))};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return ended(simt::record(named(stream), event->mark));
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return ended(simt::ask(event->mark)); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return ended(simt::finish(event->mark)); }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return ended(simt::between(begin->mark, end->mark, ms));
}

struct simt_graph {
  simt::Recorded work;
};
struct simt_graph_ready {
  std::shared_ptr<simt::Recorded> work;
};
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return ended(stream ? simt::begin_recording(stream) : cudaErrorStreamCaptureUnsupported);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  simt::Recorded work;
  const cudaError_t error = simt::end_recording(stream, &work);
  if (!error) *graph = new simt_graph{std::move(work)};
  return ended(error);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  *ready = new simt_graph_ready{std::make_shared<simt::Recorded>(graph->work)};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream) {
  return ended(simt::give(named(stream), [work = ready->work] {
    for (const auto& piece : *work) piece();
  }));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
  delete ready;
  return cudaSuccess;
}

void simt::on_stream(cudaStream_t stream, std::function<void()> work) { ended(give(named(stream), std::move(work))); }
void simt::queue_kernel(cudaStream_t stream, Dim3 grid, Dim3 block, std::function<void()> body) {
  if (!fits(grid, block)) {
    ended(cudaErrorInvalidConfiguration);
    return;
  }
  on_stream(stream, [grid, block, body = std::move(body)] { launch(grid, block, body); });
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = t_error;
  t_error = cudaSuccess;
  return error ? error : simt::fault_of(t_device);
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorLaunchFailure:
      return simt::fault_text();
  }
  return "unrecognized error code";
}
