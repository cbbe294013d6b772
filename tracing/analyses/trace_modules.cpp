// trace modules: time by nn.Module, from recorded module calls or from the hierarchy the ops carry.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tracing/analyses/call_tree.h"
#include "tracing/analyses/trace_analysis.h"

namespace tenon::tracing {
namespace {

using traces::EventId;
using traces::EventKind;
using traces::kNone;
using traces::Trace;

struct Module {
  int64_t calls = 0, total = 0, self = 0, backward = 0, gpu = 0, gpu_backward = 0, kernels = 0;
  EventId longest = kNone;  ///< call
  int64_t all_gpu() const { return gpu + gpu_backward; }
  int64_t all_cpu() const { return std::max<int64_t>(0, self) + backward; }
};

/// Which module every event lies in, as a node of a tree of modules; 0: none.
class ModuleTree {
 public:
  explicit ModuleTree(const Trace& t) : t_(t), parent_(parents(t)), node_(t.size()), modules_(1) {
    const EventNames names(t);
    bool recorded = false;
    for (uint32_t n = 0; n < t.names() && !recorded; ++n) recorded = t.text(n).starts_with(kModulePrefix);
    if (recorded)
      from_calls(names);
    else
      from_arguments();
    if (tree_.nodes().size() == 1) return;
    modules_.resize(tree_.nodes().size());
    time_of_gpu(time_of_backward());
  }
  std::vector<Module> modules_of() && { return std::move(modules_); }
  std::string path(uint32_t node) const { return tree_.path(node); }

 private:
  uint32_t around(EventId e) const { return parent_[e] == kNone ? 0 : node_[parent_[e]]; }
  void enter(EventId e, uint32_t above, std::string_view name, bool is_call = true) {
    node_[e] = tree_.child(above, tree_.name(name), false);
    modules_.resize(tree_.nodes().size());
    Module& m = modules_[node_[e]];
    m.calls += is_call;
    if (m.longest == kNone || t_.duration(e) > t_.duration(m.longest)) m.longest = e;
    m.total += t_.duration(e);
    m.self += t_.duration(e);
    if (uint32_t outer = around(e)) modules_[outer].self -= std::min(t_.end(e), t_.end(parent_[e])) - t_.start(e);
  }
  /// Ours say so of each op, and link the first of those that are one op's gradient.
  void enter_backward(EventId e, std::string_view name) {
    const uint32_t node = tree_.child(0, tree_.name(name), false);
    modules_.resize(tree_.nodes().size());
    modules_[node].backward += t_.duration(e);
  }
  // Lanes follow from the outside in, so whatever is around an event has its module before it.
  void from_calls(const EventNames& names) {
    for (EventId e = 0; e < t_.size(); ++e) {
      node_[e] = around(e);
      if (names.module(e) && t_.duration(e) > 0) enter(e, node_[e], t_.event_name(e).substr(kModulePrefix.size()));
    }
  }
  // Ops carry their module where the trace was recorded with_modules (TorchScript), and in ours.
  void from_arguments() {
    size_t without = 0;
    for (EventId e = 0; e < t_.size(); ++e) {
      node_[e] = around(e);
      if (t_.kind(e) != EventKind::cpu_op || (parent_[e] != kNone && t_.kind(parent_[e]) == EventKind::cpu_op))
        continue;
      if (tree_.nodes().size() == 1 && without > 1000) break;  // none of them does
      std::string path, other, phase;
      for (auto& [key, value] : arguments(t_, e)) {
        if (key == "Module Hierarchy")
          path = std::move(value);
        else if (key == "module")
          other = std::move(value);
        else if (key == "phase")
          phase = std::move(value);
      }
      if (path.empty()) path = std::move(other);
      if (path.empty())
        ++without;
      else if (phase == "backward")
        enter_backward(e, path);
      else
        enter(e, 0, path, phase != "optimizer");
    }
  }
  /// For every event the module whose backward it is part of.
  std::vector<uint32_t> time_of_backward() {
    if (t_.forward_backward().empty() || recorded_by_tenon(t_)) return {};
    std::vector<traces::Link> links(t_.forward_backward().begin(), t_.forward_backward().end());
    std::sort(links.begin(), links.end(),
              [](const auto& a, const auto& b) { return std::pair(a.to, a.from) < std::pair(b.to, b.from); });
    std::vector<uint32_t> of(t_.size());
    auto link = links.begin();
    for (EventId e = 0; e < t_.size(); ++e) {
      const uint32_t outer = parent_[e] == kNone ? 0 : of[parent_[e]];
      of[e] = outer;
      for (; link != links.end() && link->to <= e; ++link)
        if (link->to == e) of[e] = node_[link->from];
      if (of[e] && !outer) modules_[of[e]].backward += t_.duration(e);
    }
    return of;
  }
  void time_of_gpu(const std::vector<uint32_t>& backward) {
    for (const traces::Link& l : t_.launches()) {
      const uint32_t forward = node_[l.from], back = backward.empty() ? 0 : backward[l.from];
      if (!forward && !back) continue;
      Module& m = modules_[back ? back : forward];
      (back ? m.gpu_backward : m.gpu) += t_.duration(l.to);
      ++m.kernels;
    }
  }

