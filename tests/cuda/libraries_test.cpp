// Ops that NVIDIA's libraries compute where they are there: by the emulated ones of tests/simt/libraries, or by those
// of a machine with a GPU. Where they are missing (TENON_CUDA_LIBRARIES names no folder of them), kernels of our own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "core/cuda_module.h"
#include "engine/op/cuda_device.h"
#include "engine/op/tf32.h"
#include "engine/ops/conv.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/view.h"
#include "tests/cuda/against_cpu.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/library_runs.h"

namespace tenon {
namespace {

using emulated::expect_the_cpus;
using emulated::library_there;
using emulated::runs_while;
using emulated::scattered;

TEST(CudaLibraries, AreToldWithWhyTheyAreMissing) {
  emulated::device();
  cuda::LibraryFacts l;
  int32_t count = 0;
  for (; cuda_module()->library(count, &l) == cuda::done; ++count) {
    EXPECT_TRUE(l.name && *l.name && l.use && *l.use && l.without && *l.without);
    if (l.there) {
      EXPECT_TRUE(std::filesystem::exists(l.file) || std::string(l.file).find('/') == std::string::npos) << l.file;
      EXPECT_NE(std::string(l.version).find('.'), std::string::npos) << l.name << " " << l.version;
    } else {
      EXPECT_NE(std::string(l.why.text).find("was not found"), std::string::npos) << l.why.text;
    }
  }
  EXPECT_GE(count, 1);
}

/// Layouts that the library takes, and those that are left to our own tiles.
TEST(CudaLibraries, ProductsOfEveryLayout) {
  const bool there = library_there("cuBLASLt");
  const auto run = [&](const char* name, bool taken, const emulated::Function& f, const std::vector<Tensor>& inputs) {
    const int64_t runs = runs_while("cuBLASLt", "matmul", [&] { expect_the_cpus(name, f, inputs, {"matmul"}); });
    EXPECT_EQ(runs > 0, there && taken) << name << ": " << runs;
  };
  const emulated::Function plain = [](const auto& in) { return matmul(in[0], in[1]); };
  for (const DType t : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    run("rows by rows", true, plain, {scattered({5, 7}, 1, t), scattered({7, 3}, 2, t)});
    run("a batch", true, plain, {scattered({4, 5, 7}, 1, t), scattered({4, 7, 3}, 2, t)});
    run("one matrix for a batch", true, plain, {scattered({4, 5, 7}, 1, t), scattered({7, 3}, 2, t)});
  }
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      run("transposed", true, [&](const auto& in) { return matmul(in[0], in[1], ta, tb); },
          {scattered(ta ? Shape{7, 5} : Shape{5, 7}, 1), scattered(tb ? Shape{3, 7} : Shape{7, 3}, 2)});
  run("one row", true, plain, {scattered({1, 7}, 1), scattered({7, 3}, 2)});
  run("one column", true, plain, {scattered({5, 7}, 1), scattered({7, 1}, 2)});
  run("one inner element", true, plain, {scattered({5, 1}, 1), scattered({1, 3}, 2)});
  run("a single number", true, plain, {scattered({1, 1}, 1), scattered({1, 1}, 2)});
  run("rows that are part of longer ones", true,
      [](const auto& in) { return matmul(narrow(in[0], 1, 2, 7), narrow(in[1], 1, 1, 3)); },
      {scattered({5, 11}, 1), scattered({7, 6}, 2)});
}

TEST(CudaLibraries, RowsWithABias) {
  const bool there = library_there("cuBLASLt");
  const emulated::Function f = [](const auto& in) { return linear(in[0], in[1], in[2]); };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    const int64_t runs = runs_while("cuBLASLt", "linear", [&] {
      expect_the_cpus("linear", f, {scattered({6, 9}, 1, t), scattered({4, 9}, 2, t), scattered({4}, 3, t)},
                      {"matmul", "linear"});
    });
    EXPECT_EQ(runs > 0, there && t != DType::f64) << static_cast<int>(t);
  }
  // A second bias of the same shape is not the first.
  const Device d = emulated::device();
  const Tensor x = to_device(scattered({6, 9}, 1), d), w = to_device(scattered({4, 9}, 2), d);
  const Tensor a = linear(x, w, to_device(scattered({4}, 3), d)), b = linear(x, w, to_device(scattered({4}, 4), d));
  const Tensor here = linear(scattered({6, 9}, 1), scattered({4, 9}, 2), scattered({4}, 4));
  const Tensor there_b = to_host(b);
  for (int64_t i = 0; i < here.numel(); ++i) EXPECT_NEAR(there_b.data<float>()[i], here.data<float>()[i], 1e-5) << i;
  EXPECT_NE(to_host(a).data<float>()[0], there_b.data<float>()[0]);
}

/// How far the result lies from the CPU's, as a part of the largest.
double distance_from_cpu(const emulated::Function& f, const std::vector<Tensor>& inputs, bool tf32) {
  std::vector<Tensor> there;
  for (const Tensor& t : inputs) there.push_back(to_device(t, emulated::device()));
  Tensor y;
  {
    const Tf32Scope scope(tf32);
    y = to_host(f(there));
  }
  const Tensor here = f(inputs);
  double apart = 0, largest = 0;
  for (int64_t i = 0; i < here.numel(); ++i) {
    apart = std::max(apart, std::abs(double{y.data<float>()[i]} - here.data<float>()[i]));
    largest = std::max(largest, std::abs(double{here.data<float>()[i]}));
  }
  return apart / largest;
}

TEST(CudaLibraries, FactorsAreRoundedToTf32OnlyWhereThatIsAllowed) {
  const emulated::Function product = [](const auto& in) { return matmul(in[0], in[1]); };
  const emulated::Function convolution = [](const auto& in) { return conv2d(in[0], in[1], {}, {}); };
  const std::vector<Tensor> matrices = {scattered({20, 40}, 1), scattered({40, 24}, 2)},
                            image = {scattered({2, 8, 9, 9}, 1), scattered({16, 8, 3, 3}, 2)};
  for (const auto& [f, inputs, library] :
       {std::tuple{product, matrices, "cuBLASLt"}, std::tuple{convolution, image, "cuDNN"}}) {
    SCOPED_TRACE(library);
    EXPECT_LT(distance_from_cpu(f, inputs, false), 1e-6);
    const double rounded = distance_from_cpu(f, inputs, true);
    EXPECT_LT(rounded, 2e-3);
    EXPECT_EQ(rounded > 1e-5, library_there(library)) << rounded;
    EXPECT_LT(distance_from_cpu(f, inputs, false), 1e-6) << "what was kept for TF32 is not taken without";
  }
}

}  // namespace
}  // namespace tenon
