// tenon bench: single ops and what moves bytes, with the sizes and units of the PyTorch script that runs beside them.
#include <fmt/format.h>

#include <array>

#include "app/cli/bench.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/named_tensors.h"
#include "engine/formats/torch/file.h"
#include "engine/nn/module.h"
#include "engine/ops/activation.h"
#include "engine/ops/attention.h"
#include "engine/ops/conv.h"
#include "engine/ops/create.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/loss.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"

namespace tenon::app {
namespace {

/// A tensor of random numbers whose gradient is wanted.
Tensor with_gradient(const Shape& size, uint64_t stream, DType dtype = DType::f32) {
  Tensor t = bench_normal(size, stream, dtype);
  set_requires_grad(t);
  return t;
}

}  // namespace

/// gelu(x * a + b) and others over 16 Mi elements; GB/s of one read and one write of x.
void bench_pointwise(const Bench& b) {
  NoGrad off;
  const Tensor x = bench_normal({4096, 4096}, 1), scale = bench_normal({4096}, 2), shift = bench_normal({4096}, 3);
  const double n = static_cast<double>(x.numel());
  const auto gb = [&](double bytes, auto&& f) { return b.rate(f) * n * bytes / 1e9; };
  b.emit("pointwise", "scale_shift_gelu", gb(8, [&] { gelu_tanh(add(mul(x, scale), shift)); }), "GB/s");
  b.emit("pointwise", "add", gb(8, [&] { add(x, x); }), "GB/s");
  b.emit("pointwise", "add_transposed", gb(12, [&] { add(x, transpose(x, 0, 1)); }), "GB/s");
  b.emit("pointwise", "copy_permuted", gb(8, [&] { contiguous(transpose(x, 0, 1)); }), "GB/s");
}

/// Sums and the largest over 4096 x 4096; softmax and layer norm of it, forward and backward.
void bench_reduce(const Bench& b) {
  Tensor x = bench_normal({4096, 4096}, 1);
  const double gb = static_cast<double>(x.numel()) * 4 / 1e9;
  {
    NoGrad off;
    b.emit("reduce", "sum_all", b.rate([&] { sum(x); }) * gb, "GB/s");
    b.emit("reduce", "sum_rows", b.rate([&] { sum(x, {1}); }) * gb, "GB/s");
    b.emit("reduce", "sum_columns", b.rate([&] { sum(x, {0}); }) * gb, "GB/s");
    b.emit("reduce", "argmax_rows", b.rate([&] { argmax(x, 1); }) * gb, "GB/s");
  }
  set_requires_grad(x);
  Tensor w = to_device(ones({4096}), b.device), bias = to_device(zeros({4096}), b.device);
  set_requires_grad(w), set_requires_grad(bias);
  const Tensor g = bench_normal({4096, 4096}, 2);
  auto both = [&](auto&& f) {
    return b.rate([&] {
      zero_grad(x), zero_grad(w), zero_grad(bias);
      backward(f(), g);
    });
  };
  b.emit("reduce", "softmax_forward_backward", both([&] { return softmax(x, 1); }), "calls/s");
  b.emit("reduce", "layer_norm_forward_backward", both([&] { return layer_norm(x, {4096}, w, bias); }), "calls/s");
}

/// Square products; on a GPU larger ones.
void bench_matmul(const Bench& b) {
  NoGrad off;
  for (const auto& [dtype, label] : {std::pair{DType::f32, "f32"}, std::pair{DType::bf16, "bf16"}})
    for (int64_t n : b.device == Device{} ? std::array{64, 256, 1024, 2048} : std::array{256, 1024, 4096, 8192}) {
      const Tensor x = bench_normal({n, n}, 1, dtype), y = bench_normal({n, n}, 2, dtype);
      const double flop = 2 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
      b.emit("matmul", fmt::format("{}_{}", label, n), b.rate([&] { matmul(x, y); }, 5) * flop / 1e9, "GFLOP/s");
    }
}

/// 3x3 convolution of 64 channels at 32 x 32, batch 32; GFLOP/s of the products alone.
void bench_conv(const Bench& b) {
  Tensor x = with_gradient({32, 64, 32, 32}, 1), w = with_gradient({64, 64, 3, 3}, 2);
  constexpr double flop = 2.0 * 32 * 32 * 32 * 64 * 64 * 9;
  Conv2dOptions same;
  same.padding = {1, 1};
  {
    NoGrad off;
    b.emit("conv", "forward", b.rate([&] { conv2d(x, w, {}, same); }) * flop / 1e9, "GFLOP/s");
  }
  const Tensor g = bench_normal({32, 64, 32, 32}, 3);
  auto step = [&] {
    zero_grad(x), zero_grad(w);
    backward(conv2d(x, w, {}, same), g);
  };
  b.emit("conv", "forward_backward", b.rate(step) * 3 * flop / 1e9, "GFLOP/s");
}

/// Causal attention, batch 4, 8 heads, 1024 positions of 64, on a GPU of bf16; GFLOP/s of the full square.
void bench_attention(const Bench& b) {
  const Shape size{4, 8, 1024, 64};
  const DType dtype = b.device == Device{} ? DType::f32 : DType::bf16;
  Tensor q = with_gradient(size, 1, dtype), k = with_gradient(size, 2, dtype), v = with_gradient(size, 3, dtype);
  constexpr double flop = 4.0 * 4 * 8 * 1024 * 1024 * 64;
  AttentionOptions causal;
  causal.causal = true;
  auto attend = [&] { return scaled_dot_product_attention(q, k, v, {}, causal); };
  {
    NoGrad off;
    b.emit("attention", "forward", b.rate(attend) * flop / 1e9, "GFLOP/s");
  }
  const Tensor g = bench_normal(size, 4, dtype);
  auto step = [&] {
    zero_grad(q), zero_grad(k), zero_grad(v);
    backward(attend(), g);
  };
  b.emit("attention", "forward_backward", b.rate(step) * 3.5 * flop / 1e9, "GFLOP/s");
}

/// A step over 160 tensors of 160,000 values each.
void bench_optimizer(const Bench& b) {
  auto measure = [&](const char* label, const char* name, const std::vector<Attr>& attrs) {
    std::vector<nn::Named> parameters;
    std::vector<Tensor> kept;
    for (uint64_t i = 0; i < 160; ++i) {
      Tensor p = with_gradient({400, 400}, i);
      backward(p, bench_normal({400, 400}, 1000 + i));
      parameters.push_back({fmt::format("p{}", i), p});
    }
    const auto optimizer = optim::make_optimizer(name, parameters, attrs);
    NoGrad off;
    b.emit("optimizer", label, b.rate([&] { optimizer->step(1e-3); }), "steps/s");
  };
  measure("adamw", "adamw", {{"weight_decay", 0.01}});
  measure("sgd_momentum", "sgd", {{"momentum", 0.9}});
}

/// 200 MB of named tensors to a file that is synced, and back; MB/s.
void bench_checkpoint(const Bench& b) {
  formats::NamedTensors all;
  for (uint64_t i = 0; i < 50; ++i) all.emplace_back(fmt::format("layer{}.weight", i), bench_normal({1000, 1000}, i));
  const BenchFolder folder;
  const std::string file = folder.path + "/c.pt";
  b.emit("checkpoint", "save", b.rate([&] { formats::save_torch(file, all); }, 5) * 200, "MB/s");
  auto load = [&] {  // into memory of their own: what is mapped is not yet read
    for (const auto& [name, t] : formats::TorchFile::open(file).tensors()) clone(t);
  };
  b.emit("checkpoint", "load", b.rate(load, 5) * 200, "MB/s");
}

}  // namespace tenon::app
