#include <cstdio>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/cuda/device.h"
#include "core/cuda/graph.h"
#include "core/cuda/library.h"
#include "core/cuda/nvml.h"
#include "core/version.h"
#include "engine/cuda/kernel.h"

namespace tenon::cuda {
namespace {

#ifdef __CUDACC__
constexpr const char* kBuild = TENON_CUDA_BUILD;  // the architectures, as CMake names them
#else
constexpr const char* kBuild = "an emulated GPU";
#endif

const KernelOf*& first_kernel() {
  static const KernelOf* first = nullptr;
  return first;
}

const KernelOf* kernel_of(const char* op) {
  static const std::unordered_map<std::string_view, const KernelOf*> all = [] {
    std::unordered_map<std::string_view, const KernelOf*> by_name;
    for (const KernelOf* k = first_kernel(); k; k = k->next) by_name.emplace(k->op, k);
    return by_name;
  }();
  const auto found = all.find(op);
  return found == all.end() ? nullptr : found->second;
}

// The last frame of the module: nothing that is thrown passes it.
Outcome run_kernel(KernelCall* call) {
  const char* text = "the module does not have the kernel";
  try {
    const KernelOf* k = kernel_of(call->op);
    int current = 0;
    const cudaError_t error = cudaGetDevice(&current);
    if ((error || current != call->device) && cudaSetDevice(call->device) != cudaSuccess) {
      text = "the device cannot be used";
    } else if (k) {
      Args args(*call);
      k->run(args);
      return done;
    }
  } catch (const Unsupported&) {
    return unsupported;
  } catch (const OutOfMemory&) {
    return out_of_memory;
  } catch (const Failure& e) {
    call->why = e.why;
    return failed;
  } catch (const std::exception& e) {
    std::snprintf(call->why.text, sizeof call->why.text, "%s", e.what());
    return failed;
  }
  std::snprintf(call->why.text, sizeof call->why.text, "%s", text);
  return failed;
}

const KernelEntry* kernels(int32_t* count) {
  static const std::vector<KernelEntry> all = [] {
    std::vector<KernelEntry> list;
    for (const KernelOf* k = first_kernel(); k; k = k->next) list.push_back({k->op, run_kernel});
    return list;
  }();
  *count = static_cast<int32_t>(all.size());
  return all.data();
}

}  // namespace

KernelOf::KernelOf(const char* name, void (*function)(Args&)) : op(name), run(function), next(first_kernel()) {
  first_kernel() = this;
}

void Args::check() const {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  char text[256];
  std::snprintf(text, sizeof text, "launching a kernel: %s (CUDA error %d)", cudaGetErrorString(error),
                static_cast<int>(error));
  throw Failure(text);
}

}  // namespace tenon::cuda

extern "C" __attribute__((visibility("default"))) const tenon::cuda::Module* tenon_cuda_module() {
  using namespace tenon::cuda;
  static const Module module = {
      .abi = kAbi,
      .version = TENON_VERSION,
      .build = kBuild,
      .driver = driver_facts,
      .device = device_facts,
      .load = device_load,
      .kernels = kernels,
      .library = library_facts,
      .take = device_take,
      .give = device_give,
      .stream = device_stream,
      .copy = device_copy,
      .fill = device_fill,
      .sync = device_sync,
      .follow = device_follow,
      .graph_begin = graph_begin,
      .graph_end = graph_end,
      .graph_replay = graph_replay,
      .graph_drop = graph_drop,
      .waits = device_waits,
  };
  return &module;
}
