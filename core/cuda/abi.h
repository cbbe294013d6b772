#pragma once
#include <cstddef>
#include <cstdint>

// Note [The CUDA module]
// What Tenon does on an NVIDIA GPU lies in a library of its own, lib/tenon/cuda.so, which is opened where it is there.
// It is made by nvcc of core/cuda and engine/cuda, knows nothing of Tenon's classes, and is reached through this header
// alone: plain structs and function pointers, no exception and no class of the standard library crosses. So one Tenon
// runs with a driver and without, and neither compiler has to read what the other's headers are written in.
// The same sources are compiled a second time for the tests, by the host's compiler, over an emulation of a GPU
// (tests/simt): everything on this side of the seam, and the text of every kernel, is run on machines without one.
namespace tenon::cuda {

/// Counts up with every change of what is below.
inline constexpr uint32_t kAbi = 2;
inline constexpr int kDims = 8;

/// How a function of the module ended. A text that says why is in `why` for all but `done`.
enum Outcome : int32_t {
  done = 0,
  unsupported = 1,  ///< nothing was begun: the module has no kernel for this dtype, layout or size
  failed = 2,
  out_of_memory = 3,
};

/// A text that comes back, ended by a zero.
struct Why {
  char text[512];
};

/// A strided array on the device. Sizes and strides in elements.
struct TensorArg {
  void* data;     ///< of the first element; null where an optional operand is left out
  int32_t dtype;  ///< a tenon::DType; -1 where it is left out
  int32_t ndim;
  int64_t size[kDims], stride[kDims];
};

/// An attribute of the op (Note [Attributes of an op]).
struct AttrArg {
  const char* name;
  const char* text;     ///< of a text, and the name of a choice; else null
  const int64_t* list;  ///< whole numbers, truth, dtypes and choices: one; sizes: `count`
  int32_t count;
  double number;  ///< of an f64
};

struct Scratch;  ///< the host's

/// One execution of an op: the POD of engine/op/op.h's Call.
struct KernelCall {
  const char* op;
  const TensorArg* in;
  const TensorArg* out;
  const AttrArg* attrs;
  int32_t inputs, outputs, attr_count;
  int32_t device;
  void* stream;  ///< a cudaStream_t
  int32_t tf32;  ///< products of f32 may round their factors to TF32
  /// Memory of the device for as long as the work queued by this call needs it. Null where there is none left: return
  /// out_of_memory then.
  void* (*take)(Scratch* scratch, size_t bytes);
  Scratch* scratch;
  const char* library;  ///< is set to the one that computed it (a library()'s name); null: kernels of the module's own
  Why why;
};

/// The kernel of an op by name.
struct KernelEntry {
  const char* op;
  Outcome (*run)(KernelCall* call);
};

struct DeviceFacts {
  char name[256];
  int32_t major, minor;  ///< compute capability
  int32_t multiprocessors;
  uint64_t total_bytes, free_bytes;
};

/// What a device does at a moment, with all programs that use it. NaN where the driver does not say.
struct LoadFacts {
  double utilization;  ///< percent of the time in which a kernel ran, over the last sample of the driver's
  double memory_bytes, watts, celsius;
};

/// What can be said without touching a device.
struct DriverFacts {
  int32_t devices;
  int32_t driver, runtime;  ///< 13000 is 13.0; driver 0 where there is none
  Why why;                  ///< why there are no devices
};

/// A library that the module calls where it is there: Note [Libraries of the GPU].
struct LibraryFacts {
  const char *name, *use;
  const char* without;  ///< what is done where it is not there
  const char* package;  ///< of Python, that brings it; null where none does
  int32_t there;
  char version[64], file[512];
  Why why;  ///< why it is not there
};

/// The module's functions. None throws. Those that take a stream queue their work there, unless said otherwise.
struct Module {
  uint32_t abi;
  const char* version;  ///< TENON_VERSION
  const char* build;    ///< "sm_80 sm_90" or "an emulated GPU"
  void (*driver)(DriverFacts* facts);
  Outcome (*device)(int32_t device, DeviceFacts* facts, Why* why);
  /// Takes microseconds. Unsupported where there is no NVML.
  Outcome (*load)(int32_t device, LoadFacts* facts);
  const KernelEntry* (*kernels)(int32_t* count);
  /// Of library number `index`, which is opened; unsupported past the last.
  Outcome (*library)(int32_t index, LibraryFacts* facts);

  /// Memory from the driver, which takes long: tenon::DevicePool keeps it.
  Outcome (*take)(int32_t device, size_t bytes, void** data, Why* why);
  void (*give)(int32_t device, void* data);
  /// The stream of a number; 0 is the one that ops run on where nobody says otherwise.
  Outcome (*stream)(int32_t device, int32_t index, void** stream, Why* why);
  /// Between host (device -1) and device or between devices. To the host it has finished on return; from the host it is
  /// queued, and the memory there is the caller's again (Note [Staging]).
  Outcome (*copy)(void* to, int32_t to_device, const void* from, int32_t from_device, size_t bytes, void* stream,
                  Why* why);
  /// `count` copies of an item of 1, 2, 4 or 8 bytes.
  Outcome (*fill)(int32_t device, void* to, const void* item, size_t item_bytes, int64_t count, void* stream, Why* why);
  Outcome (*sync)(int32_t device, void* stream, Why* why);
  /// What is given to `stream` from now on begins when what `other` was given is done. Nobody waits here.
  Outcome (*follow)(int32_t device, void* stream, int32_t other_device, void* other, Why* why);
  /// What `stream` is given between begin and end is recorded instead of done; `replay` queues all of it on any stream
  /// of the device, on the same addresses. `graph_end` fails where something in between cannot be recorded; the stream
  /// is then as before. The device is not to be waited for as a whole meanwhile, as give() does.
  Outcome (*graph_begin)(int32_t device, void* stream, Why* why);
  Outcome (*graph_end)(int32_t device, void* stream, void** graph, Why* why);
  Outcome (*graph_replay)(int32_t device, void* graph, void* stream, Why* why);
  /// `stream`: where it was done last; null: nowhere.
  void (*graph_drop)(int32_t device, void* graph, void* stream);
  /// How often the host has waited for the device: sync(), copies to the host, and copies for which no staging memory
  /// was free. Memory that give() gives back is apart.
  uint64_t (*waits)(int32_t device);
};

/// The one symbol of the module: `const Module* tenon_cuda_module()`.
using OpenModule = const Module* (*)();
inline constexpr const char* kOpenModule = "tenon_cuda_module";

}  // namespace tenon::cuda
