#include "engine/op/value.h"

#include "engine/op/scalar.h"

#include "engine/ops/create.h"

namespace tenon {

Tensor Value::detached_ones(const Tensor& like) { return ones_like(like); }

namespace sc {
namespace {
using Both = Tensor (*)(const Tensor&, const Tensor&);
using WithNumber = Tensor (*)(const Tensor&, double);

// Two numbers stay a number; a number on the left becomes a tensor without dimensions.
Value binary(const Value& a, const Value& b, Both both, WithNumber right, double (*numbers)(double, double)) {
  if (a.is_number() && b.is_number()) return numbers(a.number(), b.number());
  if (b.is_number()) return Value(right(a.tensor(), b.number()));
  if (a.is_number()) return Value(both(scalar_like(a.number(), b.tensor()), b.tensor()));
  return Value(both(a.tensor(), b.tensor()));
}
Value unary(const Value& a, Tensor (*f)(const Tensor&), double (*number)(double)) {
  return a.is_number() ? Value(number(a.number())) : Value(f(a.tensor()));
}
}  // namespace

#define TENON_VALUE_BINARY(SYMBOL, OP)                                                    \
  Value operator SYMBOL(const Value& a, const Value& b) {                                 \
    return binary(a, b, OP, OP, [](double x, double y) -> double { return x SYMBOL y; }); \
  }
TENON_VALUE_BINARY(+, tenon::add)
TENON_VALUE_BINARY(-, tenon::sub)
TENON_VALUE_BINARY(*, tenon::mul)
TENON_VALUE_BINARY(/, tenon::div)
TENON_VALUE_BINARY(>, tenon::gt)
TENON_VALUE_BINARY(<, tenon::lt)
TENON_VALUE_BINARY(>=, tenon::ge)
TENON_VALUE_BINARY(<=, tenon::le)
TENON_VALUE_BINARY(==, tenon::eq)
#undef TENON_VALUE_BINARY

Value operator-(const Value& a) {
  return unary(a, tenon::neg, [](double x) { return -x; });
}
Value pow(const Value& a, const Value& b) {
  return binary(a, b, tenon::pow, tenon::pow, [](double x, double y) { return std::pow(x, y); });
}

Value select(const Value& c, const Value& a, const Value& b) {
  if (c.is_number()) return c.number() != 0 ? a : b;
  const Tensor& like = a.is_number() ? b.tensor() : a.tensor();
  auto as_tensor = [&](const Value& v) {
    if (!v.is_number()) return v.tensor();
    return like.defined() ? scalar_like(v.number(), like) : scalar(v.number(), DType::f64);
  };
  return Value(where(c.tensor(), as_tensor(a), as_tensor(b)));
}

#define TENON_VALUE_UNARY(NAME, OP, NUMBER)                         \
  Value NAME(const Value& a) {                                      \
    return unary(a, OP, [](double x) -> double { return NUMBER; }); \
  }
TENON_VALUE_UNARY(exp, tenon::exp, std::exp(x))
TENON_VALUE_UNARY(log, tenon::log, std::log(x))
TENON_VALUE_UNARY(tanh, tenon::tanh, std::tanh(x))
TENON_VALUE_UNARY(sigmoid, tenon::sigmoid, 1 / (1 + std::exp(-x)))
TENON_VALUE_UNARY(softplus, tenon::softplus, sc::softplus(x))
TENON_VALUE_UNARY(sqrt, tenon::sqrt, std::sqrt(x))
TENON_VALUE_UNARY(erf, tenon::erf, std::erf(x))
TENON_VALUE_UNARY(sin, tenon::sin, std::sin(x))
TENON_VALUE_UNARY(cos, tenon::cos, std::cos(x))
TENON_VALUE_UNARY(abs, tenon::abs, std::abs(x))
#undef TENON_VALUE_UNARY

}  // namespace sc
}  // namespace tenon
