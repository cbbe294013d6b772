// Loops that are compiled for vectors of 512 bits give the bits of those for 256, gradients included. On a processor
// without them both are the same loops.
#include <gtest/gtest.h>

#include "core/vectors.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/init.h"
#include "engine/nn/rnn.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/attention.h"
#include "engine/ops/create.h"
#include "engine/ops/loss.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/engine/same_bits.h"

namespace tenon::wide_vectors {
namespace {

/// What a function gives of its inputs, and the gradients of the sum of its squares.
std::vector<Tensor> results_of(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                               const std::vector<Tensor>& values) {
  std::vector<Tensor> inputs;
  for (const Tensor& v : values) {
    inputs.push_back(clone(v));
    if (is_floating(v.dtype())) set_requires_grad(inputs.back());
  }
  const Tensor y = f(inputs);
  std::vector<Tensor> all{detach(y)};
  if (!y.requires_grad()) return all;
  backward(sum(square(y)));
  for (const Tensor& x : inputs)
    if (x.requires_grad()) all.push_back(grad_of(x));
  return all;
}

void expect_one_result(const char* name, const std::function<Tensor(const std::vector<Tensor>&)>& f,
                       const std::vector<Tensor>& inputs) {
  allow_wide_vectors(false);
  const std::vector<Tensor> narrow = results_of(f, inputs);
  allow_wide_vectors(true);
  const std::vector<Tensor> wide = results_of(f, inputs);
  ASSERT_EQ(narrow.size(), wide.size()) << name;
  for (size_t i = 0; i < wide.size(); ++i)
    EXPECT_TRUE(same_bits(narrow[i], wide[i])) << name << (i == 0 ? "" : ", a gradient");
}

TEST(WideVectors, GiveTheBitsOfNarrowOnesInEveryPointwiseOp) {
  int compared = 0;
  for (const OpDef& op : all_ops()) {
    if (op.info.kind != OpKind::pointwise || !op.samples || op.info.outputs != 1) continue;
    Samples samples;
    op.samples(samples);
    const Sample& s = samples.all()[0];
    if (s.inputs.size() != 1 || s.inputs[0].dtype() != DType::f64) continue;
    constexpr int64_t kMany = 1027;
    const Tensor some = reshape(cast(s.inputs[0], DType::f32), {1, s.inputs[0].numel()});
    const int64_t rows = kMany / some.numel() + 1;
    const Tensor x = slice(reshape(contiguous(expand(some, {rows, some.numel()})), {rows * some.numel()}), 0, 0, kMany);
    expect_one_result(op.info.name,
                      [&](const std::vector<Tensor>& in) {
                        Tensor y;
                        dispatch(op, s.attrs.get(), in.data(), 1, &y);
                        return y;
                      },
                      {contiguous(x)});
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

Tensor drawn(const Shape& size, const char* name) {
  Tensor t = empty(size);
  nn::init_uniform(t, 3, 11, name);
  return t;
}

TEST(WideVectors, GiveTheBitsOfNarrowOnesInSoftmaxAttentionAndRecurrentLayers) {
  const Tensor logits = drawn({5, 700}, "logits");
  expect_one_result("softmax", [](const auto& in) { return softmax(in[0]); }, {logits});
  expect_one_result("log_softmax", [](const auto& in) { return log_softmax(in[0]); }, {logits});
  const Tensor target = cast(abs(mul(slice(logits, 1, 0, 5), slice(logits, 1, 5, 10))), DType::i64);
  expect_one_result("cross_entropy", [](const auto& in) { return cross_entropy(in[0], in[1]); },
                    {logits, contiguous(reshape(slice(target, 1, 0, 1), {5}))});
  expect_one_result("attention", [](const auto& in) { return scaled_dot_product_attention(in[0], in[1], in[2]); },
                    {drawn({2, 70, 32}, "q"), drawn({2, 300, 32}, "k"), drawn({2, 300, 32}, "v")});
  expect_one_result("products of f64", [](const auto& in) { return matmul(in[0], in[1]); },
                    {cast(drawn({61, 400}, "a"), DType::f64), cast(drawn({400, 75}, "b"), DType::f64)});
  for (const kernels::Cell cell : {kernels::Cell::lstm, kernels::Cell::gru, kernels::Cell::tanh}) {
    nn::Rnn layer(cell, 24, 260);
    layer.initialize(5);
    expect_one_result("a recurrent layer", [&](const auto& in) { return layer.run(in[0]).output; },
                      {drawn({9, 12, 24}, "x")});
  }
}

}  // namespace
}  // namespace tenon::wide_vectors
