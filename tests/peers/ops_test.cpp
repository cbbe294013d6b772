// Ops whose right answer the registry's own tests cannot know, against PyTorch: values and gradients of random cases,
// in one run of it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/peers/ops_cases.h"
#include "tests/peers/torch.h"

namespace tenon::peers {

int64_t Draw::below(int64_t n) {
  return static_cast<int64_t>(Philox{29, stream_}.below(at_++, static_cast<uint64_t>(n)));
}
double Draw::normal() { return Philox{29, stream_}.normal(at_++); }
Tensor Draw::values(const Shape& size) {
  Tensor t = empty(size, DType::f64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = normal();
  return t;
}
Tensor Draw::distinct(const Shape& size) {
  Tensor t = empty(size, DType::f64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = 0.1 * static_cast<double>(i) - 1;
  for (int64_t i = t.numel() - 1; i > 0; --i) std::swap(t.data<double>()[i], t.data<double>()[below(i + 1)]);
  return t;
}
Tensor Draw::integers(const Shape& size, int64_t lo, int64_t hi) {
  Tensor t = empty(size, DType::i64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = between(lo, hi);
  return t;
}
Tensor Draw::ties(const Shape& size) { return mul(cast(integers(size, -2, 2), DType::f64), 0.5); }
Tensor Draw::mask(const Shape& size) { return cast(integers(size, 0, 1), DType::boolean); }
Shape Draw::shape(int axes, int64_t lo, int64_t hi) {
  Shape s;
  for (int i = 0; i < axes; ++i) s.push_back(between(lo, hi));
  return s;
}

namespace {

using nlohmann::json;

json json_of_case(const Tensor& t) {
  const Tensor c = contiguous(t);
  json values = json::array();
  for (int64_t i = 0; i < c.numel(); ++i) {
    const double v = storage_value(c, c.offset() + i);
    if (c.dtype() == DType::f64)
      values.push_back(std::isnan(v) ? json() : json(v));
    else if (c.dtype() == DType::i64)
      values.push_back(static_cast<int64_t>(v));
    else
      values.push_back(v != 0);
  }
  return {{"dtype", name(c.dtype())},
          {"shape", std::vector<int64_t>(c.size().begin(), c.size().end())},
          {"values", values}};
}

/// The weights of PyTorch's side: cos(0), cos(1), ...
Tensor weighted(const Tensor& y) { return sum(mul(y, reshape(cos(arange(y.numel(), DType::f64)), y.size()))); }

TEST(Peers, OpsGivePyTorchsValuesAndGradients) {
  TENON_NEEDS_TORCH();
  std::vector<OpCase> cases;
  index_cases(cases, Draw(1));
  order_cases(cases, Draw(2));
  linear_cases(cases, Draw(3));
  ASSERT_GT(cases.size(), 1000u);
  json input = json::array();
  for (const OpCase& c : cases) {
    json inputs = json::array();
    for (const Tensor& t : c.inputs) inputs.push_back(json_of_case(t));
    input.push_back({{"torch", c.torch}, {"gradient", c.gradient}, {"inputs", inputs}});
  }
  const formats::NamedTensors theirs = run_torch("ops.py", input);
  std::map<std::string, Tensor> by_name(theirs.begin(), theirs.end());
  size_t gradients = 0;
  for (size_t n = 0; n < cases.size(); ++n) {
    const OpCase& c = cases[n];
    std::string sizes;
    for (const Tensor& t : c.inputs) sizes += " " + to_string(t.size());
    SCOPED_TRACE(c.torch + " on" + sizes);
    std::vector<Tensor> in;
    for (const Tensor& t : c.inputs) {
      in.push_back(clone(t));
      if (t.dtype() == DType::f64) set_requires_grad(in.back());
    }
    std::vector<Tensor> out;
    ASSERT_NO_THROW({
      try {
        out = c.ours(in);
      } catch (const Error& e) {
        ADD_FAILURE() << e.what();
        throw;
      }
    });
    Tensor total;
    for (size_t k = 0; k < out.size(); ++k) {
      const auto it = by_name.find(std::to_string(n) + " output " + std::to_string(k));
      ASSERT_NE(it, by_name.end()) << "PyTorch has no output " << k;
      EXPECT_EQ(out[k].dtype(), it->second.dtype()) << "output " << k;
      EXPECT_LE(difference(detach(out[k]), it->second, 1), c.tolerance)
          << "output " << k << " of size " << to_string(out[k].size()) << ", PyTorch's "
          << to_string(it->second.size());
      if (out[k].dtype() == DType::f64 && out[k].requires_grad())
        total = total ? add(total, weighted(out[k])) : weighted(out[k]);
    }
    EXPECT_FALSE(by_name.count(std::to_string(n) + " output " + std::to_string(out.size())))
        << "PyTorch has more outputs";
    if (!c.gradient || !total) continue;
    backward(total);
    for (size_t i = 0; i < in.size(); ++i) {
      const auto it = by_name.find(std::to_string(n) + " grad " + std::to_string(i));
      if (it == by_name.end()) continue;
      const Tensor g = in[i].requires_grad() ? grad_of(in[i]) : Tensor();
      ASSERT_TRUE(g) << "no gradient of input " << i;
      EXPECT_LE(difference(g, it->second, 1), 100 * c.tolerance) << "gradient of input " << i;
      ++gradients;
    }
  }
  EXPECT_GT(gradients, 500u);
}

}  // namespace
}  // namespace tenon::peers
