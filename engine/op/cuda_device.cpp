#include "engine/op/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>

#include "core/backend.h"
#include "core/cuda_module.h"
#include "core/machine_memory.h"
#include "core/pool.h"
#include "engine/op/cuda_graph.h"
#include "engine/op/host_kernel.h"
#include "engine/op/op.h"
#include "engine/op/tf32.h"

namespace tenon {
namespace {

constexpr int kMaxCudaDevices = 16;

/// What there is of one op on the GPU, by its profile_name.
struct CudaKernel {
  const cuda::KernelEntry* entry = nullptr;
  std::atomic<int64_t> host_runs{0}, library_runs{0};
  std::atomic<const char*> library{nullptr};  ///< the last that computed it
};
struct CudaRuntime {
  const cuda::Module* module = nullptr;
  std::vector<CudaKernel> kernels;
  std::array<std::unique_ptr<DevicePool>, kMaxCudaDevices> pools;
};
CudaRuntime& runtime() {
  static auto* r = new CudaRuntime;  // leaked: tensors in statics give back after it
  return *r;
}

[[noreturn]] void cuda_failed(const cuda::Why& why, Device device) {
  throw Error(fmt::format("{}: {}", to_string(device), why.text),
              "What failed may be an op before this one: the device works behind the program.");
}
void check(cuda::Outcome outcome, const cuda::Why& why, Device device) {
  if (outcome != cuda::done) cuda_failed(why, device);
}

class DriverMemory : public DevicePool::Source {
 public:
  explicit DriverMemory(int device) : device_(device) {}
  void* take(size_t bytes) override {
    void* data = nullptr;
    cuda::Why why;
    const cuda::Outcome o = runtime().module->take(device_, bytes, &data, &why);
    if (o == cuda::out_of_memory) return nullptr;
    if (o != cuda::done) throw Error(fmt::format("cuda:{}: {}", device_, why.text));
    return data;
  }
  void give(void* data) override {
    std::lock_guard lock(mutex_);
    kept_.push_back(data);
    CudaGraph::unless_recording([&] {
      for (void* k : kept_) runtime().module->give(device_, k);
      kept_.clear();
    });
  }
  size_t free_bytes() override {
    cuda::DeviceFacts facts;
    cuda::Why why;
    return runtime().module->device(device_, &facts, &why) == cuda::done ? facts.free_bytes : 0;
  }

