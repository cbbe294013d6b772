#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "tests/simt/simt.h"

// The calls of CUDA's runtime that core/cuda makes, answered by the emulated GPU. Its memory is the heap's, named by
// addresses that lead nowhere: whatever follows one outside a kernel ends in a segmentation fault. Streams do nothing
// before somebody waits: Note [Streams of the emulated GPU].
// What the machine has is read from the environment at each call: TENON_SIMT_DEVICES (1; 0 is a machine without one,
// -1 one without a driver), TENON_SIMT_MEMORY (bytes of each device, 1 GiB) and TENON_SIMT_PINNED (bytes of the host
// that may be pinned, 1 GiB).
enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
};
enum cudaMemcpyKind : int { cudaMemcpyDefault = 4 };
struct simt_stream;
using cudaStream_t = simt_stream*;
struct simt_event;
using cudaEvent_t = simt_event*;
struct simt_graph;
using cudaGraph_t = simt_graph*;
struct simt_graph_ready;
using cudaGraphExec_t = simt_graph_ready*;
enum cudaStreamCaptureMode : int { cudaStreamCaptureModeRelaxed = 2 };
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0, cudaEventDisableTiming = 2;
inline constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1;
struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount;
  size_t totalGlobalMem;
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* facts, int device);
cudaError_t cudaDeviceGetPCIBusId(char* text, int room, int device);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void** data, size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready);
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);

#define CUDART_VERSION 13000

namespace simt {
/// Gives a stream work, for the emulated libraries. It may keep addresses of the device, and reach() them then.
__attribute__((visibility("default"))) void on_stream(cudaStream_t stream, std::function<void()> work);
/// A kernel as <<<grid, block, 0, stream>>> launches it: a block that no GPU takes is the runtime's next error.
void queue_kernel(cudaStream_t stream, Dim3 grid, Dim3 block, std::function<void()> body);

/// Where the bytes of an address of the emulated GPU lie.
inline constexpr uintptr_t kAway = uintptr_t{1} << 60;
template <class T>
T* reachable(T* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return reinterpret_cast<T*>(address < kAway ? address : address - kAway);
}
}  // namespace simt