  const Trace& t_;
  const std::vector<EventId> parent_;
  CallTree tree_;
  std::vector<uint32_t> node_;
  std::vector<Module> modules_;
};

Finding modules(const TraceRequest& r) {
  const Trace& t = r.first();
  ModuleTree tree(t);
  const std::vector<Module> all = std::move(tree).modules_of();
  Finding f;
  if (all.size() == 1)
    return nothing(
        "The trace does not know its modules: record it with with_stack=True and "
        "experimental_config=_ExperimentalConfig(verbose=True); for TorchScript, with_modules=True.");
  int64_t gpu = 0, cpu = 0;
  for (const Module& m : all) gpu += m.all_gpu(), cpu += m.all_cpu();
  std::vector<uint32_t> order(all.size() - 1);
  std::iota(order.begin(), order.end(), 1u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return gpu > 0 ? all[a].all_gpu() > all[b].all_gpu() : all[a].all_cpu() > all[b].all_cpu();
  });
  const Module& top = all[order[0]];
  const int64_t most = gpu > 0 ? top.all_gpu() : top.all_cpu(), whole = gpu > 0 ? gpu : cpu,
                back = gpu > 0 ? top.gpu_backward : top.backward;
  f.facts = {{"module_count", "modules", Unit::count, static_cast<int64_t>(order.size())},
             {"cpu_ns", "CPU time", Unit::nanoseconds, cpu},
             {"gpu_ns", "GPU time", Unit::nanoseconds, gpu}};
  f.sentence = fmt::format(
      "{} itself takes the most {}: {} of {} in all modules{}.", tree.path(order[0]), gpu > 0 ? "of the GPU" : "time",
      nanoseconds_text(static_cast<double>(most)), nanoseconds_text(static_cast<double>(whole)),
      back > 0 ? fmt::format(", {} of it in backward", nanoseconds_text(static_cast<double>(back))) : "");
  Table table{"modules",
              {{"module", "MODULE", Unit::text},
               {"calls", "CALLS", Unit::count},
               {"self_ns", "SELF CPU", Unit::nanoseconds},
               {"total_ns", "TOTAL CPU", Unit::nanoseconds},
               {"backward_ns", "BACKWARD CPU", Unit::nanoseconds},
               {"gpu_self_ns", "GPU", Unit::nanoseconds},
               {"gpu_backward_ns", "BACKWARD GPU", Unit::nanoseconds},
               {"kernels", "KERNELS", Unit::count}},
              {}};
  for (uint32_t n : order) {
    if (table.rows.size() >= r.top) break;
    const Module& m = all[n];
    table.add(
        {tree.path(n), m.calls, std::max<int64_t>(0, m.self), m.total, m.backward, m.gpu, m.gpu_backward, m.kernels},
        m.longest == kNone ? Sight() : Sight::of(m.longest));
  }
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered_trace_modules = register_trace_analysis({"modules", "time by nn.Module", 1, 1, modules});

}  // namespace
}  // namespace tenon::tracing
