// A CUDA runtime and driver without a device, to be loaded before the real ones (LD_PRELOAD): enough for PyTorch to initialise CUDA and for its
// caching allocator to run as it is, so that memory snapshots of the real allocator can be recorded on any machine (see snapshots.py).
// Memory is only counted: addresses are invented, nothing lies behind them, kernels and copies do nothing. What the device has in all comes from
// PRETEND_CUDA_TOTAL (bytes; 8 GiB without it), the number of devices from PRETEND_CUDA_DEVICES (1), the version from PRETEND_CUDA_VERSION (13000).
//
// Two things can be steered by the program that is recorded (ctypes.CDLL(None)):
//   pretend_cuda_hold(int on)  events recorded from now on are not done before a synchronisation, or until it is called with 0;
//   pretend_cuda_free(void)    bytes that the device could still give.
//
// Built against the headers of the CUDA version that PyTorch was built for, since the layout of cudaDeviceProp differs between them:
//   cc -shared -fPIC -O1 -I CUDA/include pretend_cuda.c -o pretend_cuda.so -Wl,-soname,libcuda.so.1
// The name libcuda.so.1 makes a dlopen() of the driver find this library.
#include <driver_types.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK 0
#define OUT_OF_MEMORY 2
#define INVALID 1
#define NOT_READY 600
#define NOT_SUPPORTED 801
#define MAX_DEVICES 8
#define TABLE (1 << 20)

static pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
static __thread int device_ = 0;
static int64_t used_[MAX_DEVICES];
static uint64_t next_address_ = 0x7f0000000000ull, next_handle_ = 0x55a000000000ull;
static int hold_ = 0;

// What is known of an address or a handle: open addressing, no removal of keys.
typedef struct {
  uint64_t key;
  int64_t size;
  int device;
} Entry;
static Entry table_[TABLE];
static Entry* entry(uint64_t key) {
  uint64_t i = (key * 0x9E3779B97F4A7C15ull) >> 44;
  while (table_[i].key && table_[i].key != key) i = (i + 1) & (TABLE - 1);
  table_[i].key = key;
  return &table_[i];
}
static int64_t total(void) {
  const char* text = getenv("PRETEND_CUDA_TOTAL");
  return text ? atoll(text) : (int64_t)8 << 30;
}
static int version(void) {
  const char* text = getenv("PRETEND_CUDA_VERSION");
  return text ? atoi(text) : 13000;
}
static int devices(void) {
  const char* text = getenv("PRETEND_CUDA_DEVICES");
  int n = text ? atoi(text) : 1;
  return n < 1 ? 1 : n > MAX_DEVICES ? MAX_DEVICES : n;
}
// Takes bytes of the current device, or says that it has not so many.
static int take(int64_t size) {
  if (used_[device_] + size > total()) return OUT_OF_MEMORY;
  used_[device_] += size;
  return OK;
}
static uint64_t handle(int64_t size) {
  pthread_mutex_lock(&lock_);
  uint64_t h = next_handle_;
  next_handle_ += 0x100;
  Entry* e = entry(h);
  e->size = size;
  e->device = device_;
  pthread_mutex_unlock(&lock_);
  return h;
}

void pretend_cuda_hold(int on) { hold_ = on; }
int64_t pretend_cuda_free(void) { return total() - used_[device_]; }

