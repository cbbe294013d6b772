#include "engine/formats/jit/scalars.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "core/error.h"
#include "engine/formats/jit/graph.h"

namespace tenon::formats {

const char* JitValue::what() const {
  static constexpr const char* names[] = {"None",          "a tensor",   "a whole number", "a number",
                                          "a truth value", "a text",     "a list",         "a dictionary",
                                          "a module",      "a function", "a type",         "what cannot be read"};
  return names[static_cast<size_t>(kind)];
}

namespace {

using Args = std::vector<JitValue>;

struct ScalarCall {
  JitGraph& graph;
  Args& args;
  const std::vector<std::pair<std::string, JitValue>>& named;
  const std::string& scope;
  /// None where it is not given.
  JitValue by_name(const std::string& name) const {
    for (const auto& given : named)
      if (given.first == name) return given.second;
    return {};
  }
  const JitValue& at(size_t i) const {
    if (i >= args.size()) throw Error("an argument is missing");
    return args[i];
  }
};
using Answer = std::optional<JitValue>;
using ScalarFunction = std::function<Answer(ScalarCall&)>;

bool is_number(const JitValue& v) {
  return v.kind == JitKind::whole || v.kind == JitKind::real || v.kind == JitKind::truth;
}
double number_in(const JitValue& v) {
  if (v.kind == JitKind::whole && !v.whole.name.empty())
    throw OnnxUnsupported("what it does depends on a size that is known only at a run");
  return v.kind == JitKind::real    ? v.real
         : v.kind == JitKind::truth ? static_cast<double>(v.truth)
                                    : static_cast<double>(v.whole.value);
}
bool all_numbers(const ScalarCall& c) {
  return !c.args.empty() && std::all_of(c.args.begin(), c.args.end(), [](const JitValue& v) { return is_number(v); });
}

bool equal_values(const JitGraph& graph, const JitValue& a, const JitValue& b) {
  if (a.kind == JitKind::whole && b.kind == JitKind::whole) return graph.same(a.whole, b.whole);
  if (is_number(a) && is_number(b)) return number_in(a) == number_in(b);
  if (a.kind != b.kind) return false;
  if (a.kind == JitKind::list)
    return a.items->size() == b.items->size() &&
           std::equal(a.items->begin(), a.items->end(), b.items->begin(),
                      [&](const JitValue& x, const JitValue& y) { return equal_values(graph, x, y); });
  return a.kind == JitKind::none || a.text == b.text;
}

/// torch.add(a, b, alpha) of numbers is read where alpha is 1.
void refuse_alpha(const ScalarCall& c) {
  const JitValue alpha = c.args.size() > 2 ? c.args[2] : c.by_name("alpha");
  if (alpha.kind != JitKind::none && number_in(alpha) != 1)
    throw OnnxUnsupported("a number that is multiplied on the way is not followed");
}

/// Whole numbers stay whole; of one that only a run knows the graph counts.
ScalarFunction counted(const char* graph_op, int64_t (*whole)(int64_t, int64_t), double (*real)(double, double)) {
  return [=](ScalarCall& c) -> Answer {
    if (c.args.size() < 2 || !is_number(c.args[0]) || !is_number(c.args[1])) return {};
    refuse_alpha(c);
    const JitValue &a = c.args[0], &b = c.args[1];
    if (a.kind != JitKind::whole || b.kind != JitKind::whole)
      return JitValue::fraction(real(number_in(a), number_in(b)));
    if (a.whole.name.empty() && b.whole.name.empty()) return JitValue::number(whole(a.whole.value, b.whole.value));
    if (!graph_op) throw OnnxUnsupported("it counts with a size that is known only at a run");
    return c.graph.count(graph_op, a.whole, b.whole);
  };
}
int64_t floored(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) throw Error("a number is divided by zero");
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
ScalarFunction compared(bool (*holds)(double, double)) {
  return [=](ScalarCall& c) -> Answer {
    if (!all_numbers(c)) return {};
    return JitValue::boolean(holds(number_in(c.at(0)), number_in(c.at(1))));
  };
}
size_t place_in(const JitValue& list, const JitValue& index) {
  const auto n = static_cast<int64_t>(list.items->size());
  int64_t i = static_cast<int64_t>(number_in(index));
  if (i < 0) i += n;
  if (i < 0 || i >= n) throw Error("an index is outside of its list");
  return static_cast<size_t>(i);
}

Answer added(ScalarCall& c) {
  constexpr auto plus = [](auto a, auto b) { return a + b; };
  static const ScalarFunction numbers = counted("add", plus, plus);
  return numbers(c);
}
/// Of a list of truth values.
template <bool kAny>
Answer any_or_all(ScalarCall& c) {
  if (c.at(0).kind != JitKind::list) return {};
  bool found = false;
  for (const JitValue& v : *c.at(0).items) found = found || (number_in(v) != 0) == kAny;
  return JitValue::boolean(found == kAny);
}
/// Of a list of numbers; truth values count as 1.
Answer summed_list(ScalarCall& c) {
  if (c.at(0).kind != JitKind::list) return {};
  JitValue sum = JitValue::number(0);
  for (const JitValue& v : *c.at(0).items) {
    if (!is_number(v)) return {};
    if (sum.kind == JitKind::real || v.kind == JitKind::real)
      sum = JitValue::fraction(number_in(sum) + number_in(v));
    else if (__builtin_add_overflow(sum.whole.value, static_cast<int64_t>(number_in(v)), &sum.whole.value))
      throw Error("a sum is too large");
  }
  return sum;
}
Answer tensor_of_number(ScalarCall& c) {
  const JitValue& number = c.at(0);
  if (!is_number(number)) return {};
  constexpr int64_t kLong = 4, kFloat = 6, kBool = 11;  // of c10::ScalarType
  JitValue type = c.by_name("dtype");
  if (type.kind == JitKind::none)
    type = JitValue::number(number.kind == JitKind::whole ? kLong : number.kind == JitKind::real ? kFloat : kBool);
  return c.graph.call("scalar_tensor", {number}, {{"dtype", type}}, c.scope);
}
Answer copied_list(ScalarCall& c) {
  if (c.at(0).kind != JitKind::list) return {};
  return JitValue::list(*c.at(0).items, c.at(0).tuple);
}

const std::map<std::string, ScalarFunction>& scalar_functions() {
  constexpr auto minus = [](auto a, auto b) { return a - b; };
  constexpr auto times = [](auto a, auto b) { return a * b; };
  static const auto& all = *new std::map<std::string, ScalarFunction>{
      {"torch.add",
       [](ScalarCall& c) -> Answer {
         if (c.at(0).kind == JitKind::list && c.at(1).kind == JitKind::list) {
           std::vector<JitValue> all = *c.args[0].items;
           all.insert(all.end(), c.args[1].items->begin(), c.args[1].items->end());
           return JitValue::list(std::move(all));
         }
         return added(c);
       }},
      {"torch.sub", counted("sub", minus, minus)},
      {"torch.mul", counted("mul", times, times)},
      {"torch.floordiv", counted("floordiv", floored, [](double a, double b) { return std::floor(a / b); })},
      {"torch.floor_divide", counted("floordiv", floored, [](double a, double b) { return std::floor(a / b); })},
      {"torch.remainder", counted(
                              nullptr, [](int64_t a, int64_t b) { return a - floored(a, b) * b; },
                              [](double a, double b) { return a - std::floor(a / b) * b; })},
      {"ops.prim.min", counted(
                           nullptr, [](int64_t a, int64_t b) { return std::min(a, b); },
                           [](double a, double b) { return std::min(a, b); })},
      {"ops.prim.max", counted(
                           nullptr, [](int64_t a, int64_t b) { return std::max(a, b); },
                           [](double a, double b) { return std::max(a, b); })},
      // A quotient of whole numbers is a fraction, but where it is rounded.
      {"torch.div",
       [](ScalarCall& c) -> Answer {
         if (c.args.size() < 2 || !is_number(c.args[0]) || !is_number(c.args[1])) return {};
         const std::string way = c.by_name("rounding_mode").text;
         if (way.empty()) return JitValue::fraction(number_in(c.args[0]) / number_in(c.args[1]));
         const bool known = c.args[0].is_known_whole() && c.args[1].is_known_whole();
         if (way == "trunc" && known && (c.args[0].whole.value < 0) != (c.args[1].whole.value < 0))
           throw OnnxUnsupported("it rounds a negative quotient towards zero");
         return scalar_functions().at("torch.floordiv")(c);  // sizes are not negative
       }},
      {"torch.neg",
       [](ScalarCall& c) -> Answer {
         if (!all_numbers(c)) return {};
         return c.at(0).kind == JitKind::whole ? JitValue::number(-static_cast<int64_t>(number_in(c.at(0))))
                                               : JitValue::fraction(-number_in(c.at(0)));
       }},
      {"torch.pow",
       [](ScalarCall& c) -> Answer {
         if (!all_numbers(c)) return {};
         return JitValue::fraction(std::pow(number_in(c.at(0)), number_in(c.at(1))));
       }},
      {"math.sqrt",
       [](ScalarCall& c) -> Answer {
         return all_numbers(c) ? Answer(JitValue::fraction(std::sqrt(number_in(c.at(0))))) : Answer();
       }},
      {"torch.sqrt",
       [](ScalarCall& c) -> Answer {
         return all_numbers(c) ? Answer(JitValue::fraction(std::sqrt(number_in(c.at(0))))) : Answer();
       }},
      {"torch.lt", compared([](double a, double b) { return a < b; })},
      {"torch.gt", compared([](double a, double b) { return a > b; })},
      {"torch.le", compared([](double a, double b) { return a <= b; })},
      {"torch.ge", compared([](double a, double b) { return a >= b; })},
      {"torch.eq",
       [](ScalarCall& c) -> Answer {
         if (c.at(0).is_tensor() || c.at(1).is_tensor()) return {};
         return JitValue::boolean(equal_values(c.graph, c.at(0), c.at(1)));
       }},
      {"torch.ne",
       [](ScalarCall& c) -> Answer {
         if (c.at(0).is_tensor() || c.at(1).is_tensor()) return {};
         return JitValue::boolean(!equal_values(c.graph, c.at(0), c.at(1)));
       }},
      {"torch.__is__",
       [](ScalarCall& c) -> Answer {
         return JitValue::boolean(c.at(0).kind == JitKind::none && c.at(1).kind == JitKind::none);
       }},
      {"torch.__isnot__",
       [](ScalarCall& c) -> Answer {
         return JitValue::boolean(c.at(0).kind != JitKind::none || c.at(1).kind != JitKind::none);
       }},
      {"torch.__not__", [](ScalarCall& c) -> Answer { return JitValue::boolean(number_in(c.at(0)) == 0); }},
      {"torch.__and__",
       [](ScalarCall& c) -> Answer {
         if (!all_numbers(c)) return {};
         return JitValue::boolean(number_in(c.at(0)) != 0 && number_in(c.at(1)) != 0);
       }},
      {"torch.__or__",
       [](ScalarCall& c) -> Answer {
         if (!all_numbers(c)) return {};
         return JitValue::boolean(number_in(c.at(0)) != 0 || number_in(c.at(1)) != 0);
       }},
      {"torch.len",
       [](ScalarCall& c) -> Answer {
         if (c.at(0).is_tensor()) return c.graph.size(c.at(0).text, 0, c.scope);
         if (c.at(0).kind == JitKind::text) return JitValue::number(static_cast<int64_t>(c.at(0).text.size()));
         if (!c.at(0).items) return {};
         return JitValue::number(static_cast<int64_t>(c.at(0).items->size()));
       }},
      {"torch.__getitem__",
       [](ScalarCall& c) -> Answer {
         if (c.at(0).kind != JitKind::list) return {};
         return (*c.at(0).items)[place_in(c.at(0), c.at(1))];
       }},
      {"torch.__contains__",
       [](ScalarCall& c) -> Answer {
         const JitValue& all = c.at(0);
         if (all.kind != JitKind::list) return {};
         const auto same = [&](const JitValue& v) { return equal_values(c.graph, v, c.at(1)); };
         return JitValue::boolean(std::any_of(all.items->begin(), all.items->end(), same));
       }},
      // A comprehension goes over range(from, to, step).
      {"torch.__range_length",
       [](ScalarCall& c) -> Answer {
         const double from = number_in(c.at(0)), to = number_in(c.at(1)), step = number_in(c.at(2));
         if (step == 0) throw Error("a loop has a step of zero");
         return JitValue::number(static_cast<int64_t>(std::clamp(std::ceil((to - from) / step), 0.0, 1e9)));
       }},
      {"torch.__derive_index",
       [](ScalarCall& c) -> Answer {
         return JitValue::number(static_cast<int64_t>(number_in(c.at(1)) + number_in(c.at(0)) * number_in(c.at(2))));
       }},
      {"torch.sum", summed_list},
      {"torch._set_item",
       [](ScalarCall& c) -> Answer {
         if (c.at(0).kind != JitKind::list) return {};
         c.at(0).items->at(place_in(c.at(0), c.at(1))) = c.at(2);
         return c.at(0);
       }},
      {"torch.tensor", tensor_of_number},
      {"torch.any", any_or_all<true>},
      {"torch.all", any_or_all<false>},
      {"torch.append",
       [](ScalarCall& c) -> Answer {
         if (c.at(0).kind != JitKind::list) return {};
         if (c.at(0).items->size() >= JitValue::kMostItems) throw OnnxUnsupported("it has a list of too many items");
         c.at(0).items->push_back(c.at(1));
         return c.at(0);
       }},
      {"torch.list", copied_list},
      {"torch.copy", copied_list},
      {"torch.rsub",
       [](ScalarCall& c) -> Answer {
         if (c.args.size() < 2 || !is_number(c.args[0]) || !is_number(c.args[1])) return {};
         std::swap(c.args[0], c.args[1]);
         return scalar_functions().at("torch.sub")(c);
       }},
      {"torch.slice",
       [](ScalarCall& c) -> Answer {
         if (c.at(0).kind != JitKind::list) return {};
         const auto n = static_cast<int64_t>(c.at(0).items->size());
         const auto place = [&](size_t i, int64_t otherwise) {
           if (i >= c.args.size() || c.args[i].kind == JitKind::none) return otherwise;
           const auto at = static_cast<int64_t>(std::clamp(number_in(c.args[i]), -1e15, 1e15));
           return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n);
         };
         const int64_t from = place(1, 0), to = std::max(from, place(2, n));
         if (c.args.size() > 3 && number_in(c.args[3]) != 1) throw OnnxUnsupported("it takes each second of a list");
         const auto& items = *c.at(0).items;
         return JitValue::list({items.begin() + from, items.begin() + to});
       }},
      {"torch.dim",
       [](ScalarCall& c) -> Answer {
         return JitValue::number(static_cast<int64_t>(c.graph.meta(c.at(0).text).sizes.size()));
       }},
      {"torch.size",
       [](ScalarCall& c) -> Answer {
         const std::string& tensor = c.at(0).text;
         if (c.args.size() > 1) return c.graph.size(tensor, static_cast<int64_t>(number_in(c.args[1])), c.scope);
         std::vector<JitValue> all;
         for (size_t i = 0, n = c.graph.meta(tensor).sizes.size(); i < n; ++i)
           all.push_back(c.graph.size(tensor, static_cast<int64_t>(i), c.scope));
         return JitValue::list(std::move(all));
       }},
      {"torch.numel",
       [](ScalarCall& c) -> Answer {
         int64_t all = 1;
         for (const OnnxDim& d : c.graph.meta(c.at(0).text).sizes) {
           if (d.value < 0) throw OnnxUnsupported("how many elements it has is known only at a run");
           all *= d.value;
         }
         return JitValue::number(all);
       }},
      {"torch.is_floating_point",
       [](ScalarCall& c) -> Answer { return JitValue::boolean(is_floating(c.graph.meta(c.at(0).text).dtype)); }},
      {"ops.prim.dtype",
       [](ScalarCall& c) -> Answer {
         // c10::ScalarType's numbers of the engine's types, which are in another order.
         static const std::map<DType, int64_t> numbers = {
             {DType::u8, 0},  {DType::i8, 1},  {DType::i16, 2}, {DType::i32, 3},      {DType::i64, 4},
             {DType::f16, 5}, {DType::f32, 6}, {DType::f64, 7}, {DType::boolean, 11}, {DType::bf16, 15}};
         const auto it = numbers.find(c.graph.meta(c.at(0).text).dtype);
         if (it == numbers.end()) throw OnnxUnsupported("it asks for a type that is not supported");
         return JitValue::number(it->second);
       }},
      {"ops.prim.device", [](ScalarCall&) -> Answer { return JitValue{.kind = JitKind::text, .text = "cpu"}; }},
      {"ops.prim.type", [](ScalarCall&) -> Answer { return JitValue{.kind = JitKind::text, .text = "cpu"}; }},
      {"torch.device", [](ScalarCall&) -> Answer { return JitValue{.kind = JitKind::text, .text = "cpu"}; }},
      {"torch.format", [](ScalarCall&) -> Answer { return JitValue{.kind = JitKind::text}; }},
      {"torch.warn", [](ScalarCall&) -> Answer { return JitValue(); }},
      {"ops.prim.is_nested", [](ScalarCall&) -> Answer { return JitValue::boolean(false); }},
      {"ops.prim.is_cuda", [](ScalarCall&) -> Answer { return JitValue::boolean(false); }},
      {"torch.requires_grad", [](ScalarCall&) -> Answer { return JitValue::boolean(false); }},
      {"torch.is_autocast_enabled", [](ScalarCall&) -> Answer { return JitValue::boolean(false); }},
      {"torch.is_autocast_cpu_enabled", [](ScalarCall&) -> Answer { return JitValue::boolean(false); }},
      {"torch.is_grad_enabled", [](ScalarCall&) -> Answer { return JitValue::boolean(false); }},
      {"torch.is_scripting", [](ScalarCall&) -> Answer { return JitValue::boolean(true); }},
      // A trace has whole numbers as tensors without axes on their way.
      {"ops.prim.NumToTensor", [](ScalarCall& c) -> Answer { return c.at(0); }},
      {"torch.scalar_tensor",
       [](ScalarCall& c) -> Answer { return c.at(0).kind == JitKind::whole ? Answer(c.at(0)) : Answer(); }},
  };
  return all;
}

}  // namespace

std::optional<JitValue> jit_scalar(JitGraph& graph, const std::string& function, std::vector<JitValue>& args,
                                   const std::vector<std::pair<std::string, JitValue>>& named,
                                   const std::string& scope) {
  const auto it = scalar_functions().find(function);
  if (it == scalar_functions().end()) return {};
  ScalarCall c{graph, args, named, scope};
  return it->second(c);
}
bool is_jit_scalar(const std::string& function) { return scalar_functions().contains(function); }

}  // namespace tenon::formats
