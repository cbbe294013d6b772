#include "core/state.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "core/error.h"

namespace tenon {

thread_local constinit ThreadState t_state;
std::atomic<uint32_t> process_mode{0};

const char* name(Phase p) {
  static constexpr const char* names[kPhases] = {"none",     "build",     "data",          "forward",
                                                 "backward", "optimizer", "communication", "evaluate"};
  return names[static_cast<int>(p)];
}
const char* name(Category c) {
  static constexpr const char* names[kCategories] = {"other",     "parameter", "gradient",  "activation",
                                                     "optimizer", "buffer",    "workspace", "data"};
  return names[static_cast<int>(c)];
}

static Category usual_category(Phase p) {
  switch (p) {
    case Phase::build:
      return Category::parameter;
    case Phase::data:
      return Category::data;
    case Phase::forward:
    case Phase::evaluate:
      return Category::activation;
    case Phase::backward:
      return Category::gradient;
    case Phase::optimizer:
      return Category::optimizer;
    case Phase::communication:
      return Category::workspace;
    case Phase::none:
      break;
  }
  return Category::other;
}

PhaseScope::PhaseScope(Phase p) : PhaseScope(p, usual_category(p)) {}

uint32_t new_group() {
  static std::atomic<uint32_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

namespace {
struct ModuleTable {
  std::mutex mutex;
  std::deque<std::string> paths{""};  // a deque: references stay valid while it grows
  std::unordered_map<std::string, uint16_t> ids{{"", 0}};
};
ModuleTable& module_table() {
  static auto* t = new ModuleTable;  // leaked: module paths are read by threads that outlive main's statics
  return *t;
}
}  // namespace

uint16_t intern_module(const std::string& path) {
  auto& t = module_table();
  std::lock_guard lock(t.mutex);
  auto [it, fresh] = t.ids.try_emplace(path, static_cast<uint16_t>(t.paths.size()));
  if (fresh) {
    if (t.paths.size() >= 65535) throw Error("more than 65,535 different module paths in one process");
    t.paths.push_back(path);
  }
  return it->second;
}

const std::string& module_path(uint16_t id) {
  auto& t = module_table();
  std::lock_guard lock(t.mutex);
  return t.paths[id < t.paths.size() ? id : 0];
}

}  // namespace tenon