// ---- devices
int cudaGetDeviceCount(int* n) { return *n = devices(), OK; }
int cudaGetDevice(int* d) { return *d = device_, OK; }
int cudaSetDevice(int d) { return d < 0 || d >= devices() ? 101 : (device_ = d, OK); }
int cudaInitDevice(int d, unsigned a, unsigned b) { return (void)d, (void)a, (void)b, OK; }
int cudaDriverGetVersion(int* v) { return *v = version(), OK; }
int cudaRuntimeGetVersion(int* v) { return *v = version(), OK; }
static int properties(struct cudaDeviceProp* p) {
  memset(p, 0, sizeof *p);
  strcpy(p->name, "a device that is not there");
  p->totalGlobalMem = (size_t)total();
  p->major = 8;
  p->warpSize = 32;
  p->multiProcessorCount = 64;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsPerMultiProcessor = 2048;
  p->sharedMemPerBlock = p->sharedMemPerBlockOptin = p->sharedMemPerMultiprocessor = 49152 * 2;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->l2CacheSize = 32 << 20;
  for (int i = 0; i < 3; ++i) p->maxThreadsDim[i] = 1024, p->maxGridSize[i] = 65535;
  p->maxGridSize[0] = 0x7fffffff;
  return OK;
}
int cudaGetDeviceProperties(struct cudaDeviceProp* p, int d) { return (void)d, properties(p); }
int cudaGetDeviceProperties_v2(struct cudaDeviceProp* p, int d) { return (void)d, properties(p); }
int cudaDeviceGetAttribute(int* v, int attribute, int d) { return (void)attribute, (void)d, *v = 0, OK; }
int cudaDeviceGetPCIBusId(char* out, int n, int d) { return snprintf(out, (size_t)n, "0000:%02x:00.0", d + 1), OK; }
int cudaDeviceCanAccessPeer(int* can, int a, int b) { return (void)a, (void)b, *can = 0, OK; }
int cudaDeviceGetStreamPriorityRange(int* low, int* high) { return *low = 0, *high = -5, OK; }
int cudaDeviceSynchronize(void) { return hold_ = 0, OK; }
int cudaGetLastError(void) { return OK; }
int cudaPeekAtLastError(void) { return OK; }
const char* cudaGetErrorName(int e) { return e == OUT_OF_MEMORY ? "cudaErrorMemoryAllocation" : "an error"; }
const char* cudaGetErrorString(int e) { return e == OUT_OF_MEMORY ? "out of memory" : "an error"; }

// ---- memory
int cudaMalloc(void** p, size_t size) {
  pthread_mutex_lock(&lock_);
  int r = take((int64_t)size);
  if (r == OK) {
    *p = (void*)next_address_;
    Entry* e = entry(next_address_);
    e->size = (int64_t)size;
    e->device = device_;
    next_address_ += (size + (2 << 20) - 1) >> 21 << 21;
  }
  pthread_mutex_unlock(&lock_);
  return r;
}
int cudaFree(void* p) {
  if (!p) return OK;
  pthread_mutex_lock(&lock_);
  Entry* e = entry((uint64_t)p);
  used_[e->device] -= e->size;
  e->size = 0;
  pthread_mutex_unlock(&lock_);
  return OK;
}
int cudaMemGetInfo(size_t* free_bytes, size_t* all) { return *free_bytes = (size_t)pretend_cuda_free(), *all = (size_t)total(), OK; }
int cudaHostAlloc(void** p, size_t n, unsigned flags) { return (void)flags, (*p = calloc(1, n ? n : 1)) ? OK : OUT_OF_MEMORY; }
int cudaMallocHost(void** p, size_t n) { return (*p = calloc(1, n ? n : 1)) ? OK : OUT_OF_MEMORY; }
int cudaFreeHost(void* p) { return free(p), OK; }
int cudaPointerGetAttributes(struct cudaPointerAttributes* a, const void* p) { return memset(a, 0, sizeof *a), (void)p, OK; }

// ---- streams, captures, events. A stream that captures is remembered by its number.
static void* capturing_ = NULL;
static int capture_on_ = 0;
static uint64_t captures_ = 0;
int cudaStreamCreateWithPriority(void** s, unsigned flags, int priority) { return (void)flags, (void)priority, *s = (void*)handle(0), OK; }
int cudaStreamCreateWithFlags(void** s, unsigned flags) { return (void)flags, *s = (void*)handle(0), OK; }
int cudaStreamCreate(void** s) { return *s = (void*)handle(0), OK; }
int cudaStreamSynchronize(void* s) { return (void)s, hold_ = 0, OK; }
int cudaStreamGetPriority(void* s, int* p) { return (void)s, *p = 0, OK; }
int cudaStreamIsCapturing(void* s, int* status) { return *status = capture_on_ && s == capturing_, OK; }
int cudaStreamGetCaptureInfo(void* s, int* status, unsigned long long* id, void** graph, void*** dependencies, void** edges, size_t* count) {
  *status = capture_on_ && s == capturing_;
  if (id) *id = captures_;
  if (*status == 0) return OK;
  if (graph) *graph = (void*)0x77;
  if (dependencies) *dependencies = NULL;
  if (edges) *edges = NULL;
  if (count) *count = 0;
  return OK;
}
int cudaStreamGetCaptureInfo_v2(void* s, int* status, unsigned long long* id, void** graph, void*** dependencies, size_t* count) {
  return cudaStreamGetCaptureInfo(s, status, id, graph, dependencies, NULL, count);
}
int cudaStreamBeginCapture(void* s, int mode) { return (void)mode, capturing_ = s, capture_on_ = 1, ++captures_, OK; }
int cudaStreamEndCapture(void* s, void** graph) { return (void)s, capture_on_ = 0, *graph = (void*)handle(0), OK; }
int cudaGraphInstantiate(void** exec, void* graph, unsigned long long flags) { return (void)graph, (void)flags, *exec = (void*)handle(0), OK; }
int cudaGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) { return (void)graph, (void)flags, *exec = (void*)handle(0), OK; }
int cudaGraphGetNodes(void* graph, void** nodes, size_t* n) { return (void)graph, (void)nodes, *n = 1, OK; }

