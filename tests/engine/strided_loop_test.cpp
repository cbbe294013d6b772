// Loops over operands that lie otherwise than the output: in blocks or not, every element is that of its own place.
#include <gtest/gtest.h>

#include <cstring>

#include "core/parallel.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

/// 0, 1, 2, ... in rows of that size, in a dtype that holds them.
Tensor counted(const Shape& size, DType dtype) {
  Tensor t = empty(size, DType::i64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = dtype == DType::u8 ? i % 251 : i;
  return cast(t, dtype);
}
/// The element at a place, walked to by the strides.
template <class T>
T element_at(const Tensor& t, const std::vector<int64_t>& place) {
  int64_t offset = 0;
  for (size_t d = 0; d < place.size(); ++d) offset += place[d] * t.stride()[static_cast<int>(d)];
  return t.data<T>()[offset];
}
template <class T>
void expect_copied(const Tensor& view, const char* what) {
  const Tensor copy = contiguous(view);
  ASSERT_TRUE(copy.is_contiguous());
  std::vector<int64_t> place(static_cast<size_t>(view.ndim()));
  for (int64_t i = 0; i < view.numel(); ++i) {
    ASSERT_EQ(copy.data<T>()[i], element_at<T>(view, place)) << what << ", element " << i;
    for (int d = view.ndim() - 1; d >= 0 && ++place[static_cast<size_t>(d)] == view.size(d); --d)
      place[static_cast<size_t>(d)] = 0;
  }
}

TEST(StridedLoop, CopiesOfTurnedTensorsHaveEveryElementInItsPlace) {
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    expect_copied<float>(transpose(counted({200, 130}, DType::f32), 0, 1), "transposed");
    expect_copied<double>(transpose(counted({65, 97}, DType::f64), 0, 1), "f64, odd sizes");
    expect_copied<uint8_t>(transpose(counted({600, 300}, DType::u8), 0, 1), "bytes");
    expect_copied<int64_t>(permute(counted({3, 70, 5, 40}, DType::i64), {0, 2, 3, 1}), "channels last");
    expect_copied<float>(permute(counted({2, 33, 70, 19}, DType::f32), {3, 2, 0, 1}), "all axes");
    expect_copied<float>(permute(narrow(counted({50, 90, 80}, DType::f32), 1, 7, 60), {2, 0, 1}), "a part");
    expect_copied<float>(expand(transpose(counted({1, 80, 90}, DType::f32), 1, 2), {4, 90, 80}), "expanded");
    expect_copied<float>(flip(transpose(counted({90, 80}, DType::f32), 0, 1), {0}), "flipped");
    expect_copied<float>(transpose(counted({16, 20000}, DType::f32), 0, 1), "narrow");
  }
  set_num_threads(0);
}

TEST(StridedLoop, OperandsThatLieOtherwiseMeetAtEveryElement) {
  const Tensor x = counted({150, 150}, DType::f32), row = counted({150}, DType::f32);
  const Tensor turned = transpose(x, 0, 1);
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    const Tensor sum = add(x, turned), both = add(turned, mul(turned, row)),
                 double_sum = add(cast(x, DType::f64), turned);
    for (int64_t i = 0; i < 150; ++i)
      for (int64_t j = 0; j < 150; ++j) {
        const auto a = static_cast<float>(i * 150 + j), b = static_cast<float>(j * 150 + i), r = static_cast<float>(j);
        ASSERT_EQ(element_at<float>(sum, {i, j}), a + b) << i << ", " << j;
        ASSERT_EQ(element_at<float>(both, {i, j}), b + b * r) << i << ", " << j;
        ASSERT_EQ(element_at<double>(double_sum, {i, j}), static_cast<double>(a) + static_cast<double>(b))
            << i << ", " << j;
      }
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace tenon
