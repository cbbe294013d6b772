// Statistics of tensors against a look at each element, for every type, layout and number of threads.
#include "views/shared/tensor_stats.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/file.h"
#include "core/parallel.h"
#include "engine/formats/model_file.h"
#include "engine/formats/safetensors.h"
#include "engine/ops/create.h"
#include "engine/ops/random.h"
#include "engine/ops/view.h"

namespace tenon::views {
namespace {

constexpr int kBinsAsked = 10;

struct Looked {
  int64_t nan = 0, inf = 0, zeros = 0, negative = 0, denormal = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min;
  long double mean = 0, around = 0, squares = 0;
  std::vector<int64_t> bins = std::vector<int64_t>(kBinsAsked, 0);
};

/// What the values are, one by one.
Looked looked_at(const Tensor& t) {
  const Tensor flat = contiguous(t);
  Looked l;
  std::vector<double> finite;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double v = storage_value(flat, flat.layout().offset + i);
    l.nan += std::isnan(v);
    l.inf += std::isinf(v);
    if (!std::isfinite(v)) continue;
    finite.push_back(v);
    l.zeros += v == 0;
    l.negative += v < 0;
    l.denormal += t.dtype() != DType::f64 && v != 0 && std::fabs(v) < static_cast<double>(FLT_MIN);
    l.min = std::min(l.min, v);
    l.max = std::max(l.max, v);
    l.mean += v;
    l.squares += static_cast<long double>(v) * v;
  }
  if (finite.empty()) return l;
  l.mean /= static_cast<long double>(finite.size());
  const double width = (l.max - l.min) / kBinsAsked;
  for (const double v : finite) {
    l.around += (v - l.mean) * (v - l.mean);
    ++l.bins[width > 0 ? std::min<size_t>(static_cast<size_t>((v - l.min) / width), kBinsAsked - 1) : 0];
  }
  return l;
}

void expect_as_looked(const Tensor& t, const std::string& what) {
  const Looked l = looked_at(t);
  const int threads = num_threads();
  set_num_threads(1);
  const TensorStats one = tensor_stats(t, kBinsAsked);
  set_num_threads(3);
  const TensorStats s = tensor_stats(t, kBinsAsked);
  set_num_threads(threads);
  EXPECT_EQ(s.count, t.numel()) << what;
  EXPECT_EQ(s.nan, l.nan) << what;
  EXPECT_EQ(s.inf, l.inf) << what;
  EXPECT_EQ(s.zeros, l.zeros) << what;
  EXPECT_EQ(s.negative, l.negative) << what;
  EXPECT_EQ(s.denormal, l.denormal) << what;
  EXPECT_EQ(s.bins, l.bins) << what;
  if (s.finite() == 0) return;
  EXPECT_EQ(s.min, l.min) << what;
  EXPECT_EQ(s.max, l.max) << what;
  const auto close = [&](double a, long double b) {
    return std::fabs(a - static_cast<double>(b)) <= 1e-9 * std::max(std::fabs(static_cast<double>(b)), 1e-3 * s.l2);
  };
  EXPECT_TRUE(close(s.mean, l.mean)) << what << " " << s.mean;
  EXPECT_TRUE(close(s.l2, std::sqrt(l.squares))) << what << " " << s.l2;
  const long double spread = s.finite() > 1 ? std::sqrt(l.around / static_cast<long double>(s.finite() - 1)) : 0;
  EXPECT_TRUE(close(s.std, spread)) << what << " " << s.std;
  EXPECT_EQ(s.mean, one.mean) << what;
  EXPECT_EQ(s.std, one.std) << what;
  EXPECT_EQ(s.l2, one.l2) << what;
  EXPECT_EQ(s.bins, one.bins) << what;
}

TEST(TensorStatistics, every_type_in_a_row_and_strided_is_what_a_look_at_each_gives) {
  Generator g{5, 1};
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8, DType::i16,
                            DType::i32, DType::i64, DType::boolean}) {
    const Tensor t = is_floating(dtype)        ? randn({301, 331}, dtype, &g)
                     : dtype == DType::boolean ? cast(randint(0, 2, {301, 331}, DType::u8, &g), dtype)
                     : dtype == DType::u8      ? randint(0, 200, {301, 331}, dtype, &g)
                                               : randint(-100, 100, {301, 331}, dtype, &g);
    expect_as_looked(t, name(dtype));
    expect_as_looked(view_of(t, t.layout().permute({1, 0})), std::string(name(dtype)) + " turned");
    expect_as_looked(view_of(t, Layout::contiguous({7})), std::string(name(dtype)) + " of seven");
    expect_as_looked(full({1}, 1, dtype), std::string(name(dtype)) + " of one");
  }
}

