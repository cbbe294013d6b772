#include "engine/optim/weight_average.h"

#include <algorithm>

#include "core/error.h"
#include "core/parallel.h"
#include "core/state.h"
#include "engine/nn/init.h"
#include "engine/op/op.h"
#include "engine/ops/dense.h"

namespace tenon::optim {
namespace {

constexpr int64_t kGrain = 32 * 1024;

template <class T>
void towards(int64_t n, T* __restrict to, const T* __restrict from, T share) {
  for (int64_t i = 0; i < n; ++i) to[i] += share * (from[i] - to[i]);
}

/// In place on input 0, which goes a share of the way to input 1.
struct MoveTowards {
  static constexpr OpInfo info{"move_towards", "", OpKind::other};
  struct Attrs {
    double share;
    template <class F>
    void fields(F&& f) const {
      f("share", share);
    }
  };
  static Meta infer(const Attrs&, const Meta& to, const Meta&) { return to; }
  static void cpu(const Call& c) {
    ops::float_or_double(c.out[0].dtype(), [&](auto one) {
      using T = decltype(one);
      T *to = c.out[0].data<T>(), *from = c.in[1].data<T>();
      const T share = static_cast<T>(c.as<Attrs>().share);
      parallel_for(c.out[0].numel(), kGrain, [&](int64_t b, int64_t e) { towards(e - b, to + b, from + b, share); });
    });
  }
};
const Register<MoveTowards> move_towards_op;

}  // namespace

WeightAverage::WeightAverage(std::vector<nn::Named> tensors, double decay)
    : tensors_(std::move(tensors)), decay_(decay) {
  CategoryScope category(Category::optimizer);
  for (const nn::Named& t : tensors_) {
    if (!t.tensor.is_contiguous())
      throw Error("the weights of " + t.name + " cannot be averaged: they are not contiguous");
    averages_.push_back({t.name, empty(t.tensor.size(), t.tensor.dtype(), t.tensor.device())});
    copy_(averages_.back().tensor, t.tensor);
  }
}

void WeightAverage::update() {
  NoGrad no_grad;
  double share = updates_ == 0 ? 1 : decay_ < 0 ? 1 / static_cast<double>(updates_ + 1) : 1 - decay_;
  ++updates_;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor &from = tensors_[i].tensor, &to = averages_[i].tensor;
    if (share == 1 || (from.dtype() != DType::f32 && from.dtype() != DType::f64)) {
      copy_(to, from);
      continue;
    }
    const Tensor in[] = {to, from};
    const MoveTowards::Attrs attrs{share};
    Tensor out = to;
    run_kernel(Register<MoveTowards>::def(), &attrs, in, 2, &out);
    to.storage()->changed();
  }
}

void WeightAverage::swap() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor &a = tensors_[i].tensor, &b = averages_[i].tensor;
    const Tensor held = empty(a.size(), a.dtype(), a.device());
    copy_(held, a);
    copy_(a, b);
    copy_(b, held);
  }
}

}  // namespace tenon::optim
