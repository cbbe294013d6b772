// What the registry's walk cannot see of the ops that index, order and solve: every dtype, large tensors on several
// threads, and errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "core/error.h"
#include "core/parallel.h"
#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/create.h"
#include "engine/ops/gather.h"
#include "engine/ops/index.h"
#include "engine/ops/join.h"
#include "engine/ops/linalg.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/scan.h"
#include "engine/ops/sort.h"
#include "engine/ops/view.h"
#include "tests/messages.h"

namespace tenon {
namespace {

using testing_words::has;
using testing_words::message_of;

Tensor whole_numbers(std::initializer_list<int64_t> list, const Shape& size = {}) {
  Tensor t = empty({static_cast<int64_t>(list.size())}, DType::i64);
  std::copy(list.begin(), list.end(), t.data<int64_t>());
  return size.n ? reshape(t, size) : t;
}
Tensor random_indices(const Shape& size, int64_t below) {
  Tensor t = empty(size, DType::i64);
  Philox random{5, 1};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<int64_t>()[i] = static_cast<int64_t>(random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(below)));
  return t;
}
Tensor random_values(const Shape& size) {
  Tensor t = empty(size);
  Philox random{5, 2};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return t;
}
void expect_equal(const Tensor& a, const Tensor& b, const char* what) {
  ASSERT_EQ(to_string(a.size()), to_string(b.size())) << what;
  const Tensor x = contiguous(a), y = contiguous(b);
  for (int64_t i = 0; i < x.numel(); ++i)
    EXPECT_EQ(storage_value(x, x.offset() + i), storage_value(y, y.offset() + i)) << what << " element " << i;
}

TEST(Ops, EveryDtypeIsIndexedSortedAndSummed) {
  const Tensor whole = whole_numbers({3, 0, 2, 1, 1, 0, 3, 2, 1, 2, 0, 3}, {3, 4}),
               at = whole_numbers({1, -1, 0, 2, 2, 0}, {3, 2});
  for (int k = 0; k < kDTypes; ++k) {
    const auto t = static_cast<DType>(k);
    SCOPED_TRACE(name(t));
    const bool boolean = t == DType::boolean;
    const Tensor plain = boolean ? cast(cast(whole, t), DType::i64) : whole, x = cast(plain, t);
    auto expect = [&](const Tensor& got, const Tensor& wanted, const char* what) {
      EXPECT_EQ(got.dtype(), t) << what;
      expect_equal(cast(got, DType::i64), boolean ? cast(cast(wanted, t), DType::i64) : wanted, what);
    };
    expect(index_select(x, 0, whole_numbers({2, 0, -1})), index_select(plain, 0, whole_numbers({2, 0, -1})),
           "index_select");
    expect(gather(x, 1, at), gather(plain, 1, at), "gather");
    expect(scatter(x, 1, at, 1.0), scatter(plain, 1, at, 1.0), "scatter");
    expect(scatter_add(x, 1, at, gather(x, 1, at)), scatter_add(plain, 1, at, gather(plain, 1, at)), "scatter_add");
    expect(scatter_reduce(x, 1, at, gather(x, 1, at), Reduce::amax),
           scatter_reduce(plain, 1, at, gather(plain, 1, at), Reduce::amax), "scatter_reduce");
    expect(index_add(x, 0, whole_numbers({1, 1}), narrow(x, 0, 0, 2)),
           index_add(plain, 0, whole_numbers({1, 1}), narrow(plain, 0, 0, 2)), "index_add");
    expect(masked_select(x, gt(whole, 1)), masked_select(plain, gt(whole, 1)), "masked_select");
    expect(cat({x, x}, 1), cat({plain, plain}, 1), "cat");
    expect(repeat(x, {2, 3}), repeat(plain, {2, 3}), "repeat");
    expect(tril(x), tril(plain), "tril");
    expect(sort(x, 1).values, sort(plain, 1).values, "sort");
    expect_equal(sort(x, 1, true).indices, sort(plain, 1, true).indices, "order");
    expect(topk(x, 2, 0).values, topk(plain, 2, 0).values, "topk");
    expect(max_dim(x, 0).values, max_dim(plain, 0).values, "max_dim");
    expect(unique(x).values, unique(plain).values, "unique");
    expect(cummax(x, 1).values, cummax(plain, 1).values, "cummax");
    expect_equal(nonzero(x), nonzero(plain), "nonzero");
    if (!is_floating(t)) {
      EXPECT_EQ(cumsum(x, 0).dtype(), DType::i64);
    }
    expect_equal(cast(cumsum(x, 0), DType::i64), cumsum(plain, 0), "cumsum");
  }
}

// Rows that meet in one place are summed in index order, whoever does it.
TEST(Ops, ThreadsDoNotChangeABitOfIndexedSums) {
  const Tensor x = random_values({500, 40}), source = random_values({60000, 40}), rows = random_indices({60000}, 500);
  const Tensor columns = random_indices({60000, 40}, 500), many = random_values({3, 100000});
  auto bits = [&] {
    const Ordered sorted = sort(many, 1), top = topk(many, 50, 1);
    return std::vector<Tensor>{index_add(x, 0, rows, source),
                               scatter_add(x, 0, columns, source),
                               index_put(x, {rows}, source),
                               scatter(x, 0, columns, source),
                               scatter_reduce(x, 0, columns, source, Reduce::mean),
                               index_select(x, 0, rows),
                               gather(x, 0, columns),
                               sorted.values,
                               sorted.indices,
                               top.values,
                               cumsum(many, 1),
                               cummax(many, 1).indices};
  };
  set_num_threads(1);
  const std::vector<Tensor> one = bits();
  set_num_threads(3);
  const std::vector<Tensor> three = bits();
  set_num_threads(0);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(std::memcmp(one[i].raw(), three[i].raw(), one[i].nbytes()), 0) << i;
}

TEST(Ops, WritingInPlaceReachesTheBase) {
  Tensor base = zeros({4, 6});
  Tensor odd = slice(base, 1, 1, 6, 2);  // columns 1, 3, 5
  index_put_(odd, {whole_numbers({0, 2}), whole_numbers({2, 0})}, full({2}, 7));
  EXPECT_EQ(value_at(base, {0, 5}), 7);
  EXPECT_EQ(value_at(base, {2, 1}), 7);
  scatter_add_(odd, 0, whole_numbers({3, 3, 3}, {1, 3}), ones({1, 3}));
  EXPECT_EQ(value_at(base, {3, 3}), 1);
  EXPECT_EQ(value_at(base, {3, 2}), 0);
  index_add_(odd, 0, whole_numbers({1, 1}), ones({2, 3}), 2);
  EXPECT_EQ(value_at(base, {1, 3}), 4);
  index_fill_(odd, 1, whole_numbers({-1}), 9);
  EXPECT_EQ(value_at(base, {2, 5}), 9);
  masked_fill_(odd, eq(odd, 9), 3);
  EXPECT_EQ(value_at(base, {2, 5}), 3);
  scatter_(odd, 1, whole_numbers({0, 0, 0, 0}, {4, 1}), 5.0);
  EXPECT_EQ(value_at(base, {3, 1}), 5);
  EXPECT_EQ(value_at(base, {3, 0}), 0) << "columns between are left alone";
  Tensor cube = zeros({2, 3, 2});
  index_put_(cube, {whole_numbers({1}), Tensor(), whole_numbers({0})}, full({1, 3}, 2));
  EXPECT_EQ(value_at(cube, {1, 2, 0}), 2);
  EXPECT_EQ(value_at(cube, {1, 2, 1}), 0);
}

TEST(Ops, WritingInPlaceIsDifferentiated) {
  Tensor x = full({4}, 1, DType::f64), v = full({2}, 3, DType::f64);
  set_requires_grad(x);
  set_requires_grad(v);
  Tensor y = mul(x, 2);
  index_put_(y, {whole_numbers({1, 3})}, v);
  masked_fill_(y, eq(arange(4), 0), 0);
  backward(sum(mul(y, arange(4, DType::f64))));
  expect_equal(grad_of(x), mul(cast(whole_numbers({0, 0, 2, 0}), DType::f64), 2), "x: only element 2 is still its own");
  expect_equal(grad_of(v), cast(whole_numbers({1, 3}), DType::f64), "v");
}

TEST(Ops, ErrorsNameTheIndexAndTheSize) {
  const Tensor x = zeros({3, 4});
  EXPECT_TRUE(has(message_of([&] {
                    index_select(x, 1, whole_numbers({0, 4}));
                  }),
                  "index 4 is out of range for axis 1 of size 4"));
  EXPECT_TRUE(has(message_of([&] {
                    index(x, {Tensor(), whole_numbers({-5})});
                  }),
                  "index -5 is out of range for axis 1 of size 4"));
  EXPECT_TRUE(has(message_of([&] {
                    gather(x, 0, whole_numbers({3}, {1, 1}));
                  }),
                  "index 3 is out of range for axis 0 of size 3"));
  EXPECT_TRUE(has(message_of([&] {
                    scatter_add(x, 0, whole_numbers({7}, {1, 1}), ones({1, 1}));
                  }),
                  "index 7 is out of range for axis 0 of size 3"));
  EXPECT_TRUE(
      has(message_of([&] { index(x, {zeros({4}, DType::boolean)}); }), "a mask of size [4] does not fit size [3, 4]"));
  EXPECT_TRUE(has(message_of([&] { index(x, {zeros({3})}); }), "an index is i64 or i32"));
  EXPECT_TRUE(has(message_of([&] {
                    index_put(x, {whole_numbers({0, 1})}, zeros({3}));
                  }),
                  "values of size [3] do not broadcast to the indexed elements' size [2, 4]"));
  EXPECT_TRUE(has(message_of([&] { cat({x, zeros({3, 4, 1})}, 0); }), "input 1 of size [3, 4, 1] does not fit [3, 4]"));
  EXPECT_TRUE(has(message_of([&] { topk(x, 5, 1); }), "k = 5 is outside 0 to 4"));
  EXPECT_TRUE(has(message_of([&] { einsum("ij,jk", {x, x}); }), "label j has sizes 4 and 3"));
  EXPECT_TRUE(has(message_of([&] { einsum("ij->iz", {x}); }), "output label z is in no operand"));
  EXPECT_TRUE(has(message_of([&] {
                    masked_scatter(x, ones({3, 4}, DType::boolean), zeros({5}));
                  }),
                  "12 true elements, the source only 5"));
}

TEST(Ops, SingularMatricesAreNamed) {
  Tensor batch = clone(expand(eye(3), {4, 3, 3}), Order::contiguous);
  fill(select(select(batch, 0, 2), 0, 1), 0);
  EXPECT_TRUE(has(message_of([&] { inv(batch); }), "matrix 2 of the batch is singular"));
  EXPECT_TRUE(has(message_of([&] { solve(batch, ones({4, 3, 1})); }), "matrix 2 of the batch is singular"));
  EXPECT_TRUE(has(message_of([&] { cholesky(batch); }),
                  "matrix 2 of the batch is not positive definite: its leading minor of order 2 is not"));
  EXPECT_TRUE(has(message_of([&] {
                    solve_triangular(batch, ones({4, 3, 1}), true);
                  }),
                  "matrix 2 of the batch is singular: element 1 of its diagonal is 0"));
  EXPECT_TRUE(has(message_of([&] { inv(select(batch, 0, 2)); }), "the matrix is singular"));
  EXPECT_TRUE(has(message_of([&] { inv(zeros({2, 3})); }), "matrices of size [2, 3] are not square"));
  fill(select(select(batch, 0, 1), 0, 0), NAN);
  for (const std::function<void()>& call :
       {std::function<void()>([&] { inv(batch); }), std::function<void()>([&] { qr(batch); }),
        std::function<void()>([&] { cholesky(batch); }), std::function<void()>([&] {
          solve(batch, ones({4, 3, 1}));
        })})
    EXPECT_TRUE(has(message_of(call), "matrix 1 of the batch holds NaN")) << message_of(call);
  EXPECT_TRUE(std::isnan(value_at(det(batch), {1})));
  EXPECT_EQ(value_at(det(batch), {0}), 1);
}

}  // namespace
}  // namespace tenon