TEST(TensorStatistics, what_is_not_finite_denormal_or_far_from_zero_is_told) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (const int64_t n : {int64_t{1}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{70001}}) {
      Tensor t = full({n}, 1000, DType::f32);
      float* p = t.data<float>();
      for (int64_t i = 0; i < n; ++i) p[i] += static_cast<float>(i % 7);
      p[n / 2] = kNan;
      p[n - 1] = -kInf;
      if (n > 4) p[0] = kInf, p[1] = -0.f, p[2] = 1e-40f, p[3] = -2e-39f;
      expect_as_looked(cast(t, dtype), std::string(name(dtype)) + " " + std::to_string(n));
      expect_as_looked(cast(full({n}, kNan), dtype), "only NaN");
      expect_as_looked(cast(full({n}, 3.5), dtype), "all the same");
    }
  EXPECT_EQ(tensor_stats(empty({0, 3})).count, 0);
}

TEST(TensorStatistics, a_large_one_is_told_how_far_it_is_and_stops) {
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const Tensor t = zeros({9000, 1000}, dtype);
    int64_t last = -1;
    const TensorStats all = tensor_stats(t, kBinsAsked, [&](int64_t done, int64_t total) {
      EXPECT_GE(done, last);
      EXPECT_LE(done, total);
      last = done;
      return true;
    });
    EXPECT_EQ(all.zeros, t.numel());
    EXPECT_GT(last, 0);
    EXPECT_EQ(tensor_stats(t, kBinsAsked, [](int64_t done, int64_t) { return done == 0; }).count, 0);
  }
}

/// Of the pages of this program, the bytes of those that belong to files.
int64_t bytes_of_files() {
  const std::string status = read_file("/proc/self/status");
  return std::stoll(status.substr(status.find("RssFile:") + 8)) * 1024;
}

TEST(TensorStatistics, of_a_file_keep_no_page_of_it) {
  const std::string path = ::testing::TempDir() + "tensor_stats." + std::to_string(getpid()) + ".safetensors";
  constexpr int64_t kRows = 24 << 10, kCols = 1 << 10;  // 96 MiB
  const Tensor large = zeros({kRows, kCols});
  for (int64_t i = 0; i < large.numel(); ++i) large.data<float>()[i] = static_cast<float>(i % 1001);
  formats::save_safetensors(path, {{"large", large}, {"small", full({3}, 2)}});
  const auto file = formats::ModelFile::open(path);
  const int64_t before = bytes_of_files();
  int64_t most = 0;
  const TensorStats s = file_tensor_stats(*file, file->at("large"), kBinsAsked, [&](int64_t, int64_t) {
    most = std::max(most, bytes_of_files());
    return true;
  });
  EXPECT_LT(most - before, int64_t{80} << 20) << "while they are read";
  EXPECT_LT(bytes_of_files() - before, int64_t{16} << 20) << "afterwards";
  const TensorStats expected = tensor_stats(large, kBinsAsked);
  EXPECT_EQ(s.count, expected.count);
  EXPECT_EQ(s.mean, expected.mean);
  EXPECT_EQ(s.std, expected.std);
  EXPECT_EQ(s.bins, expected.bins);
  EXPECT_EQ(file->tensor(file->at("large")).data<float>()[1234], 233) << "they are there when they are asked for again";
  EXPECT_EQ(file_tensor_stats(*file, file->at("small"), kBinsAsked).mean, 2);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon::views
