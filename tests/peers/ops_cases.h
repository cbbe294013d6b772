#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tenon::peers {

/// One expression in PyTorch and in Tenon on the same f64 (or i64, bool) inputs.
struct OpCase {
  std::string torch;  ///< a Python expression on x[0], x[1], ...
  std::vector<Tensor> inputs;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> ours;
  bool gradient = true;  ///< compare gradients with respect to every f64 input
  double tolerance = 1e-9;
};

/// Random values; every call gives others.
class Draw {
 public:
  explicit Draw(uint64_t stream) : stream_(stream) {}
  int64_t below(int64_t n);
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }
  double normal();
  bool coin() { return below(2) == 1; }
  Tensor values(const Shape& size);
  /// All different, apart by 0.1 at least.
  Tensor distinct(const Shape& size);
  /// i64 in [lo, hi].
  Tensor integers(const Shape& size, int64_t lo, int64_t hi);
  /// Few different f64 values, so that there are ties.
  Tensor ties(const Shape& size);
  Tensor mask(const Shape& size);
  Shape shape(int axes, int64_t lo = 1, int64_t hi = 4);

 private:
  uint64_t stream_, at_ = 0;
};

void index_cases(std::vector<OpCase>& to, Draw d);
void order_cases(std::vector<OpCase>& to, Draw d);
void linear_cases(std::vector<OpCase>& to, Draw d);

}  // namespace tenon::peers
