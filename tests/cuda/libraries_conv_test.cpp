// Convolutions by cuDNN, emulated (tests/simt/libraries) or that of a machine with a GPU; by kernels of our own where
// it is missing or does not take the operands.
#include <gtest/gtest.h>

#include "engine/ops/conv.h"
#include "engine/ops/conv_nd.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/cuda/against_cpu.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/library_runs.h"

namespace tenon {
namespace {

using emulated::expect_the_cpus;
using emulated::Function;
using emulated::library_there;
using emulated::runs_by;
using emulated::scattered;

const std::vector<std::string> kConvolutions = {"conv2d", "conv2d_input", "conv2d_weight"};

/// Which of the three the library is to take. What it refuses is the emulated one's affair: a real one may take it.
struct Taken {
  bool result = true, input = true, weight = true;
};
constexpr Taken kNone{false, false, false};

void convolve(const char* name, const Function& f, const std::vector<Tensor>& inputs, Taken taken = {}) {
  const bool there = library_there("cuDNN"), real = !emulated::set_order(0, 5);
  const bool wanted[] = {taken.result, taken.input, taken.weight};
  int64_t before[3];
  for (int i = 0; i < 3; ++i) before[i] = runs_by("cuDNN", kConvolutions[i]);
  expect_the_cpus(name, f, inputs, {"conv2d", "conv2d_input", "conv2d_weight", "matmul"});
  for (int i = 0; i < 3; ++i) {
    const int64_t runs = runs_by("cuDNN", kConvolutions[i]) - before[i];
    if (wanted[i] || !real) {
      EXPECT_EQ(runs > 0, there && wanted[i]) << name << ": " << kConvolutions[i];
    }
  }
}

/// The bias is left out where there are two inputs.
Function layer(const Conv2dOptions& o) {
  return [o](const auto& in) { return conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), o); };
}
/// The same, with a gradient that comes in channels-last order, as between the convolutions of a network.
Function between_layers(const Conv2dOptions& o) {
  return [o](const auto& in) { return permute(layer(o)(in), {0, 2, 3, 1}); };
}

TEST(CudaLibraries, ConvolutionsOfEveryType) {
  for (const DType t : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const std::vector<Tensor> biased = {scattered({2, 3, 6, 5}, 1, t), scattered({4, 3, 3, 3}, 2, t),
                                        scattered({4}, 3, t)};
    const std::vector<Tensor> plain = {biased[0], biased[1]};
    const Conv2dOptions padded{{1, 1}, {1, 1}, {1, 1}, 1};
    convolve("a gradient by rows", layer(padded), biased);
    convolve("a gradient by channels", between_layers(padded), biased);
    convolve("no bias, a gradient by rows", layer(padded), plain);
    convolve("no bias, a gradient by channels", between_layers(padded), plain);
  }
}

TEST(CudaLibraries, ConvolutionsOfEveryShape) {
  const auto run = [](const char* name, const Shape& x, const Shape& w, const Conv2dOptions& o) {
    const std::vector<Tensor> in = {scattered(x, 1), scattered(w, 2), scattered({w[0]}, 3)};
    convolve(name, layer(o), in);
    convolve(name, between_layers(o), in);
  };
  run("strides that differ", {2, 3, 9, 8}, {5, 3, 3, 2}, {{2, 3}, {1, 2}, {1, 1}, 1});
  run("a stride beyond the kernel", {2, 3, 16, 9}, {5, 3, 2, 2}, {{5, 4}, {1, 0}, {1, 1}, 1});
  run("two groups", {2, 4, 6, 5}, {6, 2, 3, 3}, {{1, 1}, {0, 1}, {1, 1}, 2});
  run("channels apart", {2, 6, 7, 5}, {6, 1, 3, 3}, {{2, 1}, {1, 1}, {1, 1}, 6});
  run("two of each channel", {2, 3, 7, 5}, {6, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 3});
  run("one channel", {2, 1, 7, 5}, {3, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1});
  run("one image, one output", {1, 3, 3, 3}, {4, 3, 3, 3}, {});
  run("one row", {2, 3, 1, 9}, {4, 3, 1, 3}, {{1, 2}, {0, 1}, {1, 1}, 1});
  run("one tap that skips", {2, 3, 5, 5}, {4, 3, 1, 1}, {{2, 2}, {0, 0}, {1, 1}, 1});
}

