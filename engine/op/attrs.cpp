#include "engine/op/attrs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "engine/spec/attr.h"

namespace tenon {
namespace {

using Type = AttrField::Type;

template <class F>
void each(const AttrsDef& def, const void* attrs, F f) {
  struct Visitor final : AttrVisitor {
    explicit Visitor(F& g) : call(g) {}
    void field(const AttrField& field) override { call(field); }
    F& call;
  } visitor(f);
  if (def.visit) def.visit(attrs, visitor);
}
std::vector<AttrField> fields_of(const AttrsDef& def, const void* attrs) {
  std::vector<AttrField> all;
  each(def, attrs, [&](const AttrField& f) { all.push_back(f); });
  return all;
}

template <class T>
T& as(const AttrField& f) {
  return *static_cast<T*>(f.at);
}
/// The number that an enumeration of any width holds.
uint64_t choice_of(const AttrField& f) {
  uint64_t v = 0;
  std::memcpy(&v, f.at, f.size);
  return v;
}
std::string choice_name(const AttrField& f) {
  const uint64_t v = choice_of(f);
  return v < f.choices->size() ? (*f.choices)[v] : std::to_string(v);
}

std::string text_of(const AttrField& f) {
  switch (f.type) {
    case Type::i64:
      return std::to_string(as<int64_t>(f));
    case Type::u64:
      return std::to_string(static_cast<int64_t>(as<uint64_t>(f)));
    case Type::f64:
      return fmt::format("{}", as<double>(f));
    case Type::boolean:
      return as<bool>(f) ? "true" : "false";
    case Type::dtype:
      return name(as<DType>(f));
    case Type::dims:
      return to_string(as<Dims>(f));
    case Type::text:
      return as<std::string>(f);
    case Type::choice:
      return choice_name(f);
    case Type::layout: {
      const auto& l = as<Layout>(f);
      return fmt::format("{} strides {} offset {}", to_string(l.size), to_string(l.stride), l.offset);
    }
    case Type::object:
      return "...";
  }
  return {};
}

/// Every bit that counts, as numbers: elements of Dims beyond their count do not.
template <class F>
void bits_of(const AttrField& f, F give) {
  auto dims = [&](const Dims& d) {
    give(d.n);
    for (int64_t v : d) give(static_cast<uint64_t>(v));
  };
  switch (f.type) {
    case Type::dims:
      return dims(as<Dims>(f));
    case Type::text:
      give(as<std::string>(f).size());
      for (char c : as<std::string>(f)) give(static_cast<unsigned char>(c));
      return;
    case Type::layout:
      dims(as<Layout>(f).size);
      dims(as<Layout>(f).stride);
      return give(static_cast<uint64_t>(as<Layout>(f).offset));
    default:
      for (size_t at = 0; at < f.size; at += 8) {
        uint64_t v = 0;
        std::memcpy(&v, static_cast<const char*>(f.at) + at, std::min<size_t>(8, f.size - at));
        give(v);
      }
  }
}
std::vector<uint64_t> bits_of(const AttrsDef& def, const void* attrs) {
  std::vector<uint64_t> all;
  each(def, attrs, [&](const AttrField& f) { bits_of(f, [&](uint64_t v) { all.push_back(v); }); });
  return all;
}

std::vector<int64_t> list_of(const Dims& d) { return {d.begin(), d.end()}; }

AttrValue value_of(const AttrField& f) {
  switch (f.type) {
    case Type::i64:
      return as<int64_t>(f);
    case Type::u64:
      return static_cast<int64_t>(as<uint64_t>(f));
    case Type::f64:
      return as<double>(f);
    case Type::boolean:
      return as<bool>(f);
    case Type::dtype:
      return std::string(name(as<DType>(f)));
    case Type::dims:
      return list_of(as<Dims>(f));
    case Type::text:
      return as<std::string>(f);
    case Type::choice:
      return choice_name(f);
    case Type::layout: {
      const auto& l = as<Layout>(f);
      std::vector<int64_t> all{l.offset};
      for (const Dims* d : {&l.size, &l.stride}) all.insert(all.end(), d->begin(), d->end());
      return all;
    }
    case Type::object:
      break;
  }
  throw Error(fmt::format("the attribute {} is an object of this process and has no value", f.name));
}

/// Puts a value into a member; false where it does not fit.
bool put(const AttrField& f, const AttrValue& v) {
  const auto* whole = std::get_if<int64_t>(&v);
  const auto* text = std::get_if<std::string>(&v);
  const auto* list = std::get_if<std::vector<int64_t>>(&v);
  switch (f.type) {
    case Type::i64:
      if (whole) as<int64_t>(f) = *whole;
      return whole;
    case Type::u64:
      if (whole) as<uint64_t>(f) = static_cast<uint64_t>(*whole);
      return whole;
    case Type::f64: {
      const auto* number = std::get_if<double>(&v);
      if (number) as<double>(f) = *number;
      if (whole) as<double>(f) = static_cast<double>(*whole);
      return number || whole;
    }
    case Type::boolean: {
      const auto* flag = std::get_if<bool>(&v);
      if (flag) as<bool>(f) = *flag;
      if (whole && (*whole == 0 || *whole == 1)) as<bool>(f) = *whole == 1;  // as ONNX has it
      return flag || (whole && (*whole == 0 || *whole == 1));
    }
    case Type::dtype:
      return text && parse_dtype(text->c_str(), as<DType>(f));
    case Type::text:
      if (text) as<std::string>(f) = *text;
      return text;
    case Type::dims:
      if (!list || list->size() > static_cast<size_t>(kMaxDims)) return false;
      as<Dims>(f) = Dims(*list);
      return true;
    case Type::layout: {
      if (!list || list->size() % 2 == 0 || list->size() > 2 * static_cast<size_t>(kMaxDims) + 1) return false;
      const auto half = static_cast<std::ptrdiff_t>(list->size() / 2);
      as<Layout>(f) = {Dims(std::vector<int64_t>(list->begin() + 1, list->begin() + 1 + half)),
                       Dims(std::vector<int64_t>(list->begin() + 1 + half, list->end())), list->front()};
      return true;
    }
    case Type::choice:
      for (uint64_t i = 0; text && i < f.choices->size(); ++i)
        if ((*f.choices)[i] == *text) {
          std::memcpy(f.at, &i, f.size);
          return true;
        }
      return false;
    case Type::object:
      return false;
  }
  return false;
}

std::string kind_of(const AttrField& f) {
  switch (f.type) {
    case Type::i64:
    case Type::u64:
      return "a whole number";
    case Type::f64:
      return "a number";
    case Type::boolean:
      return "true or false";
    case Type::dtype:
      return "the name of a dtype, such as f32";
    case Type::dims:
      return fmt::format("a list of at most {} whole numbers", kMaxDims);
    case Type::layout:
      return "a list of whole numbers: an offset, the sizes, as many strides";
    case Type::text:
      return "text";
    case Type::choice:
      return fmt::format("one of {}", fmt::join(*f.choices, ", "));
    case Type::object:
      return "an object of this process, which no value stands for";
  }
  return {};
}

}  // namespace

std::string AttrsDef::text(const void* attrs) const {
  std::string all;
  each(*this, attrs, [&](const AttrField& f) {
    if (f.shown) all += fmt::format("{}{}={}", all.empty() ? "" : " ", f.name, text_of(f));
  });
  return all;
}

bool AttrsDef::equal(const void* a, const void* b) const { return bits_of(*this, a) == bits_of(*this, b); }

uint64_t AttrsDef::hash(const void* attrs) const {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for (uint64_t v : bits_of(*this, attrs)) {
    h = (h ^ v) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return h;
}

std::vector<Attr> AttrsDef::values(const void* attrs) const {
  std::vector<Attr> all;
  each(*this, attrs, [&](const AttrField& f) { all.push_back({f.name, value_of(f)}); });
  return all;
}

/// Room for attributes that `fill` makes; they go with their last owner.
template <class F>
static std::shared_ptr<void> owned(const AttrsDef& def, F fill) {
  std::unique_ptr<void, void (*)(void*)> room(::operator new(def.size), [](void* p) { ::operator delete(p); });
  fill(room.get());
  return {room.release(), [destroy = def.destroy](void* p) {
            if (destroy) destroy(p);
            ::operator delete(p);
          }};
}

std::shared_ptr<void> AttrsDef::copy_of(const void* attrs) const {
  return owned(*this, [&](void* to) { copy(to, attrs); });
}

std::shared_ptr<void> AttrsDef::make(const std::vector<Attr>& values, const std::string& op) const {
  std::shared_ptr<void> made = owned(*this, init);
  const std::vector<AttrField> fields = fields_of(*this, made.get());
  std::vector<std::string> names;
  for (const AttrField& f : fields) names.emplace_back(f.name);
  for (const Attr& a : values)
    if (std::find(names.begin(), names.end(), a.name) == names.end()) {
      const std::string near = near_names(a.name, names.data(), names.size());
      throw Error::usage(fmt::format("{} has no attribute \"{}\"{}", op, a.name, near.empty() ? "" : " (" + near + ")"),
                         fmt::format("it has {}", fmt::join(names, ", ")));
    }
  for (const AttrField& f : fields) {
    const auto given = std::find_if(values.begin(), values.end(), [&](const Attr& a) { return a.name == f.name; });
    if (given == values.end())
      throw Error::usage(fmt::format("{}: the attribute {} is missing", op, f.name),
                         fmt::format("it is {}", kind_of(f)));
    if (!put(f, given->value))
      throw Error::usage(fmt::format("{}.{} = {}: it is {}", op, f.name, attr_text(given->value), kind_of(f)));
  }
  return made;
}

}  // namespace tenon
