// What a trace says of the machine and of the run it was taken from.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/number.h"
#include "tracing/analyses/overview.h"
#include "tracing/trace/scanner.h"

namespace tenon::tracing {
namespace {

using traces::Trace;
using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string field(const Pairs& fields, std::string_view key) {
  for (const auto& [k, v] : fields)
    if (k == key) return v;
  return {};
}
int64_t integer_of(const std::string& text) {
  const auto n = number_of(text);
  return n && *n >= 0 && *n < 9e18 ? static_cast<int64_t>(*n) : -1;
}

/// The objects of the list of devices; the list may be cut where it is long.
std::vector<Pairs> devices(const Trace& t) {
  const std::string list = t.metadata("deviceProperties");
  std::vector<Pairs> all;
  for (size_t at = list.find('{'); at != list.npos; at = list.find('{', at + 1)) {
    const size_t end = list.find('}', at);
    if (end == list.npos) break;
    all.push_back(traces::object_fields(std::string_view(list).substr(at, end + 1 - at)));
    at = end;
  }
  return all;
}

std::string device_text(const Pairs& d) {
  std::string text = field(d, "name");
  if (text.empty()) text = "a GPU";
  if (const int64_t bytes = integer_of(field(d, "totalGlobalMem")); bytes > 0) text += ", " + bytes_text(bytes);
  if (const int64_t major = integer_of(field(d, "computeMajor")); major > 0)
    text +=
        fmt::format(", compute capability {}.{}", major, std::max<int64_t>(0, integer_of(field(d, "computeMinor"))));
  if (const int64_t sms = integer_of(field(d, "numSms")); sms > 0) text += fmt::format(", {} SMs", sms);
  return text;
}

/// "12080" is how CUDA writes 12.8.
std::string cuda_version(const std::string& text) {
  const int64_t n = integer_of(text);
  return n >= 1000 ? fmt::format("{}.{}", n / 1000, n % 1000 / 10) : text;
}

/// How a value of JSON reads; nothing where it is a list or an object.
std::string plain_text(const std::string& json_text) {
  const auto j = nlohmann::json::parse(json_text, nullptr, false);
  if (j.is_discarded() || j.is_structured() || j.is_null()) return {};
  std::string text = j.is_string() ? j.get<std::string>() : j.dump();
  if (text.size() > 200) text = short_name(text, 200);
  return text;
}

/// Which of torch's iterators loaded the data.
std::string loader_text(const Trace& t) {
  bool single = false, several = false;
  for (uint32_t n = 0; n < t.names(); ++n) {
    const std::string_view name = t.text(n);
    single |= name.find("_SingleProcessDataLoaderIter") != name.npos;
    several |= name.find("_MultiProcessingDataLoaderIter") != name.npos;
  }
  return single && several ? "in this process and in workers"
         : single          ? "in this process (num_workers=0)"
         : several         ? "in worker processes"
                           : "";
}

}  // namespace

int compute_capability(const Trace& t) {
  int most = 0;
  for (const Pairs& d : devices(t)) {
    const int64_t major = integer_of(field(d, "computeMajor")), minor = integer_of(field(d, "computeMinor"));
    if (major > 0 && major < 1000)
      most = std::max(most, static_cast<int>(major * 10 + std::clamp<int64_t>(minor, 0, 9)));
  }
  return most;
}

Pairs configuration_of(const Trace& t) {
  Pairs all;
  auto add = [&](std::string what, std::string value) {
    if (!value.empty()) all.emplace_back(std::move(what), std::move(value));
  };
  add("recorded by", recorded_by_tenon(t) ? "Tenon" : "PyTorch's profiler, or one that writes as it does");
  std::vector<std::string> gpus;
  for (const traces::Row& row : t.rows())
    if (row.gpu && row.events && std::find(gpus.begin(), gpus.end(), row.pid) == gpus.end()) gpus.push_back(row.pid);
  add("GPUs at work", gpus.empty() ? "none" : std::to_string(gpus.size()));
  int number = 0;
  for (const Pairs& d : devices(t)) {
    const std::string id = field(d, "id");
    add("GPU " + (id.empty() ? std::to_string(number) : id), device_text(d));
    ++number;
  }
  const Pairs distributed = traces::object_fields(t.metadata("distributedInfo"));
  if (t.rank() >= 0) {
    const std::string world = field(distributed, "world_size");
    add("rank", std::to_string(t.rank()) + (world.empty() ? "" : " of " + world));
  }
  add("collectives", field(distributed, "backend"));
  add("data is loaded", loader_text(t));
  add("CUDA driver", cuda_version(plain_text(t.metadata("cuda_driver_version"))));
  add("CUDA runtime", cuda_version(plain_text(t.metadata("cuda_runtime_version"))));
  static constexpr const char* told[] = {"schemaVersion",        "displayTimeUnit", "baseTimeNanoseconds",
                                         "deviceProperties",     "distributedInfo", "cuda_driver_version",
                                         "cuda_runtime_version", "trace_id",        "traceName"};
  constexpr size_t kMost = 40;
  for (const auto& one : t.metadata())
    if (all.size() < kMost && std::ranges::find(told, one.first) == std::end(told)) {
      std::string what = one.first;
      std::replace(what.begin(), what.end(), '_', ' ');
      add(what, plain_text(one.second));
    }
  return all;
}

}  // namespace tenon::tracing
