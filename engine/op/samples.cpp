#include "engine/op/samples.h"

#include "core/random.h"

namespace tenon {

Tensor Samples::values(const Shape& size, const Domain& d, DType dtype) {
  Tensor t = empty(size, dtype);
  Philox random{7, 11};
  for (int64_t i = 0; i < t.numel(); ++i) {
    double v = d.lo + (d.hi - d.lo) * random.uniform_double(drawn_++);
    if (d.away_from_zero > 0 && (v < 0 ? -v : v) < d.away_from_zero)
      v = v < 0 ? v - d.away_from_zero : v + d.away_from_zero;
    switch (dtype) {
      case DType::f32:
        t.data<float>()[i] = static_cast<float>(v);
        break;
      case DType::i64:
        t.data<int64_t>()[i] = static_cast<int64_t>(v);
        break;
      case DType::i32:
        t.data<int32_t>()[i] = static_cast<int32_t>(v);
        break;
      case DType::boolean:
        t.data<bool>()[i] = v > (d.lo + d.hi) / 2;
        break;
      default:
        t.data<double>()[i] = v;
    }
  }
  return t;
}

Tensor Samples::indices(const Shape& size, int64_t below) {
  Tensor t = empty(size, DType::i64);
  Philox random{7, 12};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<int64_t>()[i] = static_cast<int64_t>(random.below(drawn_++, static_cast<uint64_t>(below)));
  return t;
}

void Samples::push(std::string name, std::shared_ptr<void> attrs, std::vector<Tensor> inputs,
                   std::vector<bool> differentiable) {
  if (differentiable.empty())
    for (const Tensor& t : inputs) differentiable.push_back(t.defined() && is_floating(t.dtype()));
  all_.push_back({std::move(name), std::move(inputs), std::move(attrs), std::move(differentiable)});
}

}  // namespace tenon
