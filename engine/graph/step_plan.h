#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/kernel_chains.h"
#include "engine/graph/step_trace.h"

namespace tenon {

/// What a plan is made of, for people.
struct StepPlanFigures {
  int64_t kernels = 0;      ///< that run in a step
  int64_t again = 0;        ///< of them those that compute a value another time: Note [Computed again]
  int64_t views = 0;        ///< ops that only look at memory in another way: nothing is done for them
  int64_t chained = 0;      ///< kernels that run tile by tile with their neighbours
  int64_t chains = 0;       ///< that they make up
  int64_t arena_bytes = 0;  ///< that a step's values share
  int64_t value_bytes = 0;  ///< that they would take one beside the other
};

/// A kernel of a plan, for people.
struct StepPlanRow {
  uint32_t seq = 0;  ///< of its op within forward and backward
  const char* op = "";
  std::string module, results;  ///< "f32 [64, 10]"
  Phase phase = Phase::none;
  int64_t bytes = 0;     ///< of its results
  int64_t offset = -1;   ///< of the first in the arena; -1: it lies elsewhere
  int last = -1;         ///< index of the last kernel that needs the first; the number of kernels: it stays
  bool again = false;    ///< the op's kernel ran before, and what it gave was not kept
  bool tile = false;     ///< the first lies in a tile of the chain: it takes no memory
  int chain = -1;        ///< kernels of one number run tile by tile together; -1: alone
  std::string why = {};  ///< why it is not in the chain of the kernel before it; empty: it is, or nothing is to say
};

/// A traced step, ready to be done again on other values: its kernels called one after the other, with their memory
/// laid out in one arena by how long each block is needed. Nothing is inferred, recorded or allocated on the way but
/// what the step leaves behind. The bits are those of the ops: the kernels are theirs.
class StepPlan {
 public:
  enum class Keep : uint8_t { all, costly };  ///< costly: what is cheap is computed again, Note [Computed again]
  /// `named` as the tracer was given it; they are held. The trace can be repeated: `why_not` is empty. `device`: where
  /// the step computes.
  StepPlan(StepTrace trace, std::vector<Tensor> named, Keep keep = Keep::all, Device device = {});
  ~StepPlan();
  StepPlan(const StepPlan&) = delete;

  /// `given` as the tracer was given it, of the same layouts. One tensor for each result of the trace, undefined where
  /// it has none; each is the caller's alone. The thread's count of ops and of random numbers is afterwards what it
  /// would be. Throws what the kernels throw.
  std::vector<Tensor> run(const std::vector<Tensor>& given);

  // What run() does, for PlanReplay:
  /// What one run works in, and leaves behind.
  struct Memory {
    Ref<Storage> arena;
    std::vector<Tensor> results;
  };
  Memory take_memory() const;
  /// Calls the kernels. The thread's counts stay as they are.
  void queue(const std::vector<Tensor>& given, const Memory& memory);
  /// Brings the thread's counts to where they are after a step and, with `writes`, tells the tensors with a name that
  /// the kernels write them: queue() has told them of its own.
  void count(bool writes);

  /// Whether these are still the tensors that the plan works on; `named` as the constructor got them.
  bool holds(const std::vector<const Tensor*>& named) const;
  /// Whether it reads what was given under this number.
  bool reads(int given) const;
  Device device() const { return device_; }
  const StepTrace& trace() const { return trace_; }
  const StepPlanFigures& figures() const { return figures_; }
  std::vector<StepPlanRow> rows() const;  ///< in the order in which they run

 private:
  struct Place;
  struct Planned;
  void find_lives();
  void keep_in_tiles();
  void widen_lives();
  void lay_out();
  void make_windows();
  void bind(const std::vector<Tensor>& given, const char* arena);
  void run_step(size_t i, uint32_t begin);
  void run_tiles(size_t first);
  void share(size_t at);
  bool take_over(size_t at, const StepTrace::Window& from);
  int root(int block) const;
  Tensor look(const StepTrace::Window& w);

  struct Bound {
    Storage* storage;
    int64_t at;  ///< of what was given its number, of the arena the offset
  };
  StepTrace trace_;
  KernelChains chains_;  ///< Note [Kernels tile by tile]
  std::vector<Tensor> named_;
  const Device device_;
  std::vector<Place> places_;     ///< of the blocks
  std::vector<Planned> planned_;  ///< one a step
  std::vector<Bound> given_, in_arena_;
  StepPlanFigures figures_;
  const char* base_ = nullptr;  ///< where the arena lay when the addresses in it were last worked out
};

}  // namespace tenon
