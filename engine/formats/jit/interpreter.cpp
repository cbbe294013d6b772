#include "engine/formats/jit/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "core/error.h"
#include "engine/formats/jit/composites.h"
#include "engine/formats/jit/scalars.h"

namespace tenon::formats {
namespace {

using python::Expr;
using python::Statement;

constexpr int kMostCalls = 100;         // within each other
constexpr size_t kMostSteps = 300'000;  // statements and expressions, those of loops each time

std::string type_name(const PyValue& v) {
  const PyValue::Object* o = v.object();
  const PyValue::Global* g = o ? o->global() : nullptr;
  return g && g->module.starts_with("__torch__") ? g->full() : std::string();
}

/// What is said of an operator where it cannot be read.
[[noreturn]] void refuse_at(const std::string& function, const std::string& scope, const Error& e) {
  throw OnnxUnsupported(
      fmt::format("{} {}: {}", function, scope.empty() ? "of the program" : "in '" + scope + "'", e.message()));
}

bool is_unknown(const JitValue& v) {
  if (v.kind == JitKind::list || v.kind == JitKind::dict)
    return std::any_of(v.items->begin(), v.items->end(), is_unknown);
  return v.kind == JitKind::unknown;
}

void collect_tensors(const JitValue& v, std::vector<std::string>& out) {
  if (v.is_tensor()) return out.push_back(v.text);
  if (v.kind == JitKind::none) return;  // of a tuple: what this program does not give
  if (!v.items) throw OnnxUnsupported(fmt::format("it gives {}, where tensors are looked for", v.what()));
  for (const JitValue& item : *v.items) collect_tensors(item, out);
}

}  // namespace

JitInterpreter::JitInterpreter(const JitArchive& archive, JitGraph& graph) : archive_(archive), graph_(graph) {
  // What stands in several places has the name of the first one.
  const std::function<void(const PyValue&, const std::string&, int)> visit = [&](const PyValue& v,
                                                                                 const std::string& path, int depth) {
    if (depth > kMostCalls || !paths_.emplace(&v, path).second) return;
    const auto below = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
    if (const PyValue::Dict* all = jit_attributes(v)) {
      for (const auto& [key, value] : *all)
        if (const auto* name = key->as<std::string>()) visit(*value, below(*name), depth + 1);
    } else if (const PyValue::List* list = jit_list(v)) {
      for (size_t i = 0; i < list->size(); ++i) visit(*(*list)[i], below(std::to_string(i)), depth + 1);
    }
  };
  visit(archive_.root(), "", 0);
}

JitValue JitInterpreter::module_of(const PyValue& v) const {
  const auto it = paths_.find(&v);
  return {.kind = JitKind::module, .text = it == paths_.end() ? "" : it->second, .object = &v};
}

/// A value of the file as one of the code. `path` is its tensor's name, where it is one.
JitValue JitInterpreter::value_of(const PyValue& v, const std::string& path) {
  if (v.as<std::monostate>()) return {};
  if (const auto* b = v.as<bool>()) return JitValue::boolean(*b);
  if (const auto* i = v.as<int64_t>()) return JitValue::number(*i);
  if (const auto* d = v.as<double>()) return JitValue::fraction(*d);
  if (const auto* s = v.as<std::string>()) return {.kind = JitKind::text, .text = *s};
  if (const PyValue::List* list = jit_list(v)) {
    std::vector<JitValue> items;
    for (size_t i = 0; i < list->size(); ++i) items.push_back(value_of(*(*list)[i], fmt::format("{}.{}", path, i)));
    return JitValue::list(std::move(items), v.tuple);
  }
  if (jit_attributes(v)) return module_of(v);
  JitValue tensor = graph_.weight(path);
  if (const auto first = paths_.find(&v); tensor.kind == JitKind::none && first != paths_.end())
    tensor = graph_.weight(first->second);
  if (tensor.kind == JitKind::none)
    throw OnnxUnsupported(fmt::format("the file has no values that can be read of \"{}\"", path));
  return tensor;
}

JitValue JitInterpreter::attribute(const JitValue& of, const std::string& name) {
  if (of.kind != JitKind::module) throw OnnxUnsupported(fmt::format("it asks {} for \"{}\"", of.what(), name));
  // The outermost object of a damaged file may have none.
  if (const PyValue::Dict* own = jit_attributes(*of.object))
    for (const auto& [key, value] : *own)
      if (const auto* text = key->as<std::string>(); text && *text == name)
        return value_of(*value, of.text.empty() ? name : of.text + "." + name);
  // What never changes stands in the class.
  if (const Statement* type = archive_.type(type_name(*of.object)))
    for (const Statement& s : type->body)
      if (s.kind == Statement::Kind::assign && s.target.kind == Expr::Kind::name && s.target.text == name) {
        Frame none;
        return evaluate(s.value, none);
      }
  throw OnnxUnsupported(fmt::format("'{}' has no \"{}\"", of.text, name));
}

std::vector<std::string> JitInterpreter::forward(size_t inputs) {
  std::vector<JitValue> args;
  for (size_t i = 0; i < inputs; ++i) args.push_back(graph_.input(i));
  std::vector<std::string> outputs;
  try {
    const JitValue made = call_method(module_of(archive_.root()), "forward", std::move(args), {});
    if (lacked_.empty()) collect_tensors(made, outputs);
  } catch (const Error&) {  // what lacks an operator need not go on
    if (lacked_.empty()) throw;
  }
  if (!lacked_.empty()) refuse_lacked();
  if (outputs.empty()) throw OnnxUnsupported("it gives no tensor");
  return outputs;
}

std::vector<std::string> JitInterpreter::inputs_that_are_no_tensors() const {
  std::vector<std::string> all;
  const Statement* forward = archive_.method(type_name(archive_.root()), "forward");
  for (size_t i = 1; forward && i < forward->parameters.size(); ++i) {
    const Statement::Parameter& p = forward->parameters[i];
    if (!p.has_default && !p.note.empty() && p.note != "Tensor" && p.note != "Optional[Tensor]")
      all.push_back(fmt::format("{} ({})", p.name, p.note));
  }
  return all;
}

JitValue JitInterpreter::lacked(const std::string& function, const std::string& why) {
  const auto it = std::find_if(lacked_.begin(), lacked_.end(),
                               [&](const Lacked& l) { return l.function == function && l.why == why; });
  if (it == lacked_.end())
    lacked_.push_back({function, scope_, why});
  else
    ++it->count;
  return {.kind = JitKind::unknown};
}

void JitInterpreter::refuse_lacked() const {
  std::string list;
  for (const Lacked& l : lacked_)
    list += fmt::format("{}{} {}{}: {}", list.empty() ? "" : "; ", l.function,
                        l.scope.empty() ? "of the program" : "in '" + l.scope + "'",
                        l.count > 1 ? fmt::format(" and {} more", l.count - 1) : "", l.why);
  throw OnnxUnsupported(list);
}

JitValue JitInterpreter::invoke(const Statement& f, std::vector<JitValue> args, const Named& named,
                                const std::string& scope) {
  if (++depth_ > kMostCalls) throw OnnxUnsupported("its functions call each other too deep");
  Frame frame;
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    const Statement::Parameter& p = f.parameters[i];
    const auto by_name = std::find_if(named.begin(), named.end(), [&](const auto& n) { return n.first == p.name; });
    if (i < args.size())
      frame[p.name] = args[i];
    else if (by_name != named.end())
      frame[p.name] = by_name->second;
    else if (p.has_default)
      frame[p.name] = evaluate(p.fallback, frame);
    else
      throw OnnxUnsupported(fmt::format("{} of '{}' is not given \"{}\"", f.name, scope, p.name));
  }
  const std::string before = std::exchange(scope_, scope);
  const std::optional<JitValue> result = block(f.body, frame);
  scope_ = before;
  --depth_;
  return result.value_or(JitValue());
}