 private:
  int device_;
  std::mutex mutex_;
  std::vector<void*> kept_;  ///< for later: Note [Recording beside others]
};

DevicePool& pool_of(Device device) { return *runtime().pools[device.index]; }

constexpr uint16_t kRecordingStreams = 0x8000;  // numbers of streams from here on are for recording

void* cuda_stream(Stream s) {
  if (const CudaGraph* graph = CudaGraph::recording()) return graph->stream();
  thread_local struct {
    Device device;
    uint16_t index;
    void* stream;
  } last{{}, 0, nullptr};
  if (!last.stream || !(last.device == s.device) || last.index != s.index) {
    cuda::Why why;
    void* stream = nullptr;
    check(runtime().module->stream(s.device.index, s.index, &stream, &why), why, s.device);
    last = {s.device, s.index, stream};
  }
  return last.stream;
}

Backend cuda_backend() {
  Backend b;
  b.name = "cuda";
  b.own_workspace = true;
  b.own_halves = true;
  b.take = [](Device d, size_t bytes) { return pool_of(d).take(bytes, t_state.stream, t_state.origin.category); };
  b.give = [](Device d, void* data, size_t) { pool_of(d).give(data); };
  b.copy = [](void* to, Device to_device, const void* from, Device from_device, size_t bytes, Stream s) {
    const auto number = [](Device d) { return d.type == DeviceType::cpu ? -1 : int32_t{d.index}; };
    cuda::Why why;
    void* stream = cuda_stream(s);
    if (CudaGraph* graph = CudaGraph::recording(); graph && !(to_device == from_device))
      graph->refuse("a copy to or from another device cannot be recorded");
    const bool two = to_device.type == from_device.type && to_device.index != from_device.index;
    if (!two) {
      check(runtime().module->copy(to, number(to_device), from, number(from_device), bytes, stream, &why), why,
            s.device);
      return;
    }
    // Streams of two GPUs know nothing of each other: what is copied is complete before, and may change after.
    void* source = cuda_stream({from_device, s.index});
    const auto follow = [&](Device d, void* behind, Device other, void* before) {
      check(runtime().module->follow(d.index, behind, other.index, before, &why), why, d);
    };
    follow(to_device, stream, from_device, source);
    check(runtime().module->copy(to, to_device.index, from, from_device.index, bytes, stream, &why), why, to_device);
    follow(from_device, source, to_device, stream);
  };
  b.fill = [](void* to, const void* value, size_t item, int64_t count, Stream s) {
    cuda::Why why;
    check(runtime().module->fill(s.device.index, to, value, item, count, cuda_stream(s), &why), why, s.device);
  };
  b.sync = [](Stream s) {
    if (CudaGraph* graph = CudaGraph::recording()) graph->refuse("waiting for a device cannot be recorded");
    cuda::Why why;
    check(runtime().module->sync(s.device.index, cuda_stream(s), &why), why, s.device);
  };
  b.begin_graph = [](Stream s) {
    CudaGraph::begin(s.device, [&](uint16_t turn) {
      return cuda_stream({s.device, static_cast<uint16_t>(kRecordingStreams + turn)});
    });
  };
  b.end_graph = []() -> void* { return CudaGraph::end().release(); };
  b.replay_graph = [](void* graph, Stream s) { static_cast<CudaGraph*>(graph)->replay(cuda_stream(s)); };
  b.drop_graph = [](void* graph) { delete static_cast<CudaGraph*>(graph); };
  return b;
}

cuda::TensorArg arg_of(const Tensor& t) {
  cuda::TensorArg a;
  if (!t.defined()) {
    a = {nullptr, -1, 0, {}, {}};
    return a;
  }
  a.data = t.storage() ? t.raw() : nullptr;
  a.dtype = static_cast<int32_t>(t.dtype());
  a.ndim = t.ndim();
  std::copy(t.size().begin(), t.size().end(), a.size);
  std::copy(t.stride().begin(), t.stride().end(), a.stride);
  return a;
}

/// The attributes of a call in the seam's form. Lives as long as the call.
class FlatAttrs : public AttrVisitor {
 public:
  explicit FlatAttrs(const Call& c) {
    if (c.op->attrs.visit) c.op->attrs.visit(c.attrs, *this);
    for (size_t i = 0; i < args_.size(); ++i) args_[i].list = whole_.data() + starts_[i];
  }
  const std::vector<cuda::AttrArg>& args() const { return args_; }

  void field(const AttrField& f) override {
    cuda::AttrArg a{f.name, nullptr, nullptr, 1, 0};
    starts_.push_back(whole_.size());
    using Type = AttrField::Type;
    switch (f.type) {
      case Type::i64:
      case Type::u64:
        whole_.push_back(*static_cast<const int64_t*>(f.at));
        break;
      case Type::f64:
        a.number = *static_cast<const double*>(f.at);
        break;
      case Type::boolean:
        whole_.push_back(*static_cast<const bool*>(f.at));
        break;
      case Type::dtype:
        whole_.push_back(static_cast<int64_t>(*static_cast<const DType*>(f.at)));
        break;
      case Type::dims:
        a.count = static_cast<const Dims*>(f.at)->n;
        push(*static_cast<const Dims*>(f.at));
        break;
      case Type::layout: {
        const auto& l = *static_cast<const Layout*>(f.at);
        a.count = 2 + 2 * l.size.n;
        whole_.push_back(l.offset);
        whole_.push_back(l.size.n);
        push(l.size);
        push(l.stride);
        break;
      }
      case Type::text:
        a.text = static_cast<const std::string*>(f.at)->c_str();
        break;
      case Type::choice: {
        int64_t number = 0;
        std::memcpy(&number, f.at, f.size);
        whole_.push_back(number);
        a.text = (*f.choices)[static_cast<size_t>(number)].c_str();
        break;
      }
      case Type::object:  // what no kernel of a device reads
        a.count = 0;
        break;
    }
    args_.push_back(a);
  }

 private:
  void push(const Dims& d) { whole_.insert(whole_.end(), d.begin(), d.end()); }

  std::vector<int64_t> whole_;
  std::vector<size_t> starts_;
  std::vector<cuda::AttrArg> args_;
};

}  // namespace
}  // namespace tenon

/// Memory that kernels ask for: it goes back to the pool when the call returns, for work of the same stream to take.
struct tenon::cuda::Scratch {
  tenon::Device device;
  std::vector<tenon::Ref<tenon::Storage>> taken;
  std::exception_ptr error;
};