int cudaEventCreateWithFlags(void** e, unsigned flags) { return (void)flags, *e = (void*)handle(0), OK; }
int cudaEventCreate(void** e) { return *e = (void*)handle(0), OK; }
static int mark(void* e) {
  pthread_mutex_lock(&lock_);
  entry((uint64_t)e)->size = hold_;
  pthread_mutex_unlock(&lock_);
  return OK;
}
int cudaEventRecord(void* e, void* s) { return (void)s, mark(e); }
int cudaEventRecordWithFlags(void* e, void* s, unsigned flags) { return (void)s, (void)flags, mark(e); }
int cudaEventQuery(void* e) { return hold_ && entry((uint64_t)e)->size ? NOT_READY : OK; }
int cudaEventSynchronize(void* e) { return entry((uint64_t)e)->size = 0, OK; }
int cudaEventElapsedTime(float* ms, void* a, void* b) { return (void)a, (void)b, *ms = 0, OK; }

// ---- virtual memory, for expandable segments
typedef struct {  // the beginning of CUmemAllocationProp
  int type, handle_types;
} MemoryProp;
int cuMemAddressReserve(uint64_t* p, size_t size, size_t alignment, uint64_t hint, unsigned long long flags) {
  (void)alignment, (void)hint, (void)flags;
  pthread_mutex_lock(&lock_);
  *p = next_address_;
  next_address_ += (size + (2 << 20) - 1) >> 21 << 21;
  pthread_mutex_unlock(&lock_);
  return OK;
}
int cuMemCreate(uint64_t* h, size_t size, const MemoryProp* prop, unsigned long long flags) {
  (void)flags;
  if (prop && prop->handle_types == 8) return NOT_SUPPORTED;  // no fabric
  pthread_mutex_lock(&lock_);
  int r = take((int64_t)size);
  pthread_mutex_unlock(&lock_);
  if (r == OK) *h = handle((int64_t)size);
  return r;
}
int cuMemRelease(uint64_t h) { return cudaFree((void*)h); }
int cuMemMap(uint64_t p, size_t size, size_t offset, uint64_t h, unsigned long long flags) {
  return (void)p, (void)size, (void)offset, (void)h, (void)flags, OK;
}
int cuMemUnmap(uint64_t p, size_t size) { return (void)p, (void)size, OK; }
int cuMemSetAccess(uint64_t p, size_t size, const void* access, size_t n) { return (void)p, (void)size, (void)access, (void)n, OK; }
int cuMemAddressFree(uint64_t p, size_t size) { return (void)p, (void)size, OK; }
int cuMemGetAllocationGranularity(size_t* n, const void* prop, int option) { return (void)prop, (void)option, *n = 2 << 20, OK; }
int cuDeviceGetAttribute(int* v, int attribute, int d) { return (void)attribute, (void)d, *v = 0, OK; }
int cuGetErrorString(int e, const char** text) { return *text = e == OUT_OF_MEMORY ? "out of memory" : "an error", OK; }
int cuDevicePrimaryCtxGetState(int d, unsigned* flags, int* active) { return (void)d, *flags = 0, *active = 1, OK; }
int cuCtxGetCurrent(void** c) { return *c = (void*)0x33, OK; }
int cuInit(unsigned flags) { return (void)flags, OK; }
static int not_supported(void) { return NOT_SUPPORTED; }

