#pragma once
#include "core/cuda/abi.h"
#include "core/cuda/runtime.h"

namespace tenon::cuda {

// The functions of the Module that are about devices and memory.
void driver_facts(DriverFacts* facts);
Outcome device_facts(int32_t device, DeviceFacts* facts, Why* why);
Outcome device_take(int32_t device, size_t bytes, void** data, Why* why);
void device_give(int32_t device, void* data);
Outcome device_stream(int32_t device, int32_t index, void** stream, Why* why);
Outcome device_copy(void* to, int32_t to_device, const void* from, int32_t from_device, size_t bytes, void* stream,
                    Why* why);
Outcome device_fill(int32_t device, void* to, const void* item, size_t item_bytes, int64_t count, void* stream,
                    Why* why);
Outcome device_sync(int32_t device, void* stream, Why* why);
Outcome device_follow(int32_t device, void* stream, int32_t other_device, void* other, Why* why);
uint64_t device_waits(int32_t device);

/// The outcome of a call of the runtime that did something, and what it says.
Outcome ended(cudaError_t error, const char* doing, Why* why);

/// Makes a device the calling thread's, and leaves it so: going back to one that is not used would take memory there.
class OnDevice {
 public:
  explicit OnDevice(int32_t device);
  cudaError_t error() const { return error_; }

 private:
  cudaError_t error_ = cudaSuccess;
};

/// Says that the host is about to wait for a device.
void count_wait(int32_t device);

}  // namespace tenon::cuda
