#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace tenon {

/// What part of a training step the current thread is in.
enum class Phase : uint8_t { none, build, data, forward, backward, optimizer, communication, evaluate };
inline constexpr int kPhases = 8;
const char* name(Phase p);

/// What a block of memory is for.
enum class Category : uint8_t { other, parameter, gradient, activation, optimizer, buffer, workspace, data };
inline constexpr int kCategories = 8;
const char* name(Category c);

/// Who is acting: the attribution every node, allocation and event carries.
struct Origin {
  uint32_t seq = 0;     ///< number of the op within its step; ops count from 1
  uint16_t module = 0;  ///< id of the module path, see intern_module(); 0 is the root
  Phase phase = Phase::none;
  Category category = Category::other;
};
static_assert(sizeof(Origin) == 8);

/// Everything unusual is a bit of one word: (thread word | process word) == 0 is the fast path.
namespace mode {
enum : uint32_t {
  no_grad = 1u << 0,    ///< results record no gradient
  observe = 1u << 1,    ///< an OpObserver sees every op (tracer, step recorder, NaN origin)
  profile = 1u << 2,    ///< op timeline
  memory = 1u << 3,     ///< memory history
  autocast = 1u << 4,   ///< ops get their inputs in the type that their policy asks for, see engine/op/autocast.h
  interrupt = 1u << 5,  ///< someone wants the thread to stop at the next op (pause, breakpoint, cancel)
  inference = 1u << 6,  ///< no gradients, and what is made can never become part of a graph
};
}

struct ThreadState {
  uint32_t mode = 0;
  uint32_t group = 0;   ///< the training session this thread works for; instruments record one and leave others alone
  uint16_t op = 0;      ///< interned_name() of the op last dispatched: who a block of memory was taken for
  uint16_t stream = 0;  ///< index of the stream that this thread's ops go to, see StreamScope of core/backend.h
  Origin origin;
};
extern thread_local constinit ThreadState t_state;
extern std::atomic<uint32_t> process_mode;
inline uint32_t mode_word() { return t_state.mode | process_mode.load(std::memory_order_relaxed); }

inline bool grad_enabled() { return !(mode_word() & mode::no_grad); }

/// Sets bits of the thread word for a scope.
class ModeGuard {
 public:
  explicit ModeGuard(uint32_t set, uint32_t clear = 0) : saved_(t_state.mode) {
    t_state.mode = (saved_ & ~clear) | set;
  }
  ~ModeGuard() { t_state.mode = saved_; }
  ModeGuard(const ModeGuard&) = delete;

 private:
  uint32_t saved_;
};
struct NoGrad : ModeGuard {
  NoGrad() : ModeGuard(mode::no_grad) {}
};
/// Like NoGrad, and marks every result: using one where a gradient would need it later is an error.
struct InferenceMode : ModeGuard {
  InferenceMode() : ModeGuard(mode::no_grad | mode::inference) {}
};
struct EnableGrad : ModeGuard {
  EnableGrad() : ModeGuard(0, mode::no_grad) {}
};

/// Sets the phase (and the category its allocations get) for a scope.
class PhaseScope {
 public:
  PhaseScope(Phase p, Category c) : saved_(t_state.origin) {
    t_state.origin.phase = p;
    t_state.origin.category = c;
  }
  explicit PhaseScope(Phase p);  ///< with the phase's usual category
  ~PhaseScope() {
    t_state.origin.phase = saved_.phase;
    t_state.origin.category = saved_.category;
  }
  PhaseScope(const PhaseScope&) = delete;

 private:
  Origin saved_;
};

class CategoryScope {
 public:
  explicit CategoryScope(Category c) : saved_(t_state.origin.category) { t_state.origin.category = c; }
  ~CategoryScope() { t_state.origin.category = saved_; }
  CategoryScope(const CategoryScope&) = delete;

 private:
  Category saved_;
};

class ModuleScope {
 public:
  explicit ModuleScope(uint16_t id) : saved_(t_state.origin.module) { t_state.origin.module = id; }
  ~ModuleScope() { t_state.origin.module = saved_; }
  ModuleScope(const ModuleScope&) = delete;

 private:
  uint16_t saved_;
};

/// A number for a group of threads, never given twice.
uint32_t new_group();

class GroupScope {
 public:
  explicit GroupScope(uint32_t group) : saved_(t_state.group) { t_state.group = group; }
  ~GroupScope() { t_state.group = saved_; }
  GroupScope(const GroupScope&) = delete;

 private:
  uint32_t saved_;
};

/// The id of a module path ("features.3"); the same path has the same id for the life of the process.
uint16_t intern_module(const std::string& path);
const std::string& module_path(uint16_t id);

}  // namespace tenon
