#pragma once
#include "engine/ops/pointwise.h"

namespace tenon {

/// Stands for a tensor or a number in the text of a gradient, so that the text becomes public ops and is differentiable
/// again.
class Value {
 public:
  Value(double number) : number_(number) {}
  explicit Value(Tensor t) : tensor_(std::move(t)) {}
  const Tensor& tensor() const { return tensor_; }
  double number() const { return number_; }
  bool is_number() const { return !tensor_.defined(); }
  /// The tensor; a number becomes one of the size and dtype of `like`.
  Tensor tensor_like(const Tensor& like) const { return is_number() ? mul(detached_ones(like), number_) : tensor_; }

 private:
  static Tensor detached_ones(const Tensor& like);
  Tensor tensor_;
  double number_ = 0;
};

namespace sc {
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator-(const Value& a);
Value operator>(const Value& a, const Value& b);
Value operator<(const Value& a, const Value& b);
Value operator>=(const Value& a, const Value& b);
Value operator<=(const Value& a, const Value& b);
Value operator==(const Value& a, const Value& b);
Value select(const Value& c, const Value& a, const Value& b);
Value exp(const Value& a);
Value log(const Value& a);
Value tanh(const Value& a);
Value sigmoid(const Value& a);
Value softplus(const Value& a);
Value sqrt(const Value& a);
Value erf(const Value& a);
Value sin(const Value& a);
Value cos(const Value& a);
Value abs(const Value& a);
Value pow(const Value& a, const Value& b);
}  // namespace sc
using sc::operator+;
using sc::operator-;
using sc::operator*;
using sc::operator/;
using sc::operator>;
using sc::operator<;
using sc::operator>=;
using sc::operator<=;
using sc::operator==;

}  // namespace tenon
