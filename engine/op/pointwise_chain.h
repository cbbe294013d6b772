#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/op/op.h"
#include "engine/op/tile_loop.h"

namespace tenon {

/// Pointwise ops of f32, one behind the other, put together by hand: Note [Tile by tile].
class PointwiseChain {
 public:
  /// What a step reads and makes: the chain's own value (kValue), or what one of its functions returned.
  using Operand = int;
  static constexpr Operand kValue = 0;

  /// One number for every element.
  Operand number(float v);
  /// Numbers that repeat: element i has the i % size-th.
  Operand repeated(const float* values, int64_t size);
  /// The k-th of the arrays that run() is given, as long as the value.
  Operand beside();
  /// A step. `op` has a quick loop of one or two operands.
  Operand step(const OpDef& op, const std::vector<Operand>& operands);

  static constexpr int kMostSteps = kMostTiles;
  bool empty() const { return steps_.empty(); }
  int64_t arrays() const { return arrays_; }
  /// The result of the last step, from n elements of the value that begin at its at-th. `y` may be `x`; `beside` are
  /// the arrays from their first element on.
  void run(const float* x, float* y, const float* const* beside, int64_t at, int64_t n) const;

 private:
  enum class Kind : uint8_t { value, number, repeated, beside, made };
  struct Source {
    Kind kind = Kind::value;
    int slot = -1;  ///< of made: which tile; of beside: which array
    float one = 0;
    int64_t period = 0;
    std::vector<float> values = {};  ///< of repeated: as many as a tile may want from any place of the period
  };
  struct Step {
    InnerLoop loop;
    std::vector<Operand> operands;
    Operand made;
  };

  std::vector<Source> sources_{Source{}};
  std::vector<Step> steps_;
  int64_t arrays_ = 0;
};

}  // namespace tenon
