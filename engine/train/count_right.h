#pragma once
#include "core/tensor.h"

namespace tenon {

/// How many answers the scores get right (is_best_class() of engine/train/metric.h). The scores of one answer lie along
/// `axis` and answers are i64; axis -1: there is one score for each, of which above `yes` says yes, and answers are
/// floating, of which above 0.5 are yes. Written into `out`, without axes and of f64, on their common device; no op is
/// recorded.
void count_right(const Tensor& scores, const Tensor& answers, int axis, double yes, Tensor& out);
/// The same of tensors on the CPU, without memory for the result.
int64_t count_right(const Tensor& scores, const Tensor& answers, int axis, double yes);
/// Whether there is such a count for scores of this type.
bool counts_right(DType scores);

}  // namespace tenon
