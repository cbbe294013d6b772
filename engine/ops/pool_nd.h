#pragma once
#include "core/tensor.h"

namespace tenon {

/// Windows over 1 to 3 axes; every list has one number an axis, or one for all. stride 0: the window's size.
struct PoolOptions {
  Dims kernel{2}, stride{0}, padding{0}, dilation{1};
  bool ceil_mode = false;         ///< a last window may reach over the end, as long as it begins before it
  bool count_include_pad = true;  ///< of averages: padding counts as elements
  int64_t divisor_override = 0;   ///< of averages: divide by this instead; 0: by the window's size
};
// x [n, c, (d, (h,)) w]; results are in channels-last order.
Tensor avg_pool(const Tensor& x, const PoolOptions& options);
struct MaxPoolResult {
  Tensor y;
  Tensor index;  ///< i64: where in the channel's [d, h, w] each value came from
};
/// Of equal values the first wins, NaN wins over all.
MaxPoolResult max_pool(const Tensor& x, const PoolOptions& options);
/// Values put where max_pool() took them from, in zeros of the spatial sizes `output`; of several for one place the
/// last.
Tensor max_unpool(const Tensor& y, const Tensor& index, const Dims& output);
/// Windows that divide the axes into `output` parts, which may overlap by one; -1 keeps an axis as it is.
Tensor adaptive_avg_pool(const Tensor& x, const Dims& output);
MaxPoolResult adaptive_max_pool(const Tensor& x, const Dims& output);
/// (sum of x^p over the window)^(1/p).
Tensor lp_pool(const Tensor& x, double p, const PoolOptions& options);
/// Windows of `kernel` at random distances, so that [h, w] become `output`: Graham (2014). The draws are a function of
/// (seed, stream, offset), two for every sample and channel.
Tensor fractional_max_pool2d(const Tensor& x, const Dims& kernel, const Dims& output, uint64_t seed, uint64_t stream,
                             uint64_t offset);
/// x / (k + alpha / size * sum of squares over `size` neighbouring channels)^beta. Krizhevsky et al. (2012).
Tensor local_response_norm(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);

}  // namespace tenon
