#include "core/cuda/nvml.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>

#include "core/cuda/library.h"
#include "core/cuda/runtime.h"

// What is called of NVML, by NVIDIA's "NVML API Reference": it comes with the driver, its header with the toolkit only.
namespace tenon::cuda {
namespace {

using NvmlDevice = struct NvmlDeviceOpaque*;
struct NvmlUtilization {
  unsigned gpu, memory;  ///< percent of the last sample period (1/6 to 1 s)
};
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr int kTemperatureOfGpu = 0;

const Library nvml_library("NVML", "libnvidia-ml.so.1", "tells utilisation, memory, power and temperature of a run",
                           "a run has no curves of the GPU's load", nullptr,
                           [](const Library& l, char* text, size_t room) {
                             int (*init)() = nullptr;
                             int (*version)(char*, unsigned) = nullptr;
                             if (l.find(init, "nvmlInit_v2") && l.find(version, "nvmlSystemGetNVMLVersion") &&
                                 init() == 0)
                               version(text, static_cast<unsigned>(room));
                           });

struct NvmlCalls {
  int (*init)();
  int (*by_bus)(const char*, NvmlDevice*);
  int (*utilization)(NvmlDevice, NvmlUtilization*);
  int (*memory)(NvmlDevice, NvmlMemory*);
  int (*power)(NvmlDevice, unsigned* milliwatts);
  int (*temperature)(NvmlDevice, int sensor, unsigned* celsius);
  bool ready;

  NvmlCalls() {
    const Library& l = nvml_library;
    ready = l.find(init, "nvmlInit_v2") && l.find(by_bus, "nvmlDeviceGetHandleByPciBusId_v2") &&
            l.find(utilization, "nvmlDeviceGetUtilizationRates") && l.find(memory, "nvmlDeviceGetMemoryInfo") &&
            l.find(power, "nvmlDeviceGetPowerUsage") && l.find(temperature, "nvmlDeviceGetTemperature") && init() == 0;
  }
};

/// Null where the driver does not know it. NVML's numbers are not CUDA's: what both know is the place on the bus.
NvmlDevice nvml_device(const NvmlCalls& nvml, int32_t device) {
  static std::mutex mutex;
  static std::map<int32_t, NvmlDevice> all;
  std::lock_guard lock(mutex);
  const auto [at, fresh] = all.try_emplace(device, nullptr);
  char bus[64] = "";
  if (fresh && (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess || nvml.by_bus(bus, &at->second) != 0)) {
    at->second = nullptr;
    cudaGetLastError();  // the runtime keeps it for the next who asks
  }
  return at->second;
}

}  // namespace

Outcome device_load(int32_t device, LoadFacts* facts) {
  static const NvmlCalls nvml;
  if (!nvml.ready) return unsupported;
  const NvmlDevice d = nvml_device(nvml, device);
  if (!d) return unsupported;
  // A part of a GPU (MIG) and some cards without sensors have only some of these.
  NvmlUtilization busy{};
  NvmlMemory memory{};
  unsigned power = 0, temperature = 0;
  facts->utilization = nvml.utilization(d, &busy) == 0 ? busy.gpu : NAN;
  facts->memory_bytes = nvml.memory(d, &memory) == 0 ? static_cast<double>(memory.used) : NAN;
  facts->watts = nvml.power(d, &power) == 0 ? power / 1000.0 : NAN;
  facts->celsius = nvml.temperature(d, kTemperatureOfGpu, &temperature) == 0 ? temperature : NAN;
  return done;
}

}  // namespace tenon::cuda