namespace tenon {
namespace {

void* take_scratch(cuda::Scratch* scratch, size_t bytes) {
  try {
    if (CudaGraph* graph = CudaGraph::recording()) return graph->take(bytes);
    CategoryScope category(Category::workspace);
    scratch->taken.push_back(backend_take(bytes, scratch->device));
    return scratch->taken.back()->data;
  } catch (...) {
    scratch->error = std::current_exception();
    return nullptr;
  }
}

void run_cuda_kernel(const Call& c) {
  CudaKernel& kernel = runtime().kernels[c.op->profile_name];
  if (kernel.entry) {
    constexpr int kFew = 8;
    cuda::TensorArg few[2 * kFew];
    std::vector<cuda::TensorArg> many;
    cuda::TensorArg* args = few;
    if (c.inputs + c.outputs > 2 * kFew) {
      many.resize(static_cast<size_t>(c.inputs + c.outputs));
      args = many.data();
    }
    for (int i = 0; i < c.inputs; ++i) args[i] = arg_of(c.in[i]);
    for (int i = 0; i < c.outputs; ++i) args[c.inputs + i] = arg_of(c.out[i]);
    const FlatAttrs attrs(c);
    cuda::Scratch scratch{c.stream.device, {}, nullptr};
    cuda::KernelCall call{};
    call.op = c.op->info.name;
    call.in = args;
    call.inputs = c.inputs;
    call.out = args + c.inputs;
    call.outputs = c.outputs;
    call.attrs = attrs.args().data();
    call.attr_count = static_cast<int32_t>(attrs.args().size());
    call.device = c.stream.device.index;
    call.stream = cuda_stream(c.stream);
    call.tf32 = t_tf32;
    call.take = take_scratch;
    call.scratch = &scratch;
    const cuda::Outcome outcome = kernel.entry->run(&call);
    if (CudaGraph* graph = CudaGraph::recording()) graph->kernel_called();
    if (outcome == cuda::done) {
      if (call.library) {
        kernel.library.store(call.library, std::memory_order_relaxed);
        kernel.library_runs.fetch_add(1, std::memory_order_relaxed);
      }
      // In a profile an op lasts as long as its kernels do: each is waited for, and nothing overlaps.
      if (mode_word() & mode::profile) backend_of(c.stream.device).sync(c.stream);
      return;
    }
    if (outcome == cuda::out_of_memory && scratch.error) std::rethrow_exception(scratch.error);
    if (outcome != cuda::unsupported) cuda_failed(call.why, c.stream.device);
  }
  if (CudaGraph* graph = CudaGraph::recording())
    graph->refuse(fmt::format("{} has no kernel for the GPU, and runs on the CPU", c.op->info.name));
  kernel.host_runs.fetch_add(1, std::memory_order_relaxed);
  run_on_host(c);
}

DeviceType register_cuda() {
  const CudaState& state = cuda_state();
  if (state.devices == 0) throw Error("there is no CUDA device: " + state.why, state.hint);
  CudaRuntime& r = runtime();
  r.module = cuda_module();
  const char* asked = std::getenv("TENON_CUDA_NO_POOL");
  const bool checked = asked && *asked;
  for (int i = 0; i < std::min(state.devices, kMaxCudaDevices); ++i)
    r.pools[static_cast<size_t>(i)] =
        std::make_unique<DevicePool>(fmt::format("cuda:{}", i), std::make_unique<DriverMemory>(i), !checked);
  const DeviceType type = register_backend(cuda_backend());
  int32_t count = 0;
  const cuda::KernelEntry* entries = r.module->kernels(&count);
  size_t names = 0;
  for (const OpDef& op : all_ops()) names = std::max(names, size_t{op.profile_name} + 1);
  r.kernels = std::vector<CudaKernel>(names);
  for (const OpDef& op : all_ops()) {
    if (op.info.any_device || !op.kernels[static_cast<size_t>(DeviceType::cpu)]) continue;
    for (int32_t i = 0; i < count; ++i)
      if (std::string_view(entries[i].op) == op.info.name) r.kernels[op.profile_name].entry = &entries[i];
    register_kernel(op.info.name, type, run_cuda_kernel);
  }
  return type;
}

}  // namespace

DeviceType cuda_type() {
  static const DeviceType type = register_cuda();
  return type;
}

std::string full_device_name(const std::string& name) { return name == "cuda" ? "cuda:0" : name; }

Device parse_device(const std::string& text) {
  if (text == "cpu") return {};
  int index = 0;
  const bool numbered = text.starts_with("cuda:");
  const char* end = text.data() + text.size();
  const auto read = numbered ? std::from_chars(text.data() + 5, end, index) : std::from_chars_result{end, std::errc()};
  if ((text != "cuda" && !numbered) || read.ptr != end || read.ec != std::errc() || index < 0)
    throw Error::usage(fmt::format("there is no device named {}", text),
                       "Devices are cpu, cuda, and cuda:1 and so on.");
  const DeviceType type = cuda_type();
  const int devices = std::min(cuda_state().devices, kMaxCudaDevices);
  if (index >= devices)
    throw Error(
        fmt::format("there is no device {}: this machine has {} CUDA device{}", text, devices, devices == 1 ? "" : "s"),
        fmt::format("Use one of cuda:0 to cuda:{}.", devices - 1));
  cuda::DeviceFacts facts;
  cuda::Why why;
  check(runtime().module->device(index, &facts, &why), why, {type, static_cast<uint8_t>(index)});
  if (facts.major < 8)
    throw Error(fmt::format("cuda:{} ({}) is of compute capability {}.{}", index, facts.name, facts.major, facts.minor),
                "Tenon's kernels are for 8.0 and above; use --device cpu.");
  return {type, static_cast<uint8_t>(index)};
}

std::vector<std::string> device_names() {
  std::vector<std::string> names = {"cpu"};
  for (int i = 0; i < std::min(cuda_state().devices, kMaxCudaDevices); ++i) names.push_back(fmt::format("cuda:{}", i));
  return names;
}

int64_t memory_limit_of(const std::string& device) {
  const std::string name = full_device_name(device);
  if (name == "cpu") return memory_limit();  // and no driver is asked
  const std::vector<std::string> all = device_names();
  const auto at = std::find(all.begin() + 1, all.end(), name);
  if (at == all.end()) return memory_limit();
  cuda::DeviceFacts facts;
  cuda::Why why;
  const auto index = static_cast<int32_t>(at - all.begin() - 1);
  return cuda_module()->device(index, &facts, &why) == cuda::done ? static_cast<int64_t>(facts.total_bytes)
                                                                  : memory_limit();
}

bool has_cuda_kernel(const std::string& op) {
  static const std::set<std::string> all = [] {
    std::set<std::string> names;
    int32_t count = 0;
    const cuda::KernelEntry* entries = cuda_module() ? cuda_module()->kernels(&count) : nullptr;
    for (int32_t i = 0; i < count; ++i) names.insert(entries[i].op);
    return names;
  }();
  return all.contains(op);
}

DevicePool::Stats cuda_memory(Device device) { return pool_of(device).stats(); }

int64_t cuda_waits(Device device) { return static_cast<int64_t>(runtime().module->waits(device.index)); }

void reset_cuda_peak(Device device) { pool_of(device).reset_peak(); }

PoolStats tensor_memory(Device device) {
  if (device.type == DeviceType::cpu || !runtime().module || std::string_view(backend_of(device).name) != "cuda")
    return pool_stats();
  const DevicePool::Stats s = cuda_memory(device);
  return {s.live_bytes, s.peak_bytes, s.held_bytes - s.live_bytes};
}

std::vector<std::pair<std::string, double>> device_load(Device device) {
  std::vector<std::pair<std::string, double>> load;
  if (device.type == DeviceType::cpu || !runtime().module) return load;
  cuda::LoadFacts now;
  if (runtime().module->load(device.index, &now) != cuda::done) return load;
  for (const auto& [name, value] : {std::pair{"gpu_utilization", now.utilization},
                                    {"gpu_memory_bytes", now.memory_bytes},
                                    {"gpu_watts", now.watts},
                                    {"gpu_celsius", now.celsius}})
    if (std::isfinite(value)) load.emplace_back(name, value);
  return load;
}

std::vector<HostRuns> cuda_host_runs() {
  std::vector<HostRuns> runs;
  for (const OpDef& op : all_ops())
    if (op.profile_name < runtime().kernels.size())
      if (const int64_t n = runtime().kernels[op.profile_name].host_runs.load()) runs.push_back({op.info.name, n});
  std::stable_sort(runs.begin(), runs.end(), [](const HostRuns& a, const HostRuns& b) { return a.count > b.count; });
  return runs;
}

std::vector<LibraryRuns> cuda_library_runs() {
  std::vector<LibraryRuns> runs;
  for (const OpDef& op : all_ops()) {
    if (op.profile_name >= runtime().kernels.size()) continue;
    const CudaKernel& k = runtime().kernels[op.profile_name];
    if (const char* library = k.library.load()) runs.push_back({op.info.name, library, k.library_runs.load()});
  }
  return runs;
}

}  // namespace tenon
