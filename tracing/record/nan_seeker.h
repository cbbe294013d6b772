#pragma once
#include <memory>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/op/op.h"
#include "tracing/record/step_record.h"

namespace tenon::tracing {

/// Looks at the outputs of every op of a step and keeps where values first stopped being finite: the op itself, not
/// those that only pass it on. Tensors that were bad before any op ran (the batch, a parameter) count as the origin,
/// with op number 0.
class NanSeeker {
 public:
  /// `samples` is where the rows of the batch come from; `split` names it in sentences ("training set").
  NanSeeker(const data::Dataset& samples, const char* split) : samples_(samples), split_(split) {}
  /// A tensor the step starts from. `rows`: the data-set row of each index of its first axis, empty for parameters.
  void given(const std::string& name, const Tensor& t, const std::vector<int64_t>& rows);
  /// After each op; `names` are those of the inputs.
  void after(const Call& call, const Origin& op, const std::vector<std::string>& names,
             const std::vector<int64_t>& batch_rows);
  /// Null where everything was finite.
  std::shared_ptr<NanOrigin> result(int64_t step) const;

 private:
  /// The sample that a value came with.
  void blame(NanOrigin& origin, int64_t row) const;
  std::string sentence(const NanOrigin& origin) const;

  const data::Dataset& samples_;
  const char* split_;
  std::shared_ptr<NanOrigin> origin_;
};

}  // namespace tenon::tracing