std::optional<JitValue> JitInterpreter::block(const std::vector<Statement>& body, Frame& frame) {
  for (const Statement& s : body) {
    if (++steps_ > kMostSteps) throw OnnxUnsupported("its code does not come to an end here");
    switch (s.kind) {
      case Statement::Kind::pass:
        break;
      case Statement::Kind::expression:
        evaluate(s.value, frame);
        break;
      case Statement::Kind::assign:
        assign(s.target, evaluate(s.value, frame), frame);
        break;
      case Statement::Kind::give:
        return evaluate(s.value, frame);
      case Statement::Kind::branch: {
        const JitValue truth = number_of(evaluate(s.value, frame));
        if (truth.kind != JitKind::truth && !truth.is_known_whole())
          throw OnnxUnsupported(fmt::format("a branch {} depends on {}, which only a run knows",
                                            scope_.empty() ? "of the program" : "in '" + scope_ + "'", truth.what()));
        const bool taken = truth.kind == JitKind::truth ? truth.truth : truth.whole.value != 0;
        if (auto result = block(taken ? s.body : s.other, frame)) return result;
        break;
      }
      case Statement::Kind::loop:
        if (auto result = loop(s, frame)) return result;
        break;
      default:
        throw OnnxUnsupported(fmt::format("its code has \"{}\", which is not read here", s.name));
    }
  }
  return {};
}

