#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/device_pool.h"
#include "core/pool.h"
#include "core/tensor.h"

namespace tenon {

/// The type of device "cuda". The first call registers it: a backend over the CUDA module, and for every op the
/// module's kernel or, where it has none for the operands, the CPU's behind copies (run_on_host()). Throws Error saying
/// what is missing where there is no GPU. Under the environment's TENON_CUDA_NO_POOL=1 every block of memory is the
/// driver's own, for compute-sanitizer and its like.
DeviceType cuda_type();

/// "cuda" is "cuda:0"; other names are themselves.
std::string full_device_name(const std::string& name);
/// "cpu", "cuda" (cuda:0), "cuda:1". Throws Error for a device that is not there, usage where no device has the name.
Device parse_device(const std::string& text);

/// "cpu" and the GPUs there are, as parse_device() reads them.
std::vector<std::string> device_names();

/// Of the memory that Tenon holds on a GPU.
DevicePool::Stats cuda_memory(Device device);
/// How often the program has waited for a GPU, since the process began.
int64_t cuda_waits(Device device);
/// Peaks of cuda_memory() begin anew here.
void reset_cuda_peak(Device device);
/// What tensors hold on a device: the CPU's pool, or a GPU's.
PoolStats tensor_memory(Device device);

/// What a GPU does at this moment, with all programs that use it: utilisation in percent, memory in bytes, power in
/// watts, temperature in degrees Celsius, as metrics by their names. Empty for the CPU, and without NVML; what the
/// driver does not say of a device is left out. Takes microseconds and waits for nothing.
std::vector<std::pair<std::string, double>> device_load(Device device);

/// What tensors may take where a run computes, by the name in its recipe: the memory of a GPU, or memory_limit(), also
/// where the device is not there.
int64_t memory_limit_of(const std::string& device);

/// Whether the CUDA module has a kernel of this op. Asks for no GPU.
bool has_cuda_kernel(const std::string& op);

/// Ops that ran on the CPU for want of a kernel since the process began, and how often: by count, most first.
struct HostRuns {
  std::string op;
  int64_t count = 0;
};
std::vector<HostRuns> cuda_host_runs();

/// Ops that a library computed (Note [Libraries of the GPU]), by its name, and how often.
struct LibraryRuns {
  std::string op, library;
  int64_t count = 0;
};
std::vector<LibraryRuns> cuda_library_runs();

}  // namespace tenon
