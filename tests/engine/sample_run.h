#pragma once
#include <cmath>
#include <vector>

#include "core/backend.h"
#include "engine/autograd/autograd.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon {

/// What a sample of an op comes to on some device.
struct SampleRun {
  std::vector<Tensor> out, gradients, inputs;  ///< inputs after the call: some ops write them
};

/// Another number for each element: of a constant one some gradients are nothing but rounding.
inline Tensor given_gradient(const Tensor& like) {
  Tensor t = empty(like.size(), DType::f64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = std::sin(1.7 * static_cast<double>(i) + 0.4);
  return to_device(cast(t, like.dtype()), like.device());
}

/// Forward, and the gradients of all inputs that have one; `composite`: by ops that have gradients themselves.
inline SampleRun run_sample(const OpDef& op, const Sample& s, Device d, bool composite = false) {
  SampleRun r;
  std::vector<Tensor> in, leaves, roots, given;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    Tensor t = s.inputs[i].defined() ? to_device(clone(s.inputs[i]), d) : Tensor();
    if (t.defined() && s.differentiable[i] && op.backward && is_floating(t.dtype())) {
      set_requires_grad(t);
      leaves.push_back(t);
    }
    in.push_back(t);
  }
  r.out.resize(static_cast<size_t>(op.info.outputs));
  dispatch(op, s.attrs.get(), in.data(), static_cast<int>(in.size()), r.out.data());
  for (const Tensor& o : r.out)
    if (o.requires_grad()) {
      roots.push_back(o);
      given.push_back(given_gradient(o));
    }
  BackwardOptions options;
  options.create_graph = composite;
  if (!leaves.empty() && !roots.empty()) r.gradients = grad(roots, leaves, given, options, true);
  for (const Tensor& t : in) r.inputs.push_back(t.defined() ? detach(t) : t);
  return r;
}

}  // namespace tenon