std::optional<JitValue> JitInterpreter::loop(const Statement& s, Frame& frame) {
  const JitValue over = evaluate(s.value, frame);
  if (over.kind != JitKind::list) throw OnnxUnsupported(fmt::format("a loop goes over {}", over.what()));
  const std::vector<JitValue> items = *over.items;
  for (const JitValue& v : items) {
    assign(s.target, v, frame);
    if (auto result = block(s.body, frame)) return result;
  }
  return {};
}

void JitInterpreter::assign(const Expr& target, const JitValue& v, Frame& frame) {
  if (target.kind == Expr::Kind::name) {
    frame[target.text] = v;
    return;
  }
  if (target.kind == Expr::Kind::list && v.kind == JitKind::unknown) {
    for (const Expr& part : target.items) assign(part, v, frame);
    return;
  }
  if (target.kind != Expr::Kind::list)
    throw OnnxUnsupported("it changes a value of its modules or of a list while it runs");
  if (v.kind != JitKind::list || v.items->size() != target.items.size())
    throw OnnxUnsupported(fmt::format("{} is taken apart into {} values", v.what(), target.items.size()));
  for (size_t i = 0; i < target.items.size(); ++i) assign(target.items[i], (*v.items)[i], frame);
}

/// "torch.relu", of names that are no variables.
std::string JitInterpreter::dotted(const Expr& e, const Frame& frame) const {
  if (e.kind == Expr::Kind::name) return frame.contains(e.text) ? "" : e.text;
  if (e.kind != Expr::Kind::attribute || e.items.size() != 1) return {};
  const std::string of = dotted(e.items[0], frame);
  return of.empty() ? "" : of + "." + e.text;
}

JitValue JitInterpreter::evaluate(const Expr& e, Frame& frame) {
  if (++steps_ > kMostSteps) throw OnnxUnsupported("its code does not come to an end here");
  switch (e.kind) {
    case Expr::Kind::none:
      return {};
    case Expr::Kind::boolean:
      return JitValue::boolean(e.truth);
    case Expr::Kind::whole:
      return JitValue::number(e.integer);
    case Expr::Kind::number:
      return JitValue::fraction(e.real);
    case Expr::Kind::text:
      return {.kind = JitKind::text, .text = e.text};
    case Expr::Kind::name: {
      if (const auto it = frame.find(e.text); it != frame.end()) return it->second;
      if (e.text == "inf") return JitValue::fraction(std::numeric_limits<double>::infinity());
      if (e.text == "None") return {};
      throw OnnxUnsupported(fmt::format("its code reads \"{}\", which nothing makes", e.text));
    }
    case Expr::Kind::list: {
      std::vector<JitValue> items;
      for (const Expr& item : e.items) items.push_back(evaluate(item, frame));
      return JitValue::list(std::move(items), e.tuple);
    }
    case Expr::Kind::dict: {
      JitValue v = JitValue::list({});
      v.kind = JitKind::dict;
      for (size_t i = 1; i < e.items.size(); i += 2) v.items->push_back(evaluate(e.items[i], frame));
      return v;
    }
    case Expr::Kind::call:
      return call(e, frame);
    case Expr::Kind::attribute: {
      const std::string name = dotted(e, frame);
      if (name.starts_with("CONSTANTS.c")) {
        const JitValue held = graph_.weight("constants." + name.substr(std::string("CONSTANTS.c").size()));
        if (held.kind == JitKind::none) throw OnnxUnsupported(fmt::format("{} has no values that can be read", name));
        return held;
      }
      if (name.starts_with("__torch__.")) return {.kind = JitKind::function, .text = name};
      if (name == "math.inf") return JitValue::fraction(std::numeric_limits<double>::infinity());
      return attribute(evaluate(e.items.at(0), frame), e.text);
    }
    case Expr::Kind::index: {
      std::vector<JitValue> args = {evaluate(e.items.at(0), frame)};
      if (e.items.at(1).kind == Expr::Kind::slice) {
        for (const Expr& end : e.items[1].items) args.push_back(evaluate(end, frame));
        return call_torch("torch.slice", std::move(args), {});
      }
      args.push_back(evaluate(e.items.at(1), frame));
      return call_torch("torch.__getitem__", std::move(args), {});
    }
    case Expr::Kind::unary: {
      const JitValue v = number_of(evaluate(e.items.at(0), frame));
      return call_torch(e.text == "not" ? "torch.__not__" : e.text == "-" ? "torch.neg" : "torch." + e.text, {v}, {});
    }
    case Expr::Kind::binary:
      return binary(e, frame);
    case Expr::Kind::choice: {
      const JitValue truth = evaluate(e.items.at(1), frame);
      if (truth.kind != JitKind::truth) throw OnnxUnsupported(fmt::format("a choice depends on {}", truth.what()));
      return evaluate(e.items[truth.truth ? 0 : 2], frame);
    }
    default:
      throw OnnxUnsupported("its code has an expression that is not read here");
  }
}

