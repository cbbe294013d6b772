#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"
#include "engine/nn/module.h"
#include "engine/op/op.h"
#include "engine/op/strided_loop.h"
#include "engine/op/value_watch.h"

namespace tenon {

// Note [A step as memory]
// What a training step does between its batch and its gradients is a list of kernels over blocks of memory: which views
// were taken on the way is in the windows through which the kernels look at the blocks. Forward, loss and backward are
// one list; nothing in it remembers how backward found its way. What changes from step to step is told apart from what
// stays by where a block comes from: it is given (the batch, the key of random numbers), has a name (parameters and
// buffers, which keep their place), was made by an op, or is a constant. Whether the constants, the attributes and the
// order of the ops do stay is not assumed but seen: two steps are traced and compared.

/// The kernels of a step and the memory they work on.
struct StepTrace {
  enum class Origin : uint8_t { made, given, named, constant };
  struct Block {
    Origin origin = Origin::made;
    int number = -1;  ///< of what was given, or has a name
    size_t bytes = 0;
    std::string values = {};  ///< of a constant: its bytes before the first op that reads it; empty where `filled` says
    std::optional<uint32_t> filled = {};  ///< of a constant: every four bytes
  };
  /// How an op looks at a block. `block` is -1 where an optional input is absent.
  struct Window {
    int block = -1;
    DType dtype = DType::f32;
    Layout layout = {};
    bool requires_grad = false;
    bool operator==(const Window&) const;
  };
  /// What a loop over elements reads: an input of the step, or one number.
  struct LoopOperand {
    int in = -1;  ///< -1: the number
    float number = 0;
  };
  struct Step {
    const OpDef* op = nullptr;
    std::shared_ptr<void> attrs;
    std::vector<Window> in, out;
    tenon::Origin origin;      ///< seq counts from the beginning of the trace
    uint32_t forward_seq = 0;  ///< so does this; 0: the op is of no gradient
    bool no_grad = false;
    bool again = false;  ///< it ran before in the step: Note [Computed again]
    /// Where the kernel is one loop of f32 over the elements of its result: that loop, and what it reads.
    InnerLoop loop = nullptr;
    std::vector<LoopOperand> operands = {};
  };
  std::vector<Block> blocks;
  std::vector<Step> steps;
  std::vector<Window> results;
  uint32_t last_seq = 0;     ///< ops that were dispatched, views among them
  uint64_t drawn = 0;        ///< counters of random numbers that were used
  std::string why_not = {};  ///< what a list of kernels cannot repeat; empty: nothing

  /// What differs between two steps; empty: nothing does.
  std::string difference(const StepTrace& other) const;
};

/// Watches a step while it is computed. `given` are its inputs and `named` what has a place of its own, both in the
/// order of their numbers. All of it on one device, that of given[0].
class StepTracer : public OpObserver {
 public:
  StepTracer(const std::vector<Tensor>& given, const std::vector<Tensor>& named);
  void before(const Call& call) override;
  void after(const Call& call, int64_t start_ns, int64_t end_ns) override;
  void backward_node(const Node& node) override;

  /// The trace. Its results are `results`, then the gradient of each of `leaves`; an undefined one is no window.
  StepTrace finish(const std::vector<Tensor>& results, const std::vector<Tensor>& leaves);

 private:
  using Window = StepTrace::Window;
  void refuse(std::string why) {
    if (trace_.why_not.empty()) trace_.why_not = std::move(why);
  }
  int find(const Tensor& t) const;
  int add(const Tensor& t, StepTrace::Origin origin, int number);
  void keep_values(StepTrace::Block& b, const Tensor& t);
  Window window(const Tensor& t) const;
  void note_loop(const Call& call, StepTrace::Step& s) const;
  void check_version(const Tensor& t, const Call& call);

  StepTrace trace_;
  ValueWatch values_{
      [this](const Tensor&) { refuse("a value is read on the way, and what follows may depend on it"); }};
  LoopWatch loops_;
  std::unordered_map<uint32_t, int> blocks_;  ///< by the number of their storage
  const uint32_t begin_ = t_state.origin.seq;
  std::vector<uint32_t> versions_;  ///< of the blocks; kWritten: an op has just written it
  std::vector<Tensor> held_;        ///< what was given or has a name
  const Device device_;
  std::unordered_map<const void*, Window> leaves_;
  const OpDef* running_ = nullptr;
};

}  // namespace tenon
