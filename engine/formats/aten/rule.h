#pragma once
#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/registry.h"
#include "engine/formats/aten/conversion.h"
#include "engine/formats/aten/schema.h"

// What the family files of rules write their definitions with. A rule says one operator of PyTorch, in all its
// overloads, in operators of ONNX; its arguments are asked for by the names that its schema has for them. A rule is
// defined where it is registered; nothing else lists it. An operator that writes in place ("relu_") needs none.
//   TENON_ATEN(softmax) { c.result(c.add("Softmax", {c.in("self")}, {{"axis", c.integer("dim")}})); }
#define TENON_ATEN(OP)                                       \
  void aten_##OP(AtenCall& c);                               \
  const bool converted_##OP = register_aten(#OP, aten_##OP); \
  void aten_##OP([[maybe_unused]] AtenCall& c)

namespace tenon::formats {

using AtenInts = std::vector<int64_t>;

/// A node of a program on its way to ONNX. What asks for arguments throws Error where there is none of the name, and
/// OnnxUnsupported where it is given in a form that ONNX has no place for.
class AtenCall {
 public:
  AtenCall(AtenConversion& to, const AtenNode& node, const AtenSchema& schema)
      : to_(to), node_(node), schema_(schema) {}

  const std::string& overload() const { return schema_.overload; }
  size_t outputs() const { return node_.outputs.size(); }
  bool knows(const char* name) const { return schema_.find(name) != nullptr; }
  bool has(const char* name) const { return knows(name) && argument(name).kind != AtenArgument::Kind::none; }
  bool is_tensor(const char* name) const { return argument(name).kind == AtenArgument::Kind::tensor; }

  /// The ONNX value of a tensor; "" where it is None.
  std::string in(const char* name) const;
  std::vector<std::string> in_list(const char* name) const;
  int64_t integer(const char* name) const;
  AtenInts integers(const char* name) const;
  /// One number an axis: a single one stands for all.
  AtenInts window(const char* name, size_t axes) const;
  const std::vector<AtenInt>& sizes(const char* name) const;
  double number(const char* name) const;
  std::vector<double> numbers(const char* name) const;
  bool truth(const char* name) const;
  std::string text(const char* name) const;
  std::optional<DType> type(const char* name) const;  ///< of the engine; none where it is None

  DType number_type(const char* name) const;  ///< i64 of a whole number, f32 of a fraction
  const std::string& expression(const std::string& number) const { return to_.expression(number); }

  // Of a tensor.
  const AtenTensor& meta(const char* name) const;
  const std::vector<OnnxDim>& shape(const char* name) const { return meta(name).sizes; }
  int64_t rank(const char* name) const { return static_cast<int64_t>(shape(name).size()); }
  /// A size that is a number.
  int64_t size(const char* name, int64_t axis) const;
  /// An axis that counts from the end, from the beginning. Throws Error where there is none such.
  int64_t axis(const char* tensor, int64_t axis, int64_t more = 0) const;
  DType dtype(const char* name) const;
  /// The elements, where the tensor is a weight or a constant; undefined where it is known only at a run.
  Tensor constant_of(const std::string& value) const { return to_.constant_value(value); }
  std::vector<std::string> tensor_names(const char* name) const { return argument(name).names; }
  std::optional<double> filled(const std::string& tensor) const { return to_.filled(tensor); }
  const AtenTensor& meta_of(const std::string& tensor) const { return to_.meta(tensor); }

  // What is written.
  std::vector<std::string> adds(const std::string& type, std::vector<std::string> inputs,
                                std::vector<OnnxAttribute> attributes = {}, size_t outputs = 1) {
    return to_.add(node_, type, std::move(inputs), std::move(attributes), outputs);
  }
  std::string add(const std::string& type, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes = {}) {
    return adds(type, std::move(inputs), std::move(attributes))[0];
  }
  std::string constant(const Tensor& t) { return to_.constant(t); }
  std::string scalar_of(double v, DType t);
  /// A list of whole numbers: one axis.
  std::string whole(const AtenInts& v);
  std::string whole(const std::vector<AtenInt>& v);
  std::string cast_to(const std::string& value, DType from, DType to);
  /// A tensor or a number, as a value of a type.
  std::string operand(const char* name, DType t);
  /// What PyTorch promotes two arguments to, each a tensor or a number.
  DType common(const char* a, const char* b) const;
  /// The same elements in other sizes, of which some may be known only at a run.
  std::string reshaped(const std::string& value, const std::vector<OnnxDim>& from, const std::vector<OnnxDim>& to);
  void result(const std::string& value, size_t k = 0) { to_.result(node_, value, k); }
  [[noreturn]] void refuse(const std::string& why) const { throw OnnxUnsupported(why); }

 private:
  const AtenArgument& argument(const char* name) const;
  AtenConversion& to_;
  const AtenNode& node_;
  const AtenSchema& schema_;
};

struct AtenRule {
  std::string name;  ///< of the operator, without its overload
  std::function<void(AtenCall&)> convert;
};
bool register_aten(const std::string& op, std::function<void(AtenCall&)> convert, Place place = Place::current());
const Registry<AtenRule>& aten_rules();

}  // namespace tenon::formats