JitValue JitInterpreter::binary(const Expr& e, Frame& frame) {
  static const std::map<std::string, const char*> names = {{"+", "torch.add"},
                                                           {"-", "torch.sub"},
                                                           {"*", "torch.mul"},
                                                           {"/", "torch.div"},
                                                           {"//", "torch.floordiv"},
                                                           {"<", "torch.lt"},
                                                           {">", "torch.gt"},
                                                           {"<=", "torch.le"},
                                                           {">=", "torch.ge"},
                                                           {"==", "torch.eq"},
                                                           {"!=", "torch.ne"},
                                                           {"is", "torch.__is__"},
                                                           {"is not", "torch.__isnot__"},
                                                           {"%", "torch.remainder"}};
  const JitValue a = evaluate(e.items.at(0), frame);
  if (e.text == "and" || e.text == "or") {
    if (a.kind != JitKind::truth) throw OnnxUnsupported(fmt::format("\"{}\" is asked of {}", e.text, a.what()));
    return a.truth == (e.text == "or") ? a : evaluate(e.items.at(1), frame);
  }
  const auto it = names.find(e.text);
  if (it == names.end()) throw OnnxUnsupported(fmt::format("its code has \"{}\", which is not read here", e.text));
  return call_torch(it->second, {a, evaluate(e.items.at(1), frame)}, {});
}

/// A constant of the program that holds one whole number.
JitValue JitInterpreter::number_of(const JitValue& v) const {
  static const std::string held = "held:constants.";
  if (!v.is_tensor() || !v.text.starts_with(held)) return v;
  const auto at = static_cast<size_t>(std::stoul(v.text.substr(held.size())));
  const Tensor t = at < archive_.constants().size() ? archive_.constants()[at] : Tensor();
  if (!t || t.numel() != 1 || t.ndim() != 0 || is_floating(t.dtype())) return v;
  return JitValue::number(t.dtype() == DType::i64   ? *t.data<int64_t>()
                          : t.dtype() == DType::i32 ? *t.data<int32_t>()
                          : t.dtype() == DType::boolean
                              ? *t.data<bool>()
                              : throw OnnxUnsupported("a constant is of a type that is not read"));
}

/// What is no operator: "int(x)", "annotate(List[int], [])".
std::optional<JitValue> JitInterpreter::builtin(const std::string& name, const Expr& e, Frame& frame) {
  const auto argument = [&](size_t i) {
    if (e.items.size() <= i + 1) throw OnnxUnsupported(name + " is called without its argument");
    return evaluate(e.items[i + 1], frame);
  };
  if (name == "annotate" || name == "unchecked_cast") return argument(1);
  if (name == "uninitialized") return JitValue();
  if (name == "getattr") return attribute(argument(0), argument(1).text);
  if (name == "int" || name == "float" || name == "bool") {
    const JitValue v = number_of(argument(0));
    if ((v.kind == JitKind::whole && name == "int") || v.kind == JitKind::unknown) return v;
    if (v.kind != JitKind::real && v.kind != JitKind::truth && !v.is_known_whole())
      throw OnnxUnsupported(fmt::format("{}() of {}, which only a run knows", name, v.what()));
    const double number = v.kind == JitKind::real    ? v.real
                          : v.kind == JitKind::truth ? static_cast<double>(v.truth)
                                                     : static_cast<double>(v.whole.value);
    return name == "int"     ? JitValue::number(static_cast<int64_t>(std::clamp(number, -1e18, 1e18)))
           : name == "float" ? JitValue::fraction(number)
                             : JitValue::boolean(number != 0);
  }
  if (name == "range") {
    const JitValue n = argument(e.items.size() > 2 ? 1 : 0),
                   from = e.items.size() > 2 ? argument(0) : JitValue::number(0);
    if (!n.is_known_whole() || !from.is_known_whole() ||
        n.whole.value > from.whole.value + static_cast<int64_t>(JitValue::kMostItems))
      throw OnnxUnsupported("how often a loop goes round is known only at a run");
    std::vector<JitValue> items;
    for (int64_t i = from.whole.value; i < n.whole.value; ++i) items.push_back(JitValue::number(i));
    return JitValue::list(std::move(items));
  }
  if (name == "ops.prim.RaiseException") throw OnnxUnsupported("its code comes to where it raises an exception");
  return {};
}

