// What goes to a GPU, and from one to another, without the program waiting.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "core/backend.h"
#include "engine/op/cuda_device.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "tests/cuda/emulated.h"

namespace tenon {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

uint8_t byte_of(size_t i, size_t salt) { return static_cast<uint8_t>((i * 2654435761u >> 7) + salt * 31); }

/// Sends bytes that are overwritten as soon as the call returns, and reads what arrived.
struct Parcel {
  Tensor there;
  size_t bytes, salt;
  Parcel(size_t n, size_t s) : bytes(n), salt(s) {
    Tensor here = empty({static_cast<int64_t>(n)}, DType::u8);
    for (size_t i = 0; i < n; ++i) here.data<uint8_t>()[i] = byte_of(i, s);
    there = to_device(here, emulated::device());
    std::memset(here.raw(), 0xee, n);
  }
  bool arrived() const {
    const Tensor back = to_host(there);
    for (size_t i = 0; i < bytes; ++i)
      if (back.data<uint8_t>()[i] != byte_of(i, salt)) return false;
    return true;
  }
};

TEST(CudaStaging, ACopyToTheDeviceDoesNotWait) {
  if (std::getenv("TENON_SIMT_PINNED")) GTEST_SKIP() << "little or no memory may be pinned here";
  const Device d = emulated::device();
  backend_of(d).sync(current_stream(d));
  const int64_t before = cuda_waits(d);
  const Parcel one(100, 1), two(9 * kMiB + 5, 2);
  EXPECT_EQ(cuda_waits(d), before);
  EXPECT_TRUE(one.arrived());
  EXPECT_TRUE(two.arrived());
  EXPECT_EQ(cuda_waits(d), before + 2) << "copies to the host wait";
}

TEST(CudaStaging, WhatIsSentArrivesWholeWhereverBlocksEnd) {
  for (int order = 0; order < 3; ++order) {
    if (!emulated::set_order(order, 5) && order > 0) break;
    std::vector<std::unique_ptr<Parcel>> parcels;
    size_t salt = 0;
    for (const size_t bytes : {size_t{1}, size_t{255}, 4 * kMiB - 256, size_t{257}, 4 * kMiB, 4 * kMiB + 1, 9 * kMiB})
      parcels.push_back(std::make_unique<Parcel>(bytes, ++salt));
    for (const auto& p : parcels) EXPECT_TRUE(p->arrived()) << p->bytes << " bytes, order " << order;
  }
  emulated::set_order(0, 5);
}

/// Two streams at a time send more than the blocks there may be.
TEST(CudaStaging, BlocksAreFilledAnewOnlyWhenTheDeviceHasReadThem) {
  for (int order = 0; order < 3; ++order) {
    if (!emulated::set_order(order, 5) && order > 0) break;
    std::vector<std::unique_ptr<Parcel>> parcels;
    for (size_t i = 0; i < 50; ++i) {
      StreamScope stream(i % 5 == 3 ? 4 : 0);
      parcels.push_back(std::make_unique<Parcel>(3 * kMiB, i));
    }
    backend_of(emulated::device()).sync({emulated::device(), 4});
    for (const auto& p : parcels) EXPECT_TRUE(p->arrived()) << "parcel " << p->salt << ", order " << order;
  }
  emulated::set_order(0, 5);
}

TEST(CudaStaging, OneGpuGivesToAnotherWhatIsCompleteAndTheProgramDoesNotWait) {
  const Device first = emulated::device();
  if (device_names().size() < 3) GTEST_SKIP() << "there is one GPU";
  const Device second = parse_device("cuda:1");
  for (int order = 0; order < 3; ++order) {
    if (!emulated::set_order(order, 5) && order > 0) break;
    const Tensor x = full({1000}, 3 + order, DType::f32, first);
    const int64_t before = cuda_waits(first) + cuda_waits(second);
    const Tensor y = neg(x), there = to_device(y, second), z = neg(there);
    fill(y, 100);  // after it was copied
    EXPECT_EQ(cuda_waits(first) + cuda_waits(second), before);
    EXPECT_EQ(value_at(z, {999}), 3 + order) << "order " << order;
    EXPECT_EQ(value_at(there, {0}), -3 - order) << "order " << order;
    EXPECT_EQ(value_at(y, {0}), 100);
  }
  emulated::set_order(0, 5);
}

}  // namespace
}  // namespace tenon
