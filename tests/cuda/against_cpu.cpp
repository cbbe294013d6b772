#include "tests/cuda/against_cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/backend.h"
#include "engine/autograd/autograd.h"
#include "engine/op/cuda_device.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "tests/cuda/emulated.h"

namespace tenon::emulated {

Tensor scattered(const Shape& size, double phase, DType dtype) {
  Tensor t = empty(size, DType::f64);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double far = std::sin(12.9898 * static_cast<double>(i) + phase) * 43758.5453;
    t.data<double>()[i] = 2 * (far - std::floor(far)) - 1;
  }
  return cast(t, dtype);
}

namespace {
/// The result, then the gradients of all inputs.
std::vector<Tensor> all_of(const Function& f, const std::vector<Tensor>& inputs, Device d) {
  std::vector<Tensor> leaves;
  for (const Tensor& t : inputs) {
    Tensor leaf = to_device(clone(t), d);
    set_requires_grad(leaf);
    leaves.push_back(leaf);
  }
  const Tensor y = f(leaves);
  std::vector<Tensor> all = grad({y}, leaves, {to_device(scattered(y.size(), 0.4, y.dtype()), d)}, {}, false);
  all.insert(all.begin(), y);
  for (Tensor& t : all) t = contiguous(detach(to_host(t)));
  return all;
}
}  // namespace

void expect_the_cpus(const char* name, const Function& f, const std::vector<Tensor>& inputs,
                     const std::vector<std::string>& ops) {
  SCOPED_TRACE(name);
  const std::vector<Tensor> here = all_of(f, inputs, {});
  const auto runs_of = [&] {
    int64_t n = 0;
    for (const HostRuns& run : cuda_host_runs())
      if (std::find(ops.begin(), ops.end(), run.op) != ops.end()) n += run.count;
    return n;
  };
  const int64_t before = runs_of();
  std::vector<Tensor> first;
  for (int order = 0; order < 3; ++order) {
    if (!set_order(order, 5) && order > 0) break;
    const std::vector<Tensor> there = all_of(f, inputs, device());
    for (size_t k = 0; k < here.size(); ++k) {
      ASSERT_EQ(to_string(there[k].size()), to_string(here[k].size()));
      const Tensor a = cast(there[k], DType::f64), b = cast(here[k], DType::f64);
      double largest = 0;
      for (int64_t i = 0; i < b.numel(); ++i) largest = std::max(largest, std::abs(b.data<double>()[i]));
      const double part = here[k].dtype() == DType::f64 ? 1e-12 : here[k].dtype() == DType::f32 ? 1e-5 : 1e-2;
      for (int64_t i = 0; i < b.numel(); ++i)
        ASSERT_NEAR(a.data<double>()[i], b.data<double>()[i], part * largest) << "result " << k << ", element " << i;
      if (order > 0) {
        EXPECT_EQ(std::memcmp(there[k].raw(), first[k].raw(), first[k].nbytes()), 0)
            << "result " << k << " depends on the order of threads";
      }
    }
    if (order == 0) first = there;
  }
  set_order(0, 5);
  EXPECT_EQ(runs_of(), before) << "an op was run on the CPU";
}

}  // namespace tenon::emulated
