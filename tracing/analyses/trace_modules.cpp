// trace modules: time by nn.Module, from recorded module calls or from the hierarchy the ops carry.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tracing/analyses/activity.h"

namespace tenon::tracing {
namespace {

using trace::EventId;
using trace::Kind;
using trace::kNone;
using trace::Trace;

struct Module {
  int64_t calls = 0, total = 0, self = 0, gpu_self = 0, kernels = 0;
};

constexpr std::string_view kPrefix = "nn.Module: ";

/// The path of modules that an event lies in, its own included: "Net_0/Linear_1". Memoised along the chain of parents.
class Paths {
 public:
  Paths(const Trace& t, const std::vector<EventId>& parent) : trace_(t), parent_(parent) {}
  uint32_t of(EventId e) {
    std::vector<EventId> chain;
    while (e != kNone && known_.find(e) == known_.end() && !trace_.event_name(e).starts_with(kPrefix)) {
      chain.push_back(e);
      e = parent_[e];
    }
    uint32_t path = 0;
    if (e != kNone) {
      auto it = known_.find(e);
      path = it != known_.end() ? it->second : enter(e);
    }
    for (EventId c : chain) known_[c] = path;
    return path;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  uint32_t enter(EventId module) {
    uint32_t outer = parent_[module] == kNone ? 0 : of(parent_[module]);
    std::string name = (outer ? names_[outer] + "/" : "") + std::string(trace_.event_name(module).substr(kPrefix.size()));
    auto [it, fresh] = index_.emplace(name, static_cast<uint32_t>(names_.size()));
    if (fresh) names_.push_back(name);
    return known_[module] = it->second;
  }
  const Trace& trace_;
  const std::vector<EventId>& parent_;
  std::unordered_map<EventId, uint32_t> known_;
  std::map<std::string, uint32_t> index_;
  std::vector<std::string> names_{""};
};

Finding modules(const TraceRequest& r) {
  const Trace& t = r.first();
  std::vector<EventId> parent = parents(t);
  std::map<std::string, Module> by_path;
  bool recorded = false;
  for (uint32_t n = 0; n < t.names() && !recorded; ++n) recorded = t.text(n).starts_with(kPrefix);
  if (recorded) {
    Paths paths(t, parent);
    for (EventId e = 0; e < t.size(); ++e) {
      if (on_gpu(t.kind(e)) || t.duration(e) == 0) continue;
      bool is_module = t.event_name(e).starts_with(kPrefix);
      uint32_t path = paths.of(e);
      if (path == 0) continue;
      if (is_module) {
        Module& m = by_path[paths.names()[path]];
        ++m.calls;
        m.total += t.duration(e);
        m.self += t.duration(e);
        uint32_t outer = parent[e] == kNone ? 0 : paths.of(parent[e]);
        if (outer) by_path[paths.names()[outer]].self -= std::min(t.end(e), t.end(parent[e])) - t.start(e);
      }
    }
    for (const trace::Link& l : t.launches())
      if (uint32_t path = paths.of(l.from)) {
        Module& m = by_path[paths.names()[path]];
        m.gpu_self += t.duration(l.to);
        ++m.kernels;
      }
  } else {
    // Ops carry their module where the trace was recorded with_modules (TorchScript), and in ours.
    std::unordered_map<EventId, std::string> module_of;
    size_t without = 0;
    for (EventId e = 0; e < t.size(); ++e) {
      if (t.kind(e) != Kind::cpu_op || (parent[e] != kNone && t.kind(parent[e]) == Kind::cpu_op)) continue;
      if (module_of.empty() && without > 1000) break;  // none of them does
      std::string path = argument(t, e, "Module Hierarchy");
      if (path.empty()) path = argument(t, e, "module");
      if (path.empty()) {
        ++without;
        continue;
      }
      Module& m = by_path[path];
      ++m.calls;
      m.total += t.duration(e);
      m.self += t.duration(e);
      module_of[e] = path;
    }
    for (const trace::Link& l : t.launches())
      for (EventId e = l.from; e != kNone; e = parent[e])
        if (auto it = module_of.find(e); it != module_of.end()) {
          by_path[it->second].gpu_self += t.duration(l.to);
          ++by_path[it->second].kernels;
          break;
        }
  }
  Finding f;
  if (by_path.empty()) {
    f.ok = false;
    f.sentence = "The trace does not know its modules: record it with with_stack=True and experimental_config=_ExperimentalConfig(verbose=True), or with_modules=True.";
    return f;
  }
  int64_t gpu = 0, cpu = 0;
  for (const auto& [path, m] : by_path) gpu += m.gpu_self, cpu += std::max<int64_t>(0, m.self);
  std::vector<std::pair<std::string, Module>> list(by_path.begin(), by_path.end());
  std::stable_sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return gpu > 0 ? a.second.gpu_self > b.second.gpu_self : a.second.self > b.second.self; });
  const auto& top = list[0];
  f.facts = {{"modules", "modules", Unit::count, static_cast<int64_t>(list.size())}, {"cpu_ns", "CPU time", Unit::nanoseconds, cpu}, {"gpu_ns", "GPU time", Unit::nanoseconds, gpu}};
  f.sentence = gpu > 0 ? fmt::format("{} takes the most of the GPU itself: {} of {}.", top.first, nanoseconds_text(static_cast<double>(top.second.gpu_self)), nanoseconds_text(static_cast<double>(gpu)))
                       : fmt::format("{} takes the most time itself: {} of {}.", top.first, nanoseconds_text(static_cast<double>(top.second.self)), nanoseconds_text(static_cast<double>(cpu)));
  Table table{"modules", {{"module", "MODULE", Unit::text}, {"calls", "CALLS", Unit::count}, {"self_ns", "SELF CPU", Unit::nanoseconds}, {"total_ns", "TOTAL CPU", Unit::nanoseconds},
                          {"gpu_self_ns", "GPU", Unit::nanoseconds}, {"kernels", "KERNELS", Unit::count}}, {}};
  for (const auto& [path, m] : list)
    if (table.rows.size() < r.top) table.rows.push_back({path, m.calls, std::max<int64_t>(0, m.self), m.total, m.gpu_self, m.kernels});
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered = register_trace_analysis({"modules", "time by nn.Module", 1, 1, modules});

}  // namespace
}  // namespace tenon::tracing
