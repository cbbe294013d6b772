#include "engine/formats/python/value.h"

#include <fmt/format.h>

#include "core/error.h"

namespace tenon::python {

bool Value::is_true() const {
  switch (kind) {
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::whole:
      return whole != 0;
    case Kind::number:
      return number != 0;
    case Kind::text:
      return !text.empty();
    case Kind::list:
    case Kind::dict:
      return !items.empty();
    default:
      return true;
  }
}
bool Value::operator==(const Value& o) const {
  auto numeric = [](Kind k) { return k == Kind::boolean || k == Kind::whole || k == Kind::number; };
  if (numeric(kind) && numeric(o.kind)) {
    if (kind != Kind::number && o.kind != Kind::number) return whole == o.whole;
    auto real = [](const Value& v) { return v.kind == Kind::number ? v.number : static_cast<double>(v.whole); };
    return real(*this) == real(o);
  }
  return kind == o.kind && text == o.text && items == o.items && object == o.object && layer == o.layer;
}

std::string shown(const Value& v) {
  switch (v.kind) {
    case Value::Kind::none:
      return "None";
    case Value::Kind::boolean:
      return v.whole ? "True" : "False";
    case Value::Kind::whole:
      return std::to_string(v.whole);
    case Value::Kind::number:
      return fmt::format("{}", v.number);
    case Value::Kind::text:
      return "\"" + v.text + "\"";
    case Value::Kind::list:
      return fmt::format("a list of {}", v.items.size());
    case Value::Kind::dict:
      return "a dict";
    case Value::Kind::tensor:
      return "a tensor";
    case Value::Kind::states:
      return "the states of a recurrent layer";
    case Value::Kind::object:
      break;
  }
  switch (v.object->kind) {
    case Object::Kind::layer:
      return "a module (" + v.object->layer.type + ")";
    case Object::Kind::sequence:
      return "an nn.Sequential";
    case Object::Kind::list:
      return "an nn.ModuleList";
    case Object::Kind::dict:
      return "an nn.ModuleDict";
    case Object::Kind::instance:
      return "a " + v.object->type->name;
    case Object::Kind::plain:
      return "an nn.Module";
  }
  return {};
}

std::shared_ptr<Object> Object::part(const std::string& name) const {
  for (const auto& [n, o] : parts)
    if (n == name) return o;
  return nullptr;
}

AttrValue attr_of(const Value& v) {
  switch (v.kind) {
    case Value::Kind::boolean:
      return v.whole != 0;
    case Value::Kind::whole:
      return v.whole;
    case Value::Kind::number:
      return v.number;
    case Value::Kind::text:
      return v.text;
    case Value::Kind::list: {
      std::vector<int64_t> list;
      for (const Value& i : v.items) {
        if (i.kind != Value::Kind::whole && i.kind != Value::Kind::none)
          throw Error("a list with " + shown(i) + " in it is not what a layer is told");
        list.push_back(i.kind == Value::Kind::none ? -1 : i.whole);
      }
      return list;
    }
    default:
      throw Error(shown(v) + " is not what a layer is told");
  }
}

void fail_at(int line, const std::string& why, const std::string& hint) {
  throw Error(fmt::format("line {}: {}", line, why), hint);
}

}  // namespace tenon::python
