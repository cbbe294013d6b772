#include "engine/formats/jit/composites.h"

#include <fmt/format.h>

#include <functional>
#include <map>

#include "core/error.h"
#include "engine/formats/jit/graph.h"

namespace tenon::formats {
namespace {

using JitValues = std::vector<JitValue>;

class Composite {
 public:
  Composite(JitGraph& graph, const JitValues& args, const std::string& scope)
      : graph_(graph), args_(args), scope_(scope) {}

  const JitValue& at(size_t i) const {
    if (i >= args_.size()) throw OnnxUnsupported("it is given too few arguments");
    return args_[i];
  }
  JitValue call(const std::string& op, const JitValues& args) { return graph_.call(op, args, {}, scope_); }
  int64_t whole(size_t i) const {
    if (!at(i).is_known_whole()) throw OnnxUnsupported("a number that it is given is known only at a run");
    return at(i).whole.value;
  }
  bool flag(size_t i) const { return at(i).kind == JitKind::truth && at(i).truth; }
  size_t count() const { return args_.size(); }

  JitValue convolution() {
    const JitValue& weight = at(1);
    if (!weight.is_tensor()) throw OnnxUnsupported("its weight is no tensor");
    const size_t axes = graph_.meta(weight.text).sizes.size();
    if (axes < 3 || axes > 5) throw OnnxUnsupported("its weight has a form that is not supported");
    return call(fmt::format("conv{}d", axes - 2), args_);
  }

  /// Of x: weights and biases of the three projections in one and of the last; `mask` has to be none.
  JitValue attention(const JitValue& x, int64_t heads, size_t first, const JitValue& mask) {
    if (mask.kind != JitKind::none) throw OnnxUnsupported("a mask that it is given is not followed");
    const int64_t width = graph_.meta(x.text).sizes.back().value;
    if (heads < 1 || width < 1 || width % heads) throw OnnxUnsupported("its heads do not divide its width");
    const JitValue all = call("linear", {x, at(first), at(first + 1)});
    const JitValue parts = call("chunk", {all, JitValue::number(3), JitValue::number(-1)});
    JitValues qkv;
    for (const JitValue& part : *parts.items) {
      const JitValue apart = call(
          "unflatten",
          {part, JitValue::number(-1), JitValue::list({JitValue::number(heads), JitValue::number(width / heads)})});
      qkv.push_back(call("transpose", {apart, JitValue::number(1), JitValue::number(2)}));
    }
    const JitValue mixed = call("scaled_dot_product_attention", qkv);
    const JitValue turned = call("transpose", {mixed, JitValue::number(1), JitValue::number(2)});
    const JitValue beside = call("flatten", {turned, JitValue::number(2), JitValue::number(-1)});
    return call("linear", {beside, at(first + 2), at(first + 3)});
  }

  // torch._native_multi_head_attention(query, key, value, width, heads, ...)
  JitValue native_attention() {
    if (at(0).text != at(1).text || at(0).text != at(2).text)
      throw OnnxUnsupported("attention between different tensors is not followed");
    if (count() > 10 && flag(10)) throw OnnxUnsupported("the weights of its attention are asked for");
    const JitValue y = attention(at(0), whole(4), 5, count() > 9 ? at(9) : JitValue());
    return JitValue::list({y, JitValue()}, true);
  }

  // torch._transformer_encoder_layer_fwd(src, width, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu,
  // norm_first, eps, norm1, norm2, linear1, linear2, mask)
  JitValue encoder_layer() {
    JitValue x = at(0);
    const bool first = flag(8);
    const JitValue width = JitValue::list({at(1)});
    const auto norm = [&](const JitValue& v, size_t weight) {
      return call("layer_norm", {v, width, at(weight), at(weight + 1), at(9)});
    };
    const auto added = [&](const JitValue& a, const JitValue& b) { return call("add", {a, b}); };
    const JitValue mixed = attention(first ? norm(x, 10) : x, whole(2), 3, count() > 18 ? at(18) : JitValue());
    x = first ? added(x, mixed) : norm(added(x, mixed), 10);
    const JitValue wide = call("linear", {first ? norm(x, 12) : x, at(14), at(15)});
    const JitValue narrow = call("linear", {call(flag(7) ? "gelu" : "relu", {wide}), at(16), at(17)});
    return first ? added(x, narrow) : norm(added(x, narrow), 12);
  }

 private:
  JitGraph& graph_;
  const JitValues& args_;
  const std::string& scope_;
};

const std::map<std::string, JitValue (Composite::*)()>& composites() {
  static const std::map<std::string, JitValue (Composite::*)()> all = {
      {"_convolution_mode", &Composite::convolution},
      {"_native_multi_head_attention", &Composite::native_attention},
      {"_transformer_encoder_layer_fwd", &Composite::encoder_layer}};
  return all;
}

}  // namespace

bool is_jit_composite(const std::string& op) { return composites().contains(op); }

std::optional<JitValue> jit_composite(JitGraph& graph, const std::string& op, const std::vector<JitValue>& args,
                                      const std::string& scope) {
  const auto it = composites().find(op);
  if (it == composites().end()) return {};
  Composite c(graph, args, scope);
  return (c.*it->second)();
}

}  // namespace tenon::formats
