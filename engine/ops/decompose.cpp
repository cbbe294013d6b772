#include "engine/ops/decompose.h"

#include <map>

#include "engine/ops/pointwise.h"

namespace tenon {
namespace {

std::map<std::string, Decomposition>& table() {
  static auto* t = new std::map<std::string, Decomposition>;  // leaked: filled by static initialisers in any order
  return *t;
}

bool unary(const char* op, Tensor (*f)(const Tensor&)) {
  return register_decomposition(op, [f](const void*, const std::vector<Tensor>& in) { return f(in[0]); });
}
const bool pointwise_ops[] = {
    unary("square", [](const Tensor& x) { return mul(x, x); }),
    unary("rsqrt", [](const Tensor& x) { return reciprocal(sqrt(x)); }),
    unary("log1p", [](const Tensor& x) { return log(add(x, 1)); }),
    unary("silu", [](const Tensor& x) { return mul(x, sigmoid(x)); }),
    unary("mish", [](const Tensor& x) { return mul(x, tanh(softplus(x))); }),
    unary("gelu", [](const Tensor& x) { return mul(mul(x, 0.5), add(erf(mul(x, 0.70710678118654752)), 1)); }),
    unary("gelu_tanh",
          [](const Tensor& x) {
            Tensor inner = mul(add(x, mul(mul(mul(x, x), x), 0.044715)), 0.79788456080286536);
            return mul(mul(x, 0.5), add(tanh(inner), 1));
          }),
    unary("logsigmoid", [](const Tensor& x) { return neg(softplus(neg(x))); }),
    unary("tanhshrink", [](const Tensor& x) { return sub(x, tanh(x)); }),
};

}  // namespace

bool register_decomposition(const std::string& op, Decomposition f) { return table().emplace(op, std::move(f)).second; }

const Decomposition* find_decomposition(const std::string& op) {
  auto found = table().find(op);
  return found == table().end() ? nullptr : &found->second;
}

}  // namespace tenon