static void* driver_function(const char* name) {
#define KNOWN(f) \
  if (!strcmp(name, #f)) return (void*)f;
  KNOWN(cuMemAddressReserve) KNOWN(cuMemCreate) KNOWN(cuMemRelease) KNOWN(cuMemMap) KNOWN(cuMemUnmap) KNOWN(cuMemSetAccess) KNOWN(cuMemAddressFree)
  KNOWN(cuMemGetAllocationGranularity) KNOWN(cuDeviceGetAttribute) KNOWN(cuGetErrorString) KNOWN(cuDevicePrimaryCtxGetState) KNOWN(cuCtxGetCurrent) KNOWN(cuInit)
#undef KNOWN
  return (void*)not_supported;
}
int cudaGetDriverEntryPoint(const char* name, void** f, unsigned long long flags, int* result) {
  return (void)flags, *f = driver_function(name), result ? *result = 0 : 0, OK;
}
int cudaGetDriverEntryPointByVersion(const char* name, void** f, unsigned version, unsigned long long flags, int* result) {
  return (void)version, cudaGetDriverEntryPoint(name, f, flags, result);
}

// ---- work, which nobody does
int cudaFuncGetAttributes(struct cudaFuncAttributes* a, const void* f) {
  memset(a, 0, sizeof *a);
  a->maxThreadsPerBlock = 1024;
  a->binaryVersion = a->ptxVersion = 80;
  return (void)f, OK;
}
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void* f, int threads, size_t shared) {
  return (void)f, (void)threads, (void)shared, *n = 2, OK;
}
int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, const void* f, int threads, size_t shared, unsigned flags) {
  return (void)flags, cudaOccupancyMaxActiveBlocksPerMultiprocessor(n, f, threads, shared);
}
#define NOTHING(f) \
  int f() { return OK; }
NOTHING(cudaLaunchKernel) NOTHING(cudaLaunchKernelExC) NOTHING(cudaLaunchCooperativeKernel)
NOTHING(cudaFuncSetAttribute) NOTHING(cudaLaunchHostFunc) NOTHING(cudaStreamAddCallback)
NOTHING(cudaMemcpy) NOTHING(cudaMemcpyAsync) NOTHING(cudaMemcpy2DAsync)
NOTHING(cudaMemcpyPeerAsync) NOTHING(cudaMemcpyToSymbol) NOTHING(cudaMemset) NOTHING(cudaMemsetAsync)
NOTHING(cudaDeviceEnablePeerAccess) NOTHING(cudaStreamWaitEvent) NOTHING(cudaStreamQuery)
NOTHING(cudaStreamDestroy) NOTHING(cudaEventDestroy) NOTHING(cudaHostRegister)
NOTHING(cudaHostUnregister) NOTHING(cudaThreadExchangeStreamCaptureMode) NOTHING(cudaGraphDestroy) NOTHING(cudaGraphExecDestroy) NOTHING(cudaGraphLaunch)
NOTHING(cudaDeviceSetGraphMemAttribute) NOTHING(cudaDeviceGetGraphMemAttribute) NOTHING(cudaGraphRetainUserObject)
NOTHING(cudaUserObjectRelease) NOTHING(cudaProfilerStart) NOTHING(cudaProfilerStop)

// ---- the management library, which is asked for the fabric and for other processes (a link named libnvidia-ml.so.1 leads here)
NOTHING(nvmlInit_v2) NOTHING(nvmlDeviceGetNvLinkRemoteDeviceType) NOTHING(nvmlDeviceGetNvLinkRemotePciInfo_v2)
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) { return (void)bus, *device = (void*)0x99, OK; }
int nvmlDeviceGetGpuFabricInfoV(void* device, void* info) { return (void)device, (void)info, 3; }
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* n, void* processes) { return (void)device, (void)processes, *n = 0, OK; }
int nvmlSystemGetCudaDriverVersion_v2(int* v) { return *v = version(), OK; }

// ---- matrix products: the library would look for a device of its own
int cublasCreate_v2(void** h) { return *h = (void*)handle(0), OK; }
int cublasLtCreate(void** h) { return *h = (void*)handle(0), OK; }
int cublasLtMatmulAlgoGetHeuristic(void* h, void* a, void* b, void* c, void* d, void* e, void* f, int wanted, void* results, int* found) {
  (void)h, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)wanted;
  memset(results, 0, 96);  // one cublasLtMatmulHeuristicResult_t: no workspace, state success
  return *found = 1, OK;
}
NOTHING(cublasLtMatmul) NOTHING(cublasLtDestroy) NOTHING(cublasDestroy_v2)
NOTHING(cublasSetStream_v2) NOTHING(cublasSetWorkspace_v2) NOTHING(cublasSetMathMode) NOTHING(cublasGetMathMode)
NOTHING(cublasSgemm_v2) NOTHING(cublasSgemmStridedBatched) NOTHING(cublasGemmEx)
NOTHING(cublasGemmStridedBatchedEx) NOTHING(cublasSetPointerMode_v2) NOTHING(cublasGetPointerMode_v2)
NOTHING(cublasSgemv_v2) NOTHING(cublasSdot_v2)