JitValue JitInterpreter::call(const Expr& e, Frame& frame) {
  const Expr& callee = e.items.at(0);
  const std::string name = dotted(callee, frame);
  if (!name.empty())
    if (auto v = builtin(name, e, frame)) return *v;
  std::vector<JitValue> args;
  for (size_t i = 1; i < e.items.size(); ++i) args.push_back(evaluate(e.items[i], frame));
  Named named;
  for (const auto& [key, value] : e.named) named.emplace_back(key, evaluate(value, frame));
  if (name.starts_with("torch.") || name.starts_with("ops.") || name.starts_with("math."))
    return call_torch(name, std::move(args), named);
  JitValue f = name.starts_with("__torch__.") ? JitValue{.kind = JitKind::function, .text = name} : JitValue();
  if (f.kind == JitKind::none && callee.kind == Expr::Kind::attribute)
    return call_method(evaluate(callee.items.at(0), frame), callee.text, std::move(args), named);
  if (f.kind == JitKind::none) f = evaluate(callee, frame);
  const Statement* code = f.kind == JitKind::function ? archive_.function(f.text) : nullptr;
  if (!code && archive_.type(f.text)) return JitValue::list(std::move(args), true);  // a tuple with names
  if (!code)
    throw OnnxUnsupported(
        fmt::format("its code calls {}, which is no function of the archive", name.empty() ? f.what() : name));
  return invoke(*code, std::move(args), named, scope_);
}

JitValue JitInterpreter::call_method(const JitValue& of, const std::string& name, std::vector<JitValue> args,
                                     const Named& named) {
  if (of.kind != JitKind::module) throw OnnxUnsupported(fmt::format("its code calls {} of {}", name, of.what()));
  const Statement* code = archive_.method(type_name(*of.object), name);
  if (!code) throw OnnxUnsupported(fmt::format("the archive has no code of {} of '{}'", name, of.text));
  args.insert(args.begin(), of);
  return invoke(*code, std::move(args), named, of.text);
}

JitValue JitInterpreter::call_torch(const std::string& function, std::vector<JitValue> args, const Named& named) {
  const std::string op_name = function.substr(function.rfind('.') + 1);
  try {
    if (std::any_of(args.begin(), args.end(), is_unknown) ||
        std::any_of(named.begin(), named.end(), [](const auto& n) { return is_unknown(n.second); })) {
      if (is_jit_scalar(function) || is_jit_composite(op_name) || op_name == "_convolution" ||
          JitGraph::has_rule(op_name))
        return {.kind = JitKind::unknown};
      return lacked(function, "there is no rule for this operator");
    }
    // Where one is a number, a constant without axes is one, too.
    if (std::any_of(args.begin(), args.end(), [](const JitValue& v) { return v.kind == JitKind::whole; }) &&
        std::none_of(args.begin(), args.end(),
                     [this](const JitValue& v) { return v.is_tensor() && number_of(v).is_tensor(); }))
      for (JitValue& v : args) v = number_of(v);
    if (auto known = jit_scalar(graph_, function, args, named, scope_)) return *known;
    std::string op = op_name;
    // The last arguments say how cuDNN goes about it.
    constexpr size_t kOfConvolution = 9;
    if (op == "_convolution") {
      op = "convolution";
      if (args.size() > kOfConvolution) args.resize(kOfConvolution);
    }
    if (auto made = jit_composite(graph_, op, args, scope_)) return *made;
    return graph_.call(op, args, named, scope_);
  } catch (const OnnxUnsupported& e) {
    return lacked(function, e.message());
  } catch (const Error& e) {  // what it is given does not fit: other inputs may
    if (!lacked_.empty()) refuse_lacked();
    refuse_at(function, scope_, e);
  }
}

}  // namespace tenon::formats
