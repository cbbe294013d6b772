#include "tests/simt/cuda_calls.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

struct simt_stream {
  int device;
};

namespace {

struct DeviceBlock {
  int device;
  size_t bytes;
};
struct Machine {
  std::mutex mutex;
  std::map<void*, DeviceBlock> blocks;  // by the address that was given out
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
cudaError_t ended(cudaError_t error) { return t_error = error ? error : t_error, error; }

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
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  *data = nullptr;
  if (used_locked(m, t_device) + bytes > memory()) return ended(cudaErrorMemoryAllocation);
  void* block = std::malloc(bytes ? bytes : 1);
  if (!block) return ended(cudaErrorMemoryAllocation);
  std::memset(block, 0xff, bytes);  // NaN: what is read before it is written shows
  *data = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(block) + simt::kAway);
  m.blocks[*data] = {t_device, bytes};
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  if (!data) return cudaSuccess;
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  if (m.blocks.erase(data) == 0) return ended(cudaErrorInvalidValue);
  std::free(simt::reachable(data));
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memmove(simt::reachable(to), simt::reachable(from), bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new simt_stream{t_device};
  return cudaSuccess;
}
void simt::on_stream(cudaStream_t, std::function<void()> work) { work(); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGetLastError() {
  const cudaError_t error = t_error;
  t_error = cudaSuccess;
  return error;
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
  }
  return "unrecognized error code";
}
