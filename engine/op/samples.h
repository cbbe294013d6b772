#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "engine/op/op.h"

namespace tenon {

/// Where the values of a sample may lie so that the op is smooth there (finite differences hold).
struct Domain {
  double lo = -1, hi = 1;
  double away_from_zero = 0;  ///< |value| is at least this
};
inline Domain in(double lo, double hi) { return {lo, hi, 0}; }
inline Domain apart_from_zero(double lo, double hi, double gap) { return {lo, hi, gap}; }

/// One set of inputs for the registry tests.
struct Sample {
  std::string name;
  std::vector<Tensor> inputs;        ///< absent optional inputs are undefined
  std::shared_ptr<void> attrs;       ///< the op's Attrs
  std::vector<bool> differentiable;  ///< an input: finite differences apply to it
};

/// Collects an op's samples: values come from a fixed random stream, in f64 (or integers where asked for).
class Samples {
 public:
  /// A tensor of random values of the domain.
  Tensor values(const Shape& size, const Domain& d = {}, DType dtype = DType::f64);
  /// Integers in [0, below).
  Tensor indices(const Shape& size, int64_t below);

  template <class A>
  void add(std::string name, const A& attrs, std::vector<Tensor> inputs, std::vector<bool> differentiable = {}) {
    push(std::move(name), std::make_shared<A>(attrs), std::move(inputs), std::move(differentiable));
  }
  const std::vector<Sample>& all() const { return all_; }

 private:
  void push(std::string name, std::shared_ptr<void> attrs, std::vector<Tensor> inputs,
            std::vector<bool> differentiable);
  std::vector<Sample> all_;
  uint64_t drawn_ = 0;
};

}  // namespace tenon
