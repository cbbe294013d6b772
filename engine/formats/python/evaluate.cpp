// The expressions of a source: what Interpreter::eval makes of each kind.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/formats/python/interpreter.h"
#include "engine/formats/python/matcher.h"
#include "engine/formats/python/print.h"

namespace tenon::python {
namespace {

double real(const Value& v) { return v.kind == Value::Kind::number ? v.number : static_cast<double>(v.whole); }
bool is_number(const Value& v) {
  return v.kind == Value::Kind::whole || v.kind == Value::Kind::number || v.kind == Value::Kind::boolean;
}

/// Numbers as Python counts them: '/' is never whole, '//' and '%' round down.
Value arithmetic(const std::string& op, const Value& a, const Value& b, int line) {
  const bool whole = a.kind != Value::Kind::number && b.kind != Value::Kind::number;
  const double x = real(a), y = real(b);
  if ((op == "/" || op == "//" || op == "%") && y == 0) fail_at(line, "a division by 0");
  if (op == "/") return Value::of(x / y);
  if (!whole) {
    if (op == "+") return Value::of(x + y);
    if (op == "-") return Value::of(x - y);
    if (op == "*") return Value::of(x * y);
    if (op == "//") return Value::of(std::floor(x / y));
    if (op == "%") return Value::of(x - y * std::floor(x / y));
    if (op == "**") return Value::of(std::pow(x, y));
    fail_at(line, "'" + op + "' of numbers is not read");
  }
  int64_t m = a.whole, n = b.whole, out = 0;
  bool over = false;
  if (op == "+")
    over = __builtin_add_overflow(m, n, &out);
  else if (op == "-")
    over = __builtin_sub_overflow(m, n, &out);
  else if (op == "*")
    over = __builtin_mul_overflow(m, n, &out);
  else if (op == "//" || op == "%") {
    if (n == -1)
      over = __builtin_sub_overflow(int64_t{0}, m, &out), out = op == "%" ? 0 : out;
    else {
      int64_t q = m / n - ((m % n != 0) && ((m < 0) != (n < 0)));
      out = op == "//" ? q : m - q * n;
    }
  } else if (op == "**") {
    if (n < 0) return Value::of(std::pow(x, y));
    out = 1;
    for (int64_t i = 0; i < n && !over; ++i) {
      if (i > 64 && m != 0 && m != 1 && m != -1) over = true;
      if (m == 0 || m == 1) {
        out = m;
        break;
      }
      over = over || __builtin_mul_overflow(out, m, &out);
      if (m == -1) {
        out = n % 2 ? -1 : 1;
        break;
      }
    }
  } else {
    fail_at(line, "'" + op + "' of numbers is not read");
  }
  if (over) fail_at(line, "a number is too large");
  return Value::of(out);
}

}  // namespace

std::string dotted(const Expr& e) {
  if (e.kind == Expr::Kind::name) return e.text == "functional" ? "F" : e.text;
  if (e.kind == Expr::Kind::call && e.items.size() == 1 && dotted(e.items[0]) == "super") return "super()";
  if (e.kind != Expr::Kind::attribute) return {};
  const std::string owner = dotted(e.items[0]);
  if (owner.empty()) return {};
  std::string out = owner + "." + e.text;
  if (out == "torch.nn.functional" || out == "nn.functional") return "F";
  return out == "torch.nn" ? "nn" : out;
}

std::vector<Value> Interpreter::items_of(const Value& v, int line) const {
  if (v.kind == Value::Kind::list) return v.items;
  if (v.kind == Value::Kind::object && v.object->kind != Object::Kind::layer &&
      v.object->kind != Object::Kind::instance) {
    std::vector<Value> out;
    for (const auto& [name, part] : v.object->parts) out.push_back({.kind = Value::Kind::object, .object = part});
    return out;
  }
  fail_at(line, shown(v) + " is not a list to go through");
}

std::shared_ptr<Object> Interpreter::peek(const Expr& e, Frame& f) {
  auto object = [](const Value& v) { return v.kind == Value::Kind::object ? v.object : nullptr; };
  if (e.kind == Expr::Kind::name) {
    auto found = f.names.find(e.text);
    return found == f.names.end() ? nullptr : object(found->second);
  }
  if (e.kind == Expr::Kind::attribute) {
    auto owner = peek(e.items[0], f);
    return owner ? owner->part(e.text) : nullptr;
  }
  if (e.kind == Expr::Kind::index) {
    if (!peek(e.items[0], f)) return nullptr;
    return object(eval_index(e, f));
  }
  if (e.kind == Expr::Kind::call && e.items.size() == 2 && e.items[0].kind == Expr::Kind::attribute &&
      e.items[0].text == "get_submodule" && e.items[1].kind == Expr::Kind::text) {
    auto at = peek(e.items[0].items[0], f);
    for (size_t from = 0; at && from <= e.items[1].text.size();) {
      const size_t dot = std::min(e.items[1].text.find('.', from), e.items[1].text.size());
      at = at->part(e.items[1].text.substr(from, dot - from));
      from = dot + 1;
    }
    return at;
  }
  return nullptr;
}

Value Interpreter::eval(const Expr& e, Frame& f) {
  count(e.line);
  if (++depth_ > 400) fail_at(e.line, "it is nested too deep");
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{depth_};
  Value v;
  if (f.forward && Matcher(*this, f).match(e, v)) return v;
  switch (e.kind) {
    case Expr::Kind::none:
      return v;
    case Expr::Kind::boolean:
      return Value::truth(e.truth);
    case Expr::Kind::whole:
      return Value::of(e.integer);
    case Expr::Kind::number:
      return Value::of(e.real);
    case Expr::Kind::text:
      return Value::of(e.text);
    case Expr::Kind::name:
      return eval_name(e, f);
    case Expr::Kind::attribute:
      return eval_attribute(e, f);
    case Expr::Kind::index:
      return eval_index(e, f);
    case Expr::Kind::call:
      return eval_call(e, f);
    case Expr::Kind::binary:
      return eval_binary(e, f);
    case Expr::Kind::each:
      return eval_each(e, f);
    case Expr::Kind::choice:
      return eval(e.items[1], f).is_true() ? eval(e.items[0], f) : eval(e.items[2], f);
    case Expr::Kind::list:
      for (const Expr& i : e.items) {
        if (i.kind != Expr::Kind::star) {
          v.items.push_back(eval(i, f));
          continue;
        }
        for (Value& each : items_of(eval(i.items[0], f), e.line)) v.items.push_back(std::move(each));
      }
      v.kind = Value::Kind::list;
      return v;
    case Expr::Kind::dict:
      for (const Expr& i : e.items) v.items.push_back(eval(i, f));
      v.kind = Value::Kind::dict;
      return v;
    case Expr::Kind::unary: {
      Value of = eval(e.items[0], f);
      if (e.text == "not") return Value::truth(!of.is_true());
      if (!is_number(of)) fail_at(e.line, "'" + e.text + "' before " + shown(of) + ": no layer does that");
      if (e.text == "+") return of;
      if (e.text == "~") fail_at(e.line, "'~' is not read");
      return of.kind == Value::Kind::number ? Value::of(-of.number)
                                            : arithmetic("-", Value::of(int64_t{0}), of, e.line);
    }
    case Expr::Kind::star:
      fail_at(e.line, "'*' has no meaning here");
    case Expr::Kind::slice:
      fail_at(e.line, "a slice has no meaning here");
  }
  return v;
}

Value Interpreter::eval_name(const Expr& e, Frame& f) {
  if (auto found = f.names.find(e.text); found != f.names.end()) return found->second;
  for (const Statement& s : source_)  // constants of the file
    if (s.kind == Statement::Kind::assign && s.target.kind == Expr::Kind::name && s.target.text == e.text) {
      Frame outside;
      return eval(s.value, outside);
    }
  fail_at(e.line, "nothing is called '" + e.text + "' here");
}

Value Interpreter::eval_attribute(const Expr& e, Frame& f) {
  const std::string name = dotted(e);
  if (name == "math.pi") return Value::of(M_PI);
  if (name == "self.training") return Value::truth(true);
  if (auto o = peek(e, f)) return {.kind = Value::Kind::object, .object = o};
  if (name.starts_with("nn.") || name.starts_with("torch.") || name.starts_with("F."))
    fail_at(e.line, name + " is not called here, and has no meaning by itself");
  const Value owner = eval(e.items[0], f);
  if (owner.kind == Value::Kind::object) {
    auto found = owner.object->members.find(e.text);
    if (found != owner.object->members.end()) return found->second;
    fail_at(e.line, fmt::format("{} has no '{}'", shown(owner), e.text));
  }
  if (owner.kind == Value::Kind::tensor)
    fail_at(e.line, fmt::format("what follows from .{} of a tensor is not read", e.text),
            "a model is read without running it; nn.Flatten or x.flatten(1) need no sizes");
  fail_at(e.line, fmt::format("{} has no '{}'", shown(owner), e.text));
}

Value Interpreter::eval_index(const Expr& e, Frame& f) {
  const Value owner = eval(e.items[0], f);
  const Expr& at = e.items[1];
  const bool object = owner.kind == Value::Kind::object;
  if (object && owner.object->kind == Object::Kind::dict) {
    const Value key = eval(at, f);
    auto part = owner.object->part(key.text);
    if (!part) fail_at(e.line, shown(owner) + " has no " + shown(key));
    return {.kind = Value::Kind::object, .object = part};
  }
  if (owner.kind == Value::Kind::dict) {
    const Value key = eval(at, f);
    for (size_t i = 0; i + 1 < owner.items.size(); i += 2)
      if (owner.items[i] == key) return owner.items[i + 1];
    fail_at(e.line, "the dict has no " + shown(key));
  }
  if (owner.kind == Value::Kind::tensor)
    fail_at(e.line, "places of a tensor are not read like this",
            "x.select(dim, index) and x.narrow(dim, start, length) are");
  if (owner.kind == Value::Kind::states) return owner;
  const std::vector<Value> items = items_of(owner, e.line);
  const auto size = static_cast<int64_t>(items.size());
  auto place = [&](const Expr& p, int64_t otherwise) {
    if (p.kind == Expr::Kind::none) return otherwise;
    const Value v = eval(p, f);
    if (v.kind != Value::Kind::whole) fail_at(e.line, shown(v) + " is no place in a list");
    return v.whole < 0 ? v.whole + size : v.whole;
  };
  if (at.kind == Expr::Kind::slice) {
    const int64_t from = std::clamp<int64_t>(place(at.items[0], 0), 0, size);
    const int64_t to = std::clamp<int64_t>(place(at.items[1], size), from, size);
    return Value::list({items.begin() + from, items.begin() + to});
  }
  const int64_t i = place(at, 0);
  if (i < 0 || i >= size) fail_at(e.line, fmt::format("place {} of a list of {}", i, size));
  return items[static_cast<size_t>(i)];
}

Value Interpreter::eval_binary(const Expr& e, Frame& f) {
  const std::string& op = e.text;
  const Value a = eval(e.items[0], f);
  if (op == "and") return a.is_true() ? eval(e.items[1], f) : a;
  if (op == "or") return a.is_true() ? a : eval(e.items[1], f);
  const Value b = eval(e.items[1], f);
  if (op == "is" || op == "==") return Value::truth(a == b);
  if (op == "is not" || op == "!=") return Value::truth(!(a == b));
  if (op == "in" || op == "not in") {
    const std::vector<Value> items = items_of(b, e.line);
    return Value::truth((std::find(items.begin(), items.end(), a) != items.end()) == (op == "in"));
  }
  if (is_number(a) && is_number(b)) {
    if (op == "<") return Value::truth(real(a) < real(b));
    if (op == ">") return Value::truth(real(a) > real(b));
    if (op == "<=") return Value::truth(real(a) <= real(b));
    if (op == ">=") return Value::truth(real(a) >= real(b));
    return arithmetic(op, a, b, e.line);
  }
  if (a.kind == Value::Kind::list && b.kind == Value::Kind::list && op == "+") {
    Value out = a;
    out.items.insert(out.items.end(), b.items.begin(), b.items.end());
    return out;
  }
  if (a.kind == Value::Kind::list && b.kind == Value::Kind::whole && op == "*") {
    Value out = Value::list({});
    if (b.whole * static_cast<int64_t>(a.items.size()) > 100'000) fail_at(e.line, "a list is too long");
    for (int64_t i = 0; i < b.whole; ++i) out.items.insert(out.items.end(), a.items.begin(), a.items.end());
    return out;
  }
  if (a.kind == Value::Kind::text && b.kind == Value::Kind::text && op == "+") return Value::of(a.text + b.text);
  fail_at(e.line, fmt::format("{} {} {}: no layer does that", shown(a), op, shown(b)));
}

Value Interpreter::eval_each(const Expr& e, Frame& f) {
  const std::vector<Value> over = items_of(eval(e.items[1], f), e.line);
  Frame inner = f;
  Value out = Value::list({});
  for (const Value& v : over) {
    inner.names[e.text] = v;
    out.items.push_back(eval(e.items[0], inner));
  }
  return out;
}

}  // namespace tenon::python
