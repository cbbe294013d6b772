#pragma once
#include <fmt/format.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/registry.h"
#include "engine/formats/onnx/static_graph.h"

// What the family files of kernels write their definitions with. A kernel is the body of a C++ function: it reads x0,
// x1, ... (the node's inputs) and fills y, with every size written in as a number. A kernel is defined where it is
// registered; nothing else lists it.
//   TENON_CPP(Softmax) { return sizes({{"rows", ...}}) + R"( for (...) ... )"; }
#define TENON_CPP(TYPE)                                                   \
  std::string write_##TYPE(CppCall& c);                                   \
  const bool written_##TYPE = register_cpp({#TYPE, write_##TYPE, false}); \
  std::string write_##TYPE([[maybe_unused]] CppCall& c)
/// The same of one that writes an element of y when it has read everything of x0 that lies there: x0 may be y's own
/// memory.
#define TENON_CPP_IN_PLACE(TYPE)                                         \
  std::string write_##TYPE(CppCall& c);                                  \
  const bool written_##TYPE = register_cpp({#TYPE, write_##TYPE, true}); \
  std::string write_##TYPE([[maybe_unused]] CppCall& c)
/// A kernel that makes element i of y of the elements i of its inputs alone, `a` of x0, `b` of x1, and so on: an input
/// of y's size may lie in y's own memory. One constant number is written into the text.
#define TENON_CPP_MAP(TYPE, ...) \
  const bool mapped_##TYPE = register_cpp({#TYPE, [](CppCall& c) -> std::string { return c.map(__VA_ARGS__); }, true})

namespace tenon::formats {

/// A node on its way to C++.
class CppCall {
 public:
  CppCall(const StaticGraph& graph, const StaticNode& node) : graph_(graph), node_(node) {}

  const OnnxNode& node() const { return *node_.node; }
  int64_t opset() const { return graph_.opset; }
  bool has(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] >= 0; }
  size_t inputs() const { return node_.inputs.size(); }
  /// Throws OnnxUnsupported where it is left out.
  const StaticValue& in(size_t i) const;
  const StaticValue& out() const { return graph_.values[static_cast<size_t>(node_.output)]; }
  const Shape& shape(size_t i) const { return in(i).shape; }
  /// Layout of a contiguous input as a part of y's loops.
  Layout spread(size_t i) const { return Layout::contiguous(shape(i)).expand(out().shape); }
  /// Whole numbers of a constant input, or of the attribute where there is none.
  std::vector<int64_t> list(size_t i, const std::string& attribute, const std::vector<int64_t>& fallback = {}) const;
  /// The one number of a constant input; throws OnnxUnsupported where it is none.
  double number(size_t i) const;
  /// Throws OnnxUnsupported where an input that is there, or the result, is of another type.
  void need_f32() const;

  /// y[...] = expression for every element of y: `a`, `b`, ... are the inputs, broadcast.
  std::string map(const std::string& expression);
  /// What x<i> points to instead of the input: numbers in an order that suits the kernel. `how` tells it from other
  /// orders of the same constant.
  void hold(size_t i, const Tensor& values, const std::string& how);
  /// Functions that the body calls; written once, in front of all kernels.
  void uses(const char* functions);

  struct Held {
    size_t input;
    Tensor values;
    std::string how;
  };
  const std::vector<Held>& held() const { return held_; }
  const std::vector<const char*>& used() const { return used_; }

 private:
  const StaticGraph& graph_;
  const StaticNode& node_;
  std::vector<Held> held_;
  std::vector<const char*> used_;
};

struct CppKernel {
  std::string name;  ///< of the ONNX operator
  std::function<std::string(CppCall&)> body;
  bool in_place = false;  ///< see TENON_CPP_IN_PLACE and TENON_CPP_MAP
};
bool register_cpp(CppKernel kernel, Place place = Place::current());
const Registry<CppKernel>& cpp_kernels();

/// "constexpr int rows = 3, columns = 4;" and a newline.
std::string cpp_sizes(std::initializer_list<std::pair<const char*, int64_t>> sizes);
/// "float", "std::int64_t"; throws OnnxUnsupported for the types of 16 bits.
const char* cpp_type(DType t);
/// The number in the words of C++: "0.5f", "-INFINITY", "3".
std::string cpp_number(double value, DType t);

/// Whether a name is a word of the text.
bool cpp_has_word(const std::string& text, const std::string& name);

/// Something that a nest of loops walks over: the pointer's name and where the elements lie.
struct CppOperand {
  std::string pointer;
  Layout layout;
};
/// Loops over `size` around `body`, in which $x0 is the element of the operand x0. Axes that every operand walks
/// through without a gap are one loop. The loops count i0, i1, ... or with another letter.
std::string cpp_loops(const Shape& size, const std::vector<CppOperand>& operands, const std::string& body,
                      char letter = 'i');

}  // namespace tenon::formats
