// The emulated GPU works behind the program as a real one does: what tests of waiting rest on.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <functional>

#include "core/backend.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "tests/cuda/emulated.h"

namespace tenon {
namespace {

/// A function of the emulation. Null where the GPU is a real one.
template <class F>
F* of_emulation(const char* name) {
  emulated::device();
  void* module = dlopen(std::getenv("TENON_CUDA_FILE"), RTLD_NOW | RTLD_NOLOAD);
  auto* f = module ? reinterpret_cast<F*>(dlsym(module, name)) : nullptr;
  if (module) dlclose(module);
  return f;
}
void* module_stream(int32_t number) {
  void* stream = nullptr;
  cuda::Why why;
  EXPECT_EQ(cuda_module()->stream(0, number, &stream, &why), cuda::done) << why.text;
  return stream;
}
double first_of(const Tensor& t) { return value_at(t, {0}); }

struct CudaStreams : testing::Test {
  std::function<uint64_t()> behind;
  void SetUp() override {
    auto* f = of_emulation<uint64_t()>("tenon_simt_behind");
    if (!f) GTEST_SKIP() << "a real GPU does not say how far it is";
    behind = f;
    backend_of(emulated::device()).sync(current_stream(emulated::device()));
  }
  void TearDown() override { emulated::set_order(0, 1); }
};

TEST_F(CudaStreams, NothingIsDoneBeforeSomebodyWaits) {
  const Tensor x = full({100}, 3, DType::f32, emulated::device());
  const Tensor y = neg(x), z = abs(y);
  EXPECT_EQ(behind(), 3u);
  EXPECT_EQ(first_of(z), 3);
  EXPECT_EQ(behind(), 0u);
}

/// One stream reads what another is yet to write: some order of the streams does not forgive it.
TEST_F(CudaStreams, AMissingWaitBetweenStreamsShows) {
  const auto read_by_another = [](int order, bool waits) {
    const Device d = emulated::device();
    emulated::set_order(order, 3);
    const Tensor x = full({100}, 3 + order + 5 * waits, DType::f32, d);  // what lies in memory taken again is another's
    backend_of(d).sync(current_stream(d));
    Tensor y, z;
    {
      StreamScope other(5);
      y = neg(x);
      if (waits) backend_of(d).sync(current_stream(d));
    }
    z = neg(y);
    const double first = first_of(z);
    backend_of(d).sync({d, 5});
    return first - (3 + order + 5 * waits);
  };
  bool shown = false;
  for (int order = 0; order < 3; ++order) {
    EXPECT_EQ(read_by_another(order, true), 0) << "order " << order;
    shown |= read_by_another(order, false) != 0;
  }
  EXPECT_TRUE(shown);
}

TEST_F(CudaStreams, AFaultIsToldByTheNextWaitAndStays) {
  auto* fault = of_emulation<void(void*, const char*)>("tenon_simt_fault");
  auto* mend = of_emulation<void()>("tenon_simt_mend");
  ASSERT_TRUE(fault && mend);
  const Device d = emulated::device();
  const auto told = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.message();
    }
    return "no error";
  };
  Tensor x = full({100}, 3, DType::f32, d);
  fault(module_stream(0), "an index outside a block");
  EXPECT_EQ(told([&] { abs_(x); }), "no error") << "a launch knows nothing of what is queued before it";
  const std::string wait = told([&] { backend_of(d).sync(current_stream(d)); });
  EXPECT_EQ(wait,
            "cuda:0: waiting for the device: unspecified launch failure: an index outside a block (CUDA error 719)");
  EXPECT_NE(told([&] { abs_(x); }).find("launch failure"), std::string::npos);
  EXPECT_NE(told([&] { first_of(x); }).find("launch failure"), std::string::npos);
  EXPECT_NE(told([&] { full({100}, 3, DType::f32, d); }).find("launch failure"), std::string::npos);
  mend();
  x = full({100}, 3, DType::f32, d);
  EXPECT_EQ(first_of(neg(x)), -3);
}

}  // namespace
}  // namespace tenon
