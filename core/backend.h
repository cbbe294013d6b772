#pragma once
#include <string>

#include "core/state.h"
#include "core/tensor.h"

// Note [Devices]
// A device type is what a Backend does with memory and the kernels that ops have for it (OpDef::kernels). The CPU needs
// no backend: its memory is the pool's. Everything else of an op (inference, gradients, profiles) is the same on every
// device. The address of a tensor on another device means nothing to the host: outside kernels, values are read through
// to_host(), value_at() and item(), and written through copy_() and fill().
namespace tenon {

/// A queue of work on a device. Work of one stream is done in order; streams of a device are independent.
struct Stream {
  Device device;
  uint16_t index = 0;
};

/// What a type of device does with memory. Functions without a stream have finished when they return.
struct Backend {
  const char* name;  ///< as in "cuda:0"
  /// Memory for a storage, at least one byte. Throws Error naming the device where it has no room.
  void* (*take)(Device device, size_t bytes);
  void (*give)(Device device, void* data, size_t bytes);
  /// Between the host and the device, or between devices of this type. Queued; to the host it has finished when it
  /// returns, and what it reads of the host it has read.
  void (*copy)(void* to, Device to_device, const void* from, Device from_device, size_t bytes, Stream stream);
  /// `count` copies of the `item` bytes at `value`, which is on the host, one after the other. Queued.
  void (*fill)(void* to, const void* value, size_t item, int64_t count, Stream stream);
  /// Waits until all that was queued is done.
  void (*sync)(Stream stream);
  /// What the thread gives the stream between begin_graph() and end_graph() is not done but recorded, to be done as one
  /// by replay_graph(), on the same addresses; what other threads give it meanwhile is done as ever. What cannot be
  /// recorded (an end elsewhere, waiting, an op without a kernel of the device) throws Error, and so does end_graph()
  /// after that. Null: nothing is recorded on the device.
  void (*begin_graph)(Stream stream) = nullptr;
  void* (*end_graph)() = nullptr;
  void (*replay_graph)(void* graph, Stream stream) = nullptr;
  void (*drop_graph)(void* graph) = nullptr;
  /// Its kernels take what they work in themselves: OpDef::workspace is not asked.
  bool own_workspace = false;
  /// Its kernels take halves wherever the CPU's do (OpInfo::own_halves); else those ops are run in f32 too.
  bool own_halves = false;
};

/// Gives a number to a type of device. Throws Error where the name is taken or there are no numbers left.
DeviceType register_backend(const Backend& backend);
/// Throws Error for cpu, meta, and types nobody registered.
const Backend& backend_of(Device device);
/// "cpu", "meta", "cuda:0"
std::string to_string(Device device);

/// Sends the ops of this thread to a stream of their device, for a scope.
class StreamScope {
 public:
  explicit StreamScope(uint16_t index);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;

 private:
  uint16_t saved_;
};
/// The stream of this thread on a device.
inline Stream current_stream(Device device) { return {device, t_state.stream}; }

/// Copies bytes from one device to another (or within one), after what this thread's stream was given before. Throws
/// Error for meta.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes);

/// The tensor with its values where the host can read them, without history: itself on the CPU, what is known of it
/// there (KnownOnHost), else a copy with the same strides. Only to be read. This is where values cross to the host.
Tensor to_host(const Tensor& t);
/// While it lives, to_host() on this thread knows the values of `there` and of its views from `here`, of which it is a
/// copy: nothing is copied, and nobody waits for a device. Until somebody writes to either.
class KnownOnHost {
 public:
  KnownOnHost(const Tensor& there, const Tensor& here);
  ~KnownOnHost();
  KnownOnHost(const KnownOnHost&) = delete;

 private:
  friend Tensor to_device(const Tensor& t, Device device);
  /// Undefined where the values are not known.
  static Tensor of(const Tensor& t);

  Tensor there_, here_;  // undefined where they are one
  uint32_t there_version_ = 0, here_version_ = 0;
  KnownOnHost* outer_;
};
/// The same for any device: itself where it is there already. On meta, a tensor of the same size.
Tensor to_device(const Tensor& t, Device device);

}  // namespace tenon
