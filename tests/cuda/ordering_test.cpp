// Sorting, choosing, searching and counting on the GPU: the CPU's values and places bit for bit, of rows that are one
// tile and of rows that are many, with ties, NaNs and zeros of both signs, in several orders of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/backend.h"
#include "engine/op/cuda_device.h"
#include "engine/ops/create.h"
#include "engine/ops/criterion.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/sort.h"
#include "engine/ops/view.h"
#include "tests/cuda/against_cpu.h"
#include "tests/cuda/emulated.h"

namespace tenon {
namespace {

/// Numbers of which some are alike, NaN, infinite or a zero of either sign.
Tensor with_ties(const Shape& size, DType dtype) {
  Tensor t = empty(size, DType::f64);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t k = i * 7919 % 211 - 100;
    t.data<double>()[i] = k == 0 && i % 2 ? -0.0 : static_cast<double>(k) * 0.5;
    if (is_floating(dtype) && k == 57) t.data<double>()[i] = std::nan("");
    if (is_floating(dtype) && k == 90) t.data<double>()[i] = -INFINITY;
  }
  return cast(t, dtype);
}

bool ordered_alike(const Tensor& a, const Tensor& b) {
  const Tensor x = contiguous(detach(to_host(a))), y = contiguous(detach(to_host(b)));
  return x.dtype() == y.dtype() && x.size() == y.size() && std::memcmp(x.raw(), y.raw(), x.nbytes()) == 0;
}

int64_t host_runs_of(const std::string& op) {
  int64_t n = 0;
  for (const HostRuns& run : cuda_host_runs())
    if (run.op == op) n += run.count;
  return n;
}

using OrderedOf = std::function<Ordered(const Tensor&)>;

void expect_ordered(const std::string& op, const OrderedOf& f, const Tensor& x) {
  SCOPED_TRACE(op + " of " + name(x.dtype()) + " " + to_string(x.size()));
  const Ordered here = f(x);
  const int64_t before = host_runs_of(op);
  for (int order = 0; order < 3; ++order) {
    if (!emulated::set_order(order, 11) && order > 0) break;
    const Ordered there = f(to_device(x, emulated::device()));
    EXPECT_TRUE(ordered_alike(there.indices, here.indices)) << "order " << order;
    EXPECT_TRUE(ordered_alike(there.values, here.values)) << "order " << order;
  }
  emulated::set_order(0, 11);
  EXPECT_EQ(host_runs_of(op), before) << "it was run on the CPU";
}

TEST(CudaOrdering, RowsOfOneTileAndOfMany) {
  for (const int64_t n : {1, 2, 31, 1024, 1025, 2600, 5000}) {
    const Tensor x = with_ties({2, n}, DType::f32);
    for (const bool down : {false, true})
      expect_ordered(
          "sort", [down](const Tensor& t) { return sort(t, -1, down); }, x);
    for (const int64_t k : {int64_t{1}, int64_t{9}, int64_t{700}})
      if (k <= n)
        for (const bool largest : {false, true})
          expect_ordered(
              "topk", [=](const Tensor& t) { return topk(t, k, -1, largest); }, x);
    for (const int64_t k : {int64_t{1}, n / 3 + 1, n})
      expect_ordered(
          "kthvalue", [k](const Tensor& t) { return kthvalue(t, k); }, x);
    expect_ordered(
        "mode", [](const Tensor& t) { return mode_of(t); }, x);
  }
}

TEST(CudaOrdering, TheFirstFewOfManyTilesOfWideTypes) {
  for (const DType t : {DType::f64, DType::i64}) {
    const Tensor x = with_ties({3, 2600}, t);
    for (const int64_t k : {int64_t{9}, int64_t{500}, int64_t{600}})
      expect_ordered(
          "topk", [k](const Tensor& v) { return topk(v, k, -1, false); }, x);
  }
}

TEST(CudaOrdering, EveryTypeAndAxis) {
  for (const DType t : {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16,
                        DType::bf16, DType::f32, DType::f64}) {
    const Tensor x = with_ties({5, 40, 3}, t);
    for (const int axis : {0, 1, 2}) {
      expect_ordered(
          "sort", [axis](const Tensor& v) { return sort(v, axis, true); }, x);
      expect_ordered(
          "topk", [axis](const Tensor& v) { return topk(v, 3, axis); }, x);
      expect_ordered(
          "median", [axis](const Tensor& v) { return median(v, axis, axis == 1); }, x);
      expect_ordered(
          "mode", [axis](const Tensor& v) { return mode_of(v, axis, axis == 2); }, x);
    }
    expect_ordered(
        "sort", [](const Tensor& v) { return sort(v, 0); }, permute(x, {2, 0, 1}));
  }
}

TEST(CudaOrdering, TheFirstNaNIsTheMedian) {
  Tensor x = with_ties({3, 1500}, DType::f64);
  for (int64_t i = 0; i < x.numel(); ++i)
    if (std::isnan(x.data<double>()[i])) x.data<double>()[i] = 1;
  x.data<double>()[1500 + 777] = std::nan("");
  x.data<double>()[1500 + 780] = std::nan("");
  expect_ordered(
      "median", [](const Tensor& t) { return median(t, -1); }, x);
  EXPECT_EQ(item(select(median(to_device(x, emulated::device()), -1).indices, 0, 1)), 777);
}

TEST(CudaOrdering, PlacesAmongBoundaries) {
  for (const bool right : {false, true}) {
    const auto places = [right](const Tensor& t) {
      const Tensor edges = sort(t, -1).values;
      return Ordered{edges, searchsorted(edges, t, right)};
    };
    expect_ordered("searchsorted", places, with_ties({3, 300}, DType::f32));
    expect_ordered("searchsorted", places, with_ties({2, 2, 70}, DType::i64));
    const auto one_row = [right](const Tensor& t) {
      const Tensor edges = sort(reshape(t, {t.numel()})).values;
      return Ordered{edges, searchsorted(edges, t, right)};
    };
    expect_ordered("searchsorted", one_row, with_ties({7, 50}, DType::bf16));
  }
}

TEST(CudaOrdering, CountsInBins) {
  for (const DType t : {DType::f32, DType::f64}) {
    const auto counts = [](const Tensor& v) {
      const Tensor c = histc(v, 13, -20, 31);
      return Ordered{c, c};
    };
    expect_ordered("histc", counts, with_ties({40, 60}, t));
    expect_ordered("histc", counts, permute(with_ties({9, 11, 5}, t), {2, 0, 1}));
  }
}

/// Labels that repeat, one that is the blank, a sequence without a label, one that is too short for its labels and one
/// without a step.
struct Sequences {
  Tensor targets = empty({6, 6}, DType::i64), steps = empty({6}, DType::i64), lengths = empty({6}, DType::i64);
  Sequences() {
    const int64_t labels[] = {1, 1, 2, 3, 3, 1, 2, 0, 2, 4, 1, 2, 4, 4, 4, 4, 4, 4,
                              1, 2, 3, 4, 1, 2, 3, 3, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1};
    std::copy(std::begin(labels), std::end(labels), targets.data<int64_t>());
    const int64_t of_steps[] = {30, 21, 30, 9, 4, 0}, of_labels[] = {6, 4, 6, 0, 6, 0};
    std::copy(std::begin(of_steps), std::end(of_steps), steps.data<int64_t>());
    std::copy(std::begin(of_labels), std::end(of_labels), lengths.data<int64_t>());
  }
  Tensor losses(const Tensor& x, bool zero_infinity) const {
    const Device d = x.device();
    return ctc_loss(log_softmax(x, -1), to_device(targets, d), to_device(steps, d), to_device(lengths, d), 0,
                    Reduction::none, zero_infinity);
  }
};

TEST(CudaOrdering, WaysThroughSequences) {
  const Sequences s;
  for (const DType t : {DType::f32, DType::f64})
    emulated::expect_the_cpus("ctc", [&](const std::vector<Tensor>& in) { return s.losses(in[0], true); },
                              {emulated::scattered({30, 6, 5}, 1, t)}, {"ctc_loss", "ctc_loss_backward"});
  // No way leads through a sequence that is too short.
  const Tensor x = emulated::scattered({30, 6, 5}, 1);
  const Tensor here = s.losses(x, false), there = to_host(s.losses(to_device(x, emulated::device()), false));
  EXPECT_EQ(there.data<float>()[4], INFINITY);
  EXPECT_EQ(here.data<float>()[4], INFINITY);
  EXPECT_NEAR(there.data<float>()[0], here.data<float>()[0], 1e-4);
}

TEST(CudaOrdering, ASequenceThatDoesNotFitIsNaNAlone) {
  const Tensor x = emulated::scattered({30, 6, 5}, 1);
  const Tensor right = to_host(Sequences().losses(to_device(x, emulated::device()), true));
  for (const int fault : {0, 1, 2, 3}) {
    Sequences s;
    if (fault == 0) s.targets.data<int64_t>()[6] = 5;
    if (fault == 1) s.targets.data<int64_t>()[6] = -1;
    if (fault == 2) s.steps.data<int64_t>()[1] = 31;
    if (fault == 3) s.lengths.data<int64_t>()[1] = 7;
    const Tensor y = to_host(s.losses(to_device(x, emulated::device()), true));
    for (int i = 0; i < 6; ++i) {
      if (i == 1) {
        EXPECT_TRUE(std::isnan(y.data<float>()[i])) << fault;
      } else {
        EXPECT_EQ(y.data<float>()[i], right.data<float>()[i]) << fault << ", sequence " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tenon