/// Of one tap it is a product of matrices wherever pixels are rows of one.
TEST(CudaLibraries, ConvolutionsThatAreProducts) {
  const std::vector<Tensor> in = {scattered({2, 3, 5, 5}, 1), scattered({4, 3, 1, 1}, 2), scattered({4}, 3)};
  convolve("a gradient by channels", between_layers({}), in, kNone);
  convolve("a gradient by rows", layer({}), in, {false, true, true});
}

/// The emulated library offers nothing for channels-last filters that are dilated, and refuses deep padding when it is
/// called: in both cases our own kernels go on, at once and for every later call.
TEST(CudaLibraries, ConvolutionsThatAreRefused) {
  const Conv2dOptions dilated{{1, 1}, {1, 2}, {1, 2}, 1}, deep{{1, 1}, {3, 1}, {1, 1}, 1};
  const auto inputs = [](DType t) {
    return std::vector<Tensor>{scattered({2, 3, 6, 7}, 1, t), scattered({4, 3, 3, 3}, 2, t), scattered({4}, 3, t)};
  };
  for (const DType t : {DType::f32, DType::f16}) {
    convolve("dilated", between_layers(dilated), inputs(t), kNone);
    convolve("dilated, a gradient by rows", layer(dilated), inputs(t), kNone);
  }
  convolve("dilated, of f64", between_layers(dilated), inputs(DType::f64));
  for (const DType t : {DType::f32, DType::f64, DType::bf16}) convolve("deep", layer(deep), inputs(t), kNone);
}

TEST(CudaLibraries, ConvolutionsOfOperandsByStrides) {
  const Tensor x = scattered({2, 3, 6, 5}, 1), w = scattered({4, 3, 3, 3}, 2), b = scattered({4}, 3);
  convolve("a kernel on its side", [](const auto& in) { return conv2d(in[0], transpose(in[1], 2, 3), in[2]); },
           {x, w, b});
  convolve("a kernel in channels-last order",
           [](const auto& in) {
             return conv2d(in[0], permute(in[1], {0, 3, 1, 2}), in[2]);
           },
           {x, scattered({4, 3, 3, 3}, 2), b});
  convolve("a bias out of a longer one", [](const auto& in) { return conv2d(in[0], in[1], slice(in[2], 0, 0, 8, 2)); },
           {x, w, scattered({8}, 3)});
  convolve("a part of an image, channels-last",
           [](const auto& in) {
             return conv2d(permute(narrow(in[0], 2, 1, 4), {0, 3, 1, 2}), in[1], in[2]);
           },
           {scattered({2, 6, 6, 3}, 1), w, b});
  convolve("a gradient out of a larger one",
           [](const auto& in) { return narrow(conv2d(in[0], in[1], in[2]), 3, 1, 2); }, {x, w, b});
  convolve("a gradient of one element", [](const auto& in) { return sum(conv2d(in[0], in[1], in[2])); }, {x, w, b});
  convolve("a gradient of one element of f64", [](const auto& in) { return sum(conv2d(in[0], in[1], in[2])); },
           {cast(x, DType::f64), cast(w, DType::f64), cast(b, DType::f64)}, {true, false, false});
}

TEST(CudaLibraries, ConvolutionsOfOtherAxes) {
  convolve("a line",
           [](const auto& in) {
             return conv_nd(in[0], in[1], in[2], {{2}, {1}});
           },
           {scattered({2, 3, 9}, 1), scattered({4, 3, 3}, 2), scattered({4}, 3)});
  convolve("a volume",
           [](const auto& in) {
             return conv_nd(in[0], in[1], in[2], {{1}, {1}});
           },
           {scattered({1, 2, 4, 5, 4}, 1), scattered({3, 2, 2, 3, 3}, 2), scattered({3}, 3)});
  convolve("transposed",
           [](const auto& in) {
             return conv_transpose_nd(in[0], in[1], in[2], {{2}, {1}, {1}, 1, {1}});
           },
           {scattered({2, 4, 3, 4}, 1), scattered({4, 3, 3, 3}, 2), scattered({3}, 3)});
}

}  // namespace
}  // namespace tenon
