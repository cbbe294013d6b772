#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/state.h"
#include "core/tensor.h"
#include "tracing/record/own_trace.h"

namespace tenon::tracing {

/// One op with what it read and wrote, as indices into StepRecord::tensors.
struct OpRecord {
  uint32_t seq = 0;
  std::string name;   ///< "conv2d"
  std::string attrs;  ///< "stride=[1, 1] padding=[1, 1]", empty where it has none
  Origin origin;
  uint32_t forward_seq = 0;  ///< for an op of the backward pass: the forward op whose gradient this is; 0 otherwise
  std::vector<int> inputs, outputs;
  double flops = 0, bytes = 0;
  int64_t start_ns = 0, duration_ns = 0;
};

/// What a tensor held between two ops that wrote it.
struct TensorVersion {
  uint32_t from = 0;  ///< the op that wrote it; 0: it was there before the first
  Tensor value;       ///< undefined where there was no room for it
};

/// One tensor that a step made or read. `value` keeps the numbers where they still exist unchanged.
struct TensorRecord {
  std::string name;  ///< "features.0.weight", "grad of features.0.weight", "conv2d #12 output 0"
  Tensor value;      ///< undefined where not kept
  DType dtype = DType::f32;
  Layout layout;
  uint32_t storage = 0;   ///< same number, same memory: aliases
  uint32_t version = 0;   ///< in-place writes seen when it was recorded
  uint32_t producer = 0;  ///< seq of the op that made it; 0 for inputs and parameters
  Category category = Category::other;
  /// In the order in which they came; empty where nothing wrote over it (Note [Values as of an op]).
  std::vector<TensorVersion> versions = {};
};

/// One node of the autograd graph of the step.
struct GradNode {
  struct Edge {
    int node = -1;
    int slot = 0;
  };                         ///< node: index into StepRecord::grad_nodes
  std::string name;          ///< "conv2d backward", or the parameter's name for a leaf
  uint32_t forward_seq = 0;  ///< op that recorded it; 0 for leaves
  uint16_t module = 0;
  bool leaf = false;
  int64_t saved_bytes = 0;
  double grad_norm = -1;   ///< of the gradient that reached it; -1 where none did
  std::vector<Edge> next;  ///< where its gradients go
};

/// One change of the memory pool.
struct AllocEvent {
  int64_t time_ns = 0;
  uint64_t address = 0;
  int64_t bytes = 0;   ///< positive: taken, negative: given back
  uint32_t block = 0;  ///< the same number in both events of one block
  Origin origin;       ///< of the op that asked for it
  uint16_t op = 0;     ///< interned_name() of that op, 0 where it was none
};

/// Where a value first stopped being finite.
struct NanOrigin {
  int64_t step = 0;
  uint32_t seq =
      0;  ///< the op; index + 1 into StepRecord::ops of the replayed step; 0: the value was in the data or a parameter
  std::string op, module, phase;
  Dims index;                  ///< element of its output
  double value = 0;            ///< nan, inf or -inf
  int64_t bad = 0, total = 0;  ///< non-finite elements of that output, elements in all
  struct Operand {
    std::string name;  ///< of the tensor
    std::string type;  ///< "f32 [64, 10]"
    Dims index;        ///< of the element that went into the bad one
    double value = 0;
    double min = 0, max = 0, mean = 0;  ///< over the finite values of the whole tensor
    int64_t bad = 0;                    ///< non-finite elements in it
  };
  std::vector<Operand> operands;
  int64_t sample = -1;           ///< row of the data set that carried it; -1 where none does
  std::string source;            ///< where that sample comes from: "x.npy, row 120"; empty where it was generated
  std::vector<uint32_t> spread;  ///< seqs of the ops whose output became non-finite afterwards, in order
  std::string sentence;          ///< the whole in words
};

/// Everything seen in one step of a run that was replayed (or recorded) with its instruments on.
/// Immutable once made; every view of a step draws from it and links through the op sequence numbers.
struct StepRecord {
  std::string run;
  int64_t step = 0;
  int64_t sample = -1;  ///< the row of the test split whose forward and backward this is; -1: a step of training
  int64_t epoch = 0;
  double loss = 0;
  int64_t duration_ns = 0;
  OwnTrace timeline;          ///< times count from the start of the step
  std::vector<OpRecord> ops;  ///< ops[i].seq == i + 1
  std::vector<TensorRecord> tensors;
  std::vector<GradNode> grad_nodes;
  std::vector<AllocEvent> allocs;  ///< sorted by time; what was alive at the start comes first, at time 0
  std::vector<int64_t> samples;    ///< rows of the data set in this batch
  /// Where each of them comes from, as data::Source::text(): "x.npy, row 120".
  std::vector<std::string> sources;
  std::shared_ptr<const NanOrigin> nan;
};

}  // namespace tenon::tracing
