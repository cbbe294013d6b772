#pragma once
#include <functional>
#include <vector>

#include "core/tensor.h"

// Derivatives of functions, made of grad(). Inputs need not require a gradient: they are taken as fresh leaves. The
// results have no history.
namespace tenon {

using ScalarFunction = std::function<Tensor(const std::vector<Tensor>&)>;  ///< a result of one element

/// v^T J of f at the inputs: one tensor an input; f's result has the size of v.
std::vector<Tensor> vjp(const ScalarFunction& f, const std::vector<Tensor>& inputs, const Tensor& v);
/// J v by two backward passes (the gradient of v^T J is linear in v): of the size of f's result.
Tensor jvp(const ScalarFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& vectors);
/// The matrix of all first derivatives: size [result..., input...]. One backward an element of the result.
Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);
/// H v of a scalar f (Pearlmutter 1994, by two backward passes), one tensor an input.
std::vector<Tensor> hessian_vector_product(const ScalarFunction& f, const std::vector<Tensor>& inputs,
                                           const std::vector<Tensor>& vectors);
/// All second derivatives of a scalar f: size [x..., x...].
Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);
/// The gradient of every sample's loss: for each parameter a tensor of size [samples, parameter...]. loss(i) is the
/// loss of sample i, made of the parameters themselves.
std::vector<Tensor> per_sample_gradients(const std::function<Tensor(int64_t sample)>& loss, int64_t samples,
                                         const std::vector<Tensor>& parameters);

}  // namespace tenon
