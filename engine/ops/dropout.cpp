#include "engine/ops/dropout.h"

#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense_room.h"

namespace tenon {
namespace {

using ops::dense;
using ops::dense_nhwc;

/// Inputs x and the key. Linear in x and its own adjoint, so it is its own gradient to any order.
struct Dropout {
  static constexpr OpInfo info{"dropout", "", OpKind::random};
  struct Attrs {
    double p;
    uint64_t stream, first;
    bool nhwc;  ///< elements are counted in channels-last order, forward and backward alike
    template <class F>
    void fields(F&& f) const {
      f("p", p);
      f("stream", stream);
      f("first", first);
      f("channels_last", nhwc, nhwc);
    }
  };
  static Meta infer(const Attrs& a, const Meta& x, const Meta& key) {
    check_key(key);
    ops::common_float({&x});
    if (!(a.p >= 0 && a.p <= 1)) throw Error("the probability " + std::to_string(a.p) + " is not between 0 and 1");
    return x;
  }
  static void place(const Attrs& a, const Tensor*, Layout* out) {
    if (a.nhwc) out[0] = Layout::channels_last(out[0].size);
  }
  static size_t workspace(const Attrs& a, const Call& c) {
    return a.nhwc ? ops::dense_nhwc_bytes(c, {0}) : ops::dense_bytes(c, {0});
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor x = a.nhwc ? dense_nhwc(c.in[0], room) : dense(c.in[0], room);
    const DrawnFrom from_key(c.in[1], a.stream, a.first);
    auto below = static_cast<uint64_t>(a.p * 0x1p32);  // 2^32 of them: p = 1 drops every word
    ops::float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      T scale = a.p < 1 ? static_cast<T>(1 / (1 - a.p)) : T(0);
      const T* from = x.data<T>();
      T* to = c.out[0].data<T>();
      // A counter gives four words, so pieces begin at multiples of four.
      parallel_for(x.numel(), 8192, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += 4) {
          Philox::Words w = from_key.random.at(from_key.counter + static_cast<uint64_t>(i) / 4);
          for (int64_t k = 0; k < 4 && i + k < end; ++k) to[i + k] = w.v[k] < below ? T(0) : from[i + k] * scale;
        }
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b10};
  static void backward(Grad& d) { d.in(0) = apply<Dropout>(d.as<Attrs>(), d.out(), d.x(1)); }
  static void samples(Samples& s) {
    s.add("half", Attrs{0.5, 5, 0, false}, {s.values({4, 5}), random_key(3, 0)});
    s.add("channels last", Attrs{0.3, 5, 2, true}, {s.values({2, 3, 2, 2}), random_key(3, 6)});
  }
};

const Register<Dropout> dropout_op;

}  // namespace

Tensor dropout(const Tensor& x, double p, const Draws& draws) {
  bool nhwc = x.ndim() == 4 && !x.is_contiguous() && x.layout().is_channels_last();
  return apply<Dropout>({p, draws.stream, draws.first, nhwc}, x, draws.key);
}

}  // namespace tenon
