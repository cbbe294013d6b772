#include "engine/optim/sum_of_squares.h"

#include "engine/kernels/update.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/readings.h"

namespace tenon::optim {
namespace {

struct SumOfSquares {
  static constexpr OpInfo info{"sum_of_squares", "", OpKind::reduce};
  static Meta infer(const NoAttrs&, const Meta& x) {
    ops::common_float({&x});
    Meta m;
    m.dtype = DType::f64;
    return m;
  }
  static size_t workspace(const NoAttrs&, const Call& c) {
    kernels::Room room;
    ops::dense(c.in[0], room);
    room.take<double>(kernels::pieces_of_squares(c.in[0].numel()));
    return room.used();
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const Tensor x = ops::dense(c.in[0], room);
    ops::float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      *c.out[0].data<double>() = kernels::sum_of_squares<T>(x.numel(), x.data<T>(), static_cast<double*>(room.rest()));
    });
  }
  static void samples(Samples& s) {
    s.add("matrix", NoAttrs{}, {s.values({3, 4})});
    s.add("nothing", NoAttrs{}, {s.values({0})});
  }
};
const Register<SumOfSquares> sum_of_squares_op;

}  // namespace

size_t sum_of_squares(const Tensor& t, Readings& readings) {
  return readings.add([&](Tensor& out) {
    const NoAttrs attrs;
    run_kernel(Register<SumOfSquares>::def(), &attrs, &t, 1, &out);
  });
}
double sum_of_squares(const Tensor& t) {
  Readings alone(t.device());
  return alone.at(sum_of_squares(t, alone));
}

}  // namespace tenon::optim
