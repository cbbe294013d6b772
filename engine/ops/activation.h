#pragma once
#include "core/tensor.h"
#include "engine/ops/draws.h"

// Activations beyond those of pointwise.h, element by element. Names and defaults are PyTorch's (torch.nn.functional);
// where a formula has a corner, the gradient there is PyTorch's too.
namespace tenon {

Tensor mish(const Tensor& x);                    ///< x tanh(softplus(x)), Misra (2019)
Tensor selu(const Tensor& x);                    ///< Klambauer et al. (2017)
Tensor relu6(const Tensor& x);                   ///< min(max(x, 0), 6)
Tensor hardswish(const Tensor& x);               ///< x relu6(x + 3) / 6, Howard et al. (2019)
Tensor softsign(const Tensor& x);                ///< x / (1 + |x|)
Tensor tanhshrink(const Tensor& x);              ///< x - tanh(x)
Tensor logsigmoid(const Tensor& x);              ///< -softplus(-x)
Tensor elu(const Tensor& x, double alpha = 1);   ///< x, or alpha (exp(x) - 1) below 0
Tensor celu(const Tensor& x, double alpha = 1);  ///< x, or alpha (exp(x / alpha) - 1) below 0
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
Tensor hardsigmoid(const Tensor& x, double alpha = 1.0 / 6, double beta = 0.5);  ///< alpha x + beta within [0, 1]
Tensor hardtanh(const Tensor& x, double min_val = -1, double max_val = 1);
Tensor softplus(const Tensor& x, double beta,
                double threshold = 20);  ///< log(1 + exp(beta x)) / beta; x itself where beta x > threshold
Tensor softshrink(const Tensor& x, double lambd = 0.5);  ///< x moved towards 0 by lambd, 0 where |x| <= lambd
Tensor hardshrink(const Tensor& x, double lambd = 0.5);  ///< x, 0 where |x| <= lambd
Tensor threshold(const Tensor& x, double threshold,
                 double value);  ///< x where it is above the threshold, else the value

/// x where it is positive, else weight * x; weight [channels of axis 1], or one number for all.
Tensor prelu(const Tensor& x, const Tensor& weight);
/// The first half along the axis times the sigmoid of the second. Dauphin et al. (2017).
Tensor glu(const Tensor& x, int axis = -1);
/// softmax(-x).
Tensor softmin(const Tensor& x, int axis = -1);
/// Negative values times a random slope in [lower, upper]. Xu et al. (2015).
Tensor rrelu(const Tensor& x, double lower, double upper, const Draws& draws);

}  // namespace tenon
