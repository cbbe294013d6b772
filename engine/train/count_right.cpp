#include "engine/train/count_right.h"

#include "core/error.h"
#include "core/half.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/view.h"
#include "engine/train/metric.h"

namespace tenon {
namespace {

struct Half {
  uint16_t bits;
  explicit operator float() const { return half_to_float(bits); }
};
struct BFloat {
  uint16_t bits;
  explicit operator float() const { return bfloat_to_float(bits); }
};

/// Over every place of the answers in turn.
template <class T, class Answer>
int64_t count_places(const Tensor& scores, int axis, const Tensor& answers, float yes) {
  const bool binary = axis < 0;
  const int64_t classes = binary ? 1 : scores.size(axis), apart = binary ? 1 : scores.stride()[axis];
  const T* s = scores.data<T>();
  const Answer* a = answers.data<Answer>();
  Dims place = Dims::filled(answers.ndim(), 0);
  int64_t right = 0;
  for (int64_t left = answers.numel(); left > 0; --left) {
    if (binary)
      right += (static_cast<float>(*s) > yes) == (static_cast<double>(*a) > 0.5);
    else
      right += is_best_class(s, classes, apart, static_cast<int64_t>(*a));
    for (int i = place.n - 1; i >= 0; --i) {
      const int64_t step = scores.stride()[!binary && i >= axis ? i + 1 : i];
      s += step, a += answers.stride()[i];
      if (++place[i] < answers.size(i)) break;
      s -= step * place[i], a -= answers.stride()[i] * place[i];
      place[i] = 0;
    }
  }
  return right;
}

template <class Answer>
int64_t count_scores(const Tensor& scores, int axis, const Tensor& answers, float yes) {
  switch (scores.dtype()) {
    case DType::f16:
      return count_places<Half, Answer>(scores, axis, answers, yes);
    case DType::bf16:
      return count_places<BFloat, Answer>(scores, axis, answers, yes);
    case DType::f64:
      return count_places<double, Answer>(scores, axis, answers, yes);
    default:
      return count_places<float, Answer>(scores, axis, answers, yes);
  }
}

struct CountRight {
  static constexpr OpInfo info{.name = "count_right", .kind = OpKind::reduce, .own_halves = true};
  struct Attrs {
    int64_t axis = -1;
    double yes = 0;
    template <class F>
    void fields(F&& f) const {
      f("axis", axis);
      f("yes", yes);
    }
  };
  static Meta infer(const Attrs& a, const Meta& scores, const Meta& answers) {
    Shape places = scores.shape;
    if (a.axis >= places.n) throw Error("scores of size " + to_string(places) + " have no such axis of classes");
    if (a.axis >= 0) places.erase(static_cast<int>(a.axis));
    const bool typed = a.axis < 0 ? is_floating(answers.dtype) : answers.dtype == DType::i64;
    if (!counts_right(scores.dtype) || !typed || !(places == answers.shape))
      throw Error(std::string(name(answers.dtype)) + " answers of size " + to_string(answers.shape) + " are none to " +
                  name(scores.dtype) + " scores of size " + to_string(scores.shape));
    Meta m;
    m.dtype = DType::f64;
    return m;
  }
  static void cpu(const Call& c) {
    const Attrs& a = c.as<Attrs>();
    *c.out[0].data<double>() = static_cast<double>(count_right(c.in[0], c.in[1], static_cast<int>(a.axis), a.yes));
  }
  static void samples(Samples& s) {
    s.add("classes last", Attrs{1, 0}, {s.values({40, 3}), s.indices({40}, 3)});
    s.add("classes before places", Attrs{1, 0}, {s.values({3, 4, 5}), s.indices({3, 5}, 4)});
    s.add("many classes", Attrs{1, 0}, {s.values({5, 200}), s.indices({5}, 200)});
    s.add("some scores alike", Attrs{1, 0}, {cast(s.indices({60, 4}, 2), DType::f64), s.indices({60}, 4)});
    s.add("yes or no", Attrs{-1, 0.25}, {s.values({7, 9}), s.values({7, 9}, in(0, 1))});
    s.add("nothing", Attrs{1, 0}, {s.values({0, 3}), s.indices({0}, 3)});
  }
};
const Register<CountRight> count_right_op;

}  // namespace

bool counts_right(DType scores) { return is_floating(scores); }

int64_t count_right(const Tensor& scores, const Tensor& answers, int axis, double yes) {
  const auto above = static_cast<float>(yes);
  return axis >= 0                       ? count_scores<int64_t>(scores, axis, answers, above)
         : answers.dtype() == DType::f64 ? count_scores<double>(scores, axis, answers, above)
                                         : count_scores<float>(scores, axis, answers, above);
}

void count_right(const Tensor& scores, const Tensor& answers, int axis, double yes, Tensor& out) {
  const CountRight::Attrs attrs{axis, yes};
  const Tensor in[] = {scores, answers};
  run_kernel(Register<CountRight>::def(), &attrs, in, 2, &out);
}

}  // namespace tenon
