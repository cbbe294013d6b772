#include "engine/optim/weight_average.h"

#include <algorithm>

#include "core/error.h"
#include "core/parallel.h"
#include "core/state.h"
#include "engine/nn/init.h"
#include "engine/ops/dense.h"

namespace tenon::optim {
namespace {

constexpr int64_t kGrain = 32 * 1024;

template <class T>
void towards(int64_t n, T* __restrict to, const T* __restrict from, T share) {
  for (int64_t i = 0; i < n; ++i) to[i] += share * (from[i] - to[i]);
}

}  // namespace

WeightAverage::WeightAverage(std::vector<nn::Named> tensors, double decay)
    : tensors_(std::move(tensors)), decay_(decay) {
  CategoryScope category(Category::optimizer);
  for (const nn::Named& t : tensors_) {
    if (!t.tensor.is_contiguous())
      throw Error("the weights of " + t.name + " cannot be averaged: they are not contiguous");
    averages_.push_back({t.name, empty(t.tensor.size(), t.tensor.dtype())});
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
    ops::float_or_double(from.dtype(), [&](auto one) {
      using T = decltype(one);
      T *t = to.data<T>(), *f = from.data<T>();
      parallel_for(from.numel(), kGrain,
                   [&](int64_t b, int64_t e) { towards(e - b, t + b, f + b, static_cast<T>(share)); });
    });
    ++to.storage()->version;
  }
}

void WeightAverage::swap() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor &a = tensors_[i].tensor, &b = averages_[i].tensor;
    auto *p = static_cast<char*>(a.raw()), *q = static_cast<char*>(b.raw());
    std::swap_ranges(p, p + a.nbytes(), q);
    ++a.storage()->version;
    ++b.storage()->version;
  }
}

}  // namespace tenon::optim
