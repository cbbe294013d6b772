#include "core/cuda/device.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "core/cuda/runtime.h"
#include "core/cuda/staging.h"

namespace tenon::cuda {
namespace {

template <class T>
__global__ void fill_with(T* to, T value, int64_t count) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) to[i] = value;
}
template <class T>
Outcome fill_as(void* to, const void* item, int64_t count, void* stream, Why* why) {
  T value;
  std::memcpy(&value, item, sizeof value);
  T* at = static_cast<T*>(reachable(to));
  const int64_t blocks = (count + 255) / 256;
  const dim3 grid(static_cast<unsigned>(blocks < 4096 ? blocks : 4096));
  queue(fill_with<T>, grid, 256, stream, at, value, count);
  return ended(cudaGetLastError(), "filling memory", why);
}

std::atomic<uint64_t>& waits_of(int32_t device) {
  static std::array<std::atomic<uint64_t>, 64> waits{};  // devices past it share
  return waits[static_cast<size_t>(device) % waits.size()];
}

cudaError_t wait_for(int32_t device, cudaStream_t stream) {
  count_wait(device);
  return cudaStreamSynchronize(stream);
}

}  // namespace

void count_wait(int32_t device) { waits_of(device).fetch_add(1, std::memory_order_relaxed); }
uint64_t device_waits(int32_t device) { return waits_of(device).load(std::memory_order_relaxed); }

Outcome ended(cudaError_t error, const char* doing, Why* why) {
  if (error == cudaSuccess) return done;
  cudaGetLastError();  // the runtime keeps it for the next who asks
  std::snprintf(why->text, sizeof why->text, "%s: %s (CUDA error %d)", doing, cudaGetErrorString(error),
                static_cast<int>(error));
  return error == cudaErrorMemoryAllocation ? out_of_memory : failed;
}

OnDevice::OnDevice(int32_t device) {
  int now = 0;
  error_ = cudaGetDevice(&now);
  if (error_ || now != device) error_ = cudaSetDevice(device);
}

void driver_facts(DriverFacts* facts) {
  *facts = {};
  cudaDriverGetVersion(&facts->driver);
  cudaRuntimeGetVersion(&facts->runtime);
  const cudaError_t error = cudaGetDeviceCount(&facts->devices);
  if (error == cudaSuccess && facts->devices > 0) return;
  facts->devices = 0;
  cudaGetLastError();
  if (facts->driver == 0)
    std::strcpy(facts->why.text, "no NVIDIA driver was found");
  else if (facts->driver < facts->runtime && error == cudaErrorInsufficientDriver)
    std::snprintf(facts->why.text, sizeof facts->why.text,
                  "the NVIDIA driver is of CUDA %d.%d, and Tenon's CUDA module of %d.%d", facts->driver / 1000,
                  facts->driver % 1000 / 10, facts->runtime / 1000, facts->runtime % 1000 / 10);
  else if (error == cudaErrorNoDevice || error == cudaSuccess)
    std::strcpy(facts->why.text, "the driver finds no GPU");
  else
    ended(error, "asking for devices", &facts->why);
}

Outcome device_facts(int32_t device, DeviceFacts* facts, Why* why) {
  *facts = {};
  cudaDeviceProp of;
  if (const Outcome o = ended(cudaGetDeviceProperties(&of, device), "asking what a device is", why)) return o;
  std::snprintf(facts->name, sizeof facts->name, "%s", of.name);
  facts->major = of.major;
  facts->minor = of.minor;
  facts->multiprocessors = of.multiProcessorCount;
  const OnDevice on(device);
  size_t free = 0, total = 0;
  if (const Outcome o = ended(on.error() ? on.error() : cudaMemGetInfo(&free, &total), "asking for its memory", why))
    return o;
  facts->free_bytes = free;
  facts->total_bytes = total;
  return done;
}

Outcome device_take(int32_t device, size_t bytes, void** data, Why* why) {
  const OnDevice on(device);
  return ended(on.error() ? on.error() : cudaMalloc(data, bytes), "taking memory", why);
}

void device_give(int32_t device, void* data) {
  const OnDevice on(device);
  cudaFree(data);  // what could be said of a failure belongs to work queued before: its own sync() tells it
}

Outcome device_stream(int32_t device, int32_t index, void** stream, Why* why) {
  static std::mutex mutex;
  static std::map<std::pair<int32_t, int32_t>, cudaStream_t> streams;
  std::lock_guard lock(mutex);
  cudaStream_t& s = streams[{device, index}];
  if (!s) {
    const OnDevice on(device);
    const cudaError_t error = on.error() ? on.error() : cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    if (const Outcome o = ended(error, "making a stream", why)) {
      streams.erase({device, index});
      return o;
    }
  }
  *stream = s;
  return done;
}

Outcome device_copy(void* to, int32_t to_device, const void* from, int32_t from_device, size_t bytes, void* stream,
                    Why* why) {
  const int32_t device = to_device >= 0 ? to_device : from_device;
  const OnDevice on(device);
  auto* s = static_cast<cudaStream_t>(stream);
  const char* doing = to_device < 0     ? "copying to the host"
                      : from_device < 0 ? "copying to the device"
                                        : "copying on the device";
  if (on.error()) return ended(on.error(), doing, why);
  if (from_device < 0 && to_device >= 0) {
    const cudaError_t staged = staging_of(device).copy(to, from, bytes, s);
    if (staged != cudaErrorMemoryAllocation) return ended(staged, doing, why);
  }
  cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s);
  if (!error && (to_device < 0 || from_device < 0)) error = wait_for(device, s);
  return ended(error, doing, why);
}

Outcome device_fill(int32_t device, void* to, const void* item, size_t item_bytes, int64_t count, void* stream,
                    Why* why) {
  if (count == 0) return done;
  const OnDevice on(device);
  if (on.error()) return ended(on.error(), "filling memory", why);
  switch (item_bytes) {
    case 1:
      return fill_as<uint8_t>(to, item, count, stream, why);
    case 2:
      return fill_as<uint16_t>(to, item, count, stream, why);
    case 4:
      return fill_as<uint32_t>(to, item, count, stream, why);
    case 8:
      return fill_as<uint64_t>(to, item, count, stream, why);
  }
  std::strcpy(why->text, "filling memory with items of a size that no dtype has");
  return failed;
}

Outcome device_sync(int32_t device, void* stream, Why* why) {
  const OnDevice on(device);
  return ended(on.error() ? on.error() : wait_for(device, static_cast<cudaStream_t>(stream)), "waiting for the device",
               why);
}

Outcome device_follow(int32_t device, void* stream, int32_t other_device, void* other, Why* why) {
  static std::mutex mutex;
  static std::map<void*, cudaEvent_t> marks;  // of the stream that is followed: a stream keeps what it is to wait for
  std::lock_guard lock(mutex);
  cudaEvent_t& mark = marks[other];
  cudaError_t error = cudaSuccess;
  {
    const OnDevice on(other_device);
    error = on.error();
    if (!error && !mark) error = cudaEventCreateWithFlags(&mark, cudaEventDisableTiming);
    if (!error) error = cudaEventRecord(mark, static_cast<cudaStream_t>(other));
  }
  const OnDevice on(device);
  if (!error) error = on.error();
  if (!error) error = cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), mark, 0);
  return ended(error, "letting one stream follow another", why);
}

}  // namespace tenon::cuda
