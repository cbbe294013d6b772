#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "core/dtype.h"
#include "core/layout.h"

// Note [Attributes of an op]
// An op's Attrs is a plain struct that visits every one of its members in fields():
//   struct Attrs {
//     Dims stride;
//     int64_t groups;
//     bool sums;
//     template <class F>
//     void fields(F&& f) const { f("stride", stride); f("groups", groups); f("sums", sums, false); }
//   };
// The third argument keeps a member out of the text that people read; equality, hash, values and make_attrs() take all
// of them. So attributes can be a cache's key, be written to a file and be made from named values: a member left out
// would make two different calls the same. tests/engine/op_attrs_test.cpp counts members of every registered op.
// A base is a member: f("moments", static_cast<const Moments&>(*this)). An enumeration is visited as it is, where a
// function beside it lists its names: attr_choices(Law).
namespace tenon {

struct Attr;

/// One member of some op's Attrs, as it lies in memory.
struct AttrField {
  enum class Type : uint8_t { i64, u64, f64, boolean, dtype, dims, layout, text, choice, object };
  const char* name;
  Type type;
  bool shown;
  size_t size;
  void* at;                                           ///< may be written where the Attrs may
  const std::vector<std::string>* choices = nullptr;  ///< of a choice, whose underlying type has `size` bytes
};
class AttrVisitor {
 public:
  virtual void field(const AttrField& f) = 0;

 protected:
  ~AttrVisitor() = default;
};

namespace op_detail {

template <class T>
AttrField field_of(const char* name, const T& v, bool shown) {
  using Type = AttrField::Type;
  AttrField f{name, Type::object, shown, sizeof(T), const_cast<void*>(static_cast<const void*>(&v))};
  if constexpr (std::is_same_v<T, int64_t>)
    f.type = Type::i64;
  else if constexpr (std::is_same_v<T, uint64_t>)
    f.type = Type::u64;
  else if constexpr (std::is_same_v<T, double>)
    f.type = Type::f64;
  else if constexpr (std::is_same_v<T, bool>)
    f.type = Type::boolean;
  else if constexpr (std::is_same_v<T, DType>)
    f.type = Type::dtype;
  else if constexpr (std::is_same_v<T, Dims>)
    f.type = Type::dims;
  else if constexpr (std::is_same_v<T, Layout>)
    f.type = Type::layout;
  else if constexpr (std::is_same_v<T, std::string>)
    f.type = Type::text;
  else if constexpr (std::is_enum_v<T>) {
    f.type = Type::choice;
    f.choices = &attr_choices(v);
  } else {
    static_assert(std::is_class_v<T>,
                  "an attribute is an int64_t, uint64_t, double, bool, DType, Dims, Layout, a "
                  "std::string, an enumeration with attr_choices(), or an object");
  }
  return f;
}

struct AnyMember {
  template <class T>
  operator T() const;
};
/// How many members a plain struct has.
template <class A, class... M>
constexpr int member_count() {
  if constexpr (requires { A{M{}..., AnyMember{}}; })
    return member_count<A, M..., AnyMember>();
  else
    return sizeof...(M);
}

/// Gives every member to the visitor; one that has fields itself stands for those.
struct EachMember {
  AttrVisitor& visitor;
  template <class T>
  void operator()(const char* name, const T& v, bool shown = true) {
    if constexpr (requires { v.fields(*this); })
      v.fields(*this);
    else
      visitor.field(field_of(name, v, shown));
  }
};
/// How many there are to be visited.
struct CountMembers {
  int count;
  template <class T>
  void operator()(const char*, const T& v, bool = true) {
    if constexpr (requires { v.fields(*this); }) {
      count += member_count<T>() - 1;
      v.fields(*this);
    }
  }
};

}  // namespace op_detail

/// What OpDef knows of the op's Attrs.
struct AttrsDef {
  size_t size = 0;
  int (*members)() = nullptr;        ///< how many fields() must visit
  void (*init)(void* to) = nullptr;  ///< every member its default, or 0
  void (*copy)(void* to, const void* from) = nullptr;
  void (*destroy)(void* attrs) = nullptr;  ///< null where there is nothing to do
  void (*visit)(const void* attrs, AttrVisitor& visitor) = nullptr;

  template <class A>
  static AttrsDef of();

  /// "stride=[1, 1] padding=[1, 1]"
  std::string text(const void* attrs) const;
  /// Bit by bit: a NaN is itself, and 0.0 is not -0.0.
  bool equal(const void* a, const void* b) const;
  /// Equal attributes have equal hashes, in every process.
  uint64_t hash(const void* attrs) const;
  /// Every member by name: whole numbers (of u64 the same bits), numbers, true or false, lists of whole numbers, text
  /// for dtypes ("f32") and choices; a layout as offset, sizes, strides. Throws Error for an object.
  std::vector<Attr> values(const void* attrs) const;
  /// The inverse of values(). Throws Error (usage) naming the member that is missing, unknown or of another kind, after
  /// `op`.
  std::shared_ptr<void> make(const std::vector<Attr>& values, const std::string& op) const;
  std::shared_ptr<void> copy_of(const void* attrs) const;
};

template <class A>
AttrsDef AttrsDef::of() {
  AttrsDef d;
  d.size = sizeof(A);
  d.members = [] {
    op_detail::CountMembers all{op_detail::member_count<A>()};
    A{}.fields(all);
    return all.count;
  };
  d.init = [](void* to) { new (to) A{}; };
  d.copy = [](void* to, const void* from) { new (to) A(*static_cast<const A*>(from)); };
  if constexpr (!std::is_trivially_destructible_v<A>) d.destroy = [](void* a) { static_cast<A*>(a)->~A(); };
  d.visit = [](const void* attrs, AttrVisitor& visitor) {
    static_cast<const A*>(attrs)->fields(op_detail::EachMember{visitor});
  };
  return d;
}

}  // namespace tenon
