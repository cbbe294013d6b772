#include "engine/optim/sum_of_squares.h"

#include "engine/kernels/update.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"

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

double sum_of_squares(const Tensor& t) {
  Tensor out = empty({}, DType::f64, t.device());
  const NoAttrs attrs;
  run_kernel(Register<SumOfSquares>::def(), &attrs, &t, 1, &out);
  return item(out);
}

}  // namespace tenon::optim
