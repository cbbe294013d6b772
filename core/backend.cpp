#include "core/backend.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/state.h"

namespace tenon {
namespace {

constexpr int kFirst = 2;  // cpu and meta are their own

struct Table {
  std::mutex mutex;
  std::array<Backend, kDeviceTypes> of{};
  std::atomic<int> count{kFirst};  // entries below it are complete
};
Table& backend_table() {
  static auto* t = new Table;  // leaked: tensors in other statics may be freed after any of them
  return *t;
}

bool is_host(Device d) { return d.type == DeviceType::cpu; }

thread_local KnownOnHost* t_known = nullptr;  ///< the innermost

}  // namespace

DeviceType register_backend(const Backend& backend) {
  Table& t = backend_table();
  std::lock_guard lock(t.mutex);
  const int n = t.count.load();
  for (int i = kFirst; i < n; ++i)
    if (std::string_view(t.of[static_cast<size_t>(i)].name) == backend.name)
      throw Error(fmt::format("two types of device are named '{}'", backend.name));
  if (n == kDeviceTypes)
    throw Error(
        fmt::format("device type '{}' is one too many: there is room for {}", backend.name, kDeviceTypes - kFirst));
  t.of[static_cast<size_t>(n)] = backend;
  t.count.store(n + 1);
  return static_cast<DeviceType>(n);
}

const Backend& backend_of(Device device) {
  const int i = static_cast<int>(device.type);
  if (i < kFirst || i >= backend_table().count.load())
    throw Error(fmt::format("device {} has no backend", to_string(device)), "use the CPU");
  return backend_table().of[static_cast<size_t>(i)];
}

std::string to_string(Device device) {
  if (device.type == DeviceType::cpu) return "cpu";
  if (device.type == DeviceType::meta) return "meta";
  const int i = static_cast<int>(device.type);
  if (i >= backend_table().count.load()) return fmt::format("device type {}", i);
  return fmt::format("{}:{}", backend_table().of[static_cast<size_t>(i)].name, device.index);
}

StreamScope::StreamScope(uint16_t index) : saved_(std::exchange(t_state.stream, index)) {}
StreamScope::~StreamScope() { t_state.stream = saved_; }
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  if (bytes == 0) return;
  if (is_host(to_device) && is_host(from_device)) {
    std::memcpy(to, from, bytes);
  } else if (is_host(from_device) || (!is_host(to_device) && to_device.type == from_device.type)) {
    backend_of(to_device).copy(to, to_device, from, from_device, bytes, current_stream(to_device));
  } else if (is_host(to_device)) {
    backend_of(from_device).copy(to, to_device, from, from_device, bytes, current_stream(from_device));
  } else {  // two types that know nothing of each other meet on the host
    std::vector<char> between(bytes);
    copy_bytes(between.data(), {}, from, from_device, bytes);
    copy_bytes(to, to_device, between.data(), {}, bytes);
  }
}

KnownOnHost::KnownOnHost(const Tensor& there, const Tensor& here) : outer_(std::exchange(t_known, this)) {
  if (!there.storage() || !here.storage() || there.storage() == here.storage() || there.dtype() != here.dtype() ||
      !(there.size() == here.size()) || !(there.stride() == here.stride()))
    return;
  there_ = there;
  here_ = here;
  there_version_ = there.storage()->version;
  here_version_ = here.storage()->version;
}
KnownOnHost::~KnownOnHost() { t_known = outer_; }

Tensor KnownOnHost::of(const Tensor& t) {
  for (const KnownOnHost* k = t_known; k; k = k->outer_) {
    if (!k->there_.defined() || t.storage() != k->there_.storage() || t.dtype() != k->there_.dtype()) continue;
    if (t.storage()->version != k->there_version_ || k->here_.storage()->version != k->here_version_) continue;
    // A view within the memory that the two have in common.
    int64_t lo, hi, first, last;
    t.layout().extent(lo, hi);
    k->there_.layout().extent(first, last);
    if (t.numel() == 0 || lo < first || hi > last) continue;
    Layout layout = t.layout();
    layout.offset += k->here_.offset() - k->there_.offset();
    return view_of(k->here_, layout);
  }
  return {};
}

Tensor to_host(const Tensor& t) { return to_device(t, {}); }

Tensor to_device(const Tensor& t, Device device) {
  if (!t.defined() || t.device() == device) return t;
  if (is_host(device))
    if (Tensor known = KnownOnHost::of(t); known.defined()) return known;
  if (device.type == DeviceType::meta) return empty(t.size(), t.dtype(), device);
  if (t.is_meta())
    throw Error(fmt::format("a tensor of size {} on the meta device has no values for device {}", to_string(t.size()),
                            to_string(device)));
  Layout layout = t.layout();
  int64_t lo, hi;
  layout.extent(lo, hi);
  if (t.numel() == 0) lo = layout.offset, hi = lo - 1;
  const auto item = static_cast<int64_t>(itemsize(t.dtype()));
  const Tensor room = empty({hi - lo + 1}, t.dtype(), device);
  copy_bytes(room.storage()->data, device, static_cast<const char*>(t.storage()->data) + lo * item, t.device(),
             static_cast<size_t>((hi - lo + 1) * item));
  layout.offset -= lo;
  return view_of(room, layout);
}

}  // namespace tenon
