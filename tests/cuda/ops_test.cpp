// Every op of the registry on a GPU, or on the emulated one, held against the CPU: values and gradients, in several
// orders of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <set>

#include "core/backend.h"
#include "engine/autograd/autograd.h"
#include "engine/op/cuda_device.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "tests/cuda/emulated.h"
#include "tests/engine/sample_run.h"

namespace tenon {
namespace {

std::vector<std::string> sampled_ops() {
  std::vector<std::string> names;
  for (const OpDef& op : all_ops())
    if (op.samples && !op.info.any_device) names.emplace_back(op.info.name);
  return names;
}
const OpDef& op_named(const std::string& name) {
  for (const OpDef& op : all_ops())
    if (name == op.info.name) return op;
  throw Error("no op " + name);
}

/// The values of a tensor, on the host, contiguous.
Tensor values_of(const Tensor& t) { return contiguous(detach(to_host(t))); }

bool same_values(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const Tensor x = values_of(a), y = values_of(b);
  return x.dtype() == y.dtype() && x.size() == y.size() &&
         (x.nbytes() == 0 || std::memcmp(x.raw(), y.raw(), x.nbytes()) == 0);
}

/// The largest finite value among floating tensors.
double largest_of(const std::vector<Tensor>& all) {
  double largest = 0;
  for (const Tensor& t : all) {
    if (!t.defined() || !is_floating(t.dtype())) continue;
    const Tensor v = cast(values_of(t), DType::f64);
    for (int64_t i = 0; i < v.numel(); ++i)
      if (std::isfinite(v.data<double>()[i])) largest = std::max(largest, std::abs(v.data<double>()[i]));
  }
  return largest;
}

/// Floating values within rounding of the tensor's largest, or of a thousandth of the largest that the op read (what is
/// left of values that cancel is rounding); everything else, and what is not finite, alike.
void expect_close(const Tensor& there, const Tensor& here, double read, const std::string& what) {
  ASSERT_EQ(there.defined(), here.defined()) << what;
  if (!here.defined()) return;
  ASSERT_EQ(there.dtype(), here.dtype()) << what;
  ASSERT_EQ(to_string(there.size()), to_string(here.size())) << what;
  if (here.storage()) EXPECT_EQ(to_string(there.stride()), to_string(here.stride())) << what;
  if (same_values(there, here)) return;
  ASSERT_TRUE(is_floating(here.dtype())) << what << " differs";
  const Tensor a = cast(values_of(there), DType::f64), b = cast(values_of(here), DType::f64);
  const double largest = std::max(largest_of({here}), read / 1000);
  const double part = here.dtype() == DType::f64 ? 1e-12 : here.dtype() == DType::f32 ? 4e-6 : 1e-2;
  for (int64_t i = 0; i < b.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) {
      ASSERT_EQ(x, y) << what << ", element " << i << " of " << to_string(here.size());
      continue;
    }
    ASSERT_NEAR(x, y, part * largest) << what << ", element " << i << " of " << to_string(here.size());
  }
}
void expect_all_close(const std::vector<Tensor>& there, const std::vector<Tensor>& here, double read,
                      const char* what) {
  ASSERT_EQ(there.size(), here.size()) << what;
  for (size_t i = 0; i < here.size(); ++i)
    expect_close(there[i], here[i], read, std::string(what) + " " + std::to_string(i));
}

class CudaOp : public testing::TestWithParam<std::string> {};

TEST_P(CudaOp, HasTheValuesOfTheCpu) {
  const OpDef& op = op_named(GetParam());
  const Device gpu = emulated::device();
  Samples samples;
  op.samples(samples);
  for (const Sample& s : samples.all()) {
    SCOPED_TRACE(s.name);
    const SampleRun here = run_sample(op, s, {});
    const double read = largest_of(s.inputs);
    SampleRun first;
    for (int order = 0; order < 3; ++order) {
      if (!emulated::set_order(order, 7) && order > 0) break;
      const auto before = cuda_host_runs();
      const SampleRun there = run_sample(op, s, gpu);
      if (order == 0)
        for (const HostRuns& run : cuda_host_runs()) {
          int64_t had = 0;
          for (const HostRuns& b : before)
            if (b.op == run.op) had = b.count;
          if (run.count == had) continue;
          std::printf("on the CPU: %s (%s / %s)\n", run.op.c_str(), op.info.name, s.name.c_str());
          EXPECT_FALSE(has_cuda_kernel(run.op)) << run.op << " has a kernel, and ran on the CPU";
        }
      expect_all_close(there.out, here.out, read, "output");
      expect_all_close(there.gradients, here.gradients, read, "gradient");
      expect_all_close(there.inputs, here.inputs, read, "input after the call");
      if (HasFatalFailure() || HasFailure()) break;
      if (order == 0) {
        first = there;
        continue;
      }
      for (size_t i = 0; i < there.out.size(); ++i)
        EXPECT_TRUE(same_values(there.out[i], first.out[i])) << "output " << i << " depends on the order of threads";
      for (size_t i = 0; i < there.gradients.size(); ++i)
        EXPECT_TRUE(same_values(there.gradients[i], first.gradients[i]))
            << "gradient " << i << " depends on the order of threads";
    }
    emulated::set_order(0, 7);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryOp, CudaOp, testing::ValuesIn(sampled_ops()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tenon
