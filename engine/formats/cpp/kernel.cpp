#include "engine/formats/cpp/kernel.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

Registry<CppKernel>& kernels() {
  static auto& all = *new Registry<CppKernel>("C++ kernel");
  return all;
}

/// Axes that are walked as one: neighbours without a gap between them in any operand.
struct Axes {
  std::vector<int64_t> size;
  std::vector<std::vector<int64_t>> stride;  ///< by axis, by operand
};
Axes merged(const Shape& size, const std::vector<CppOperand>& operands) {
  Axes a;
  for (int i = 0; i < size.n; ++i) {
    if (size[i] == 1) continue;
    std::vector<int64_t> stride;
    bool joins = !a.size.empty();
    for (size_t k = 0; k < operands.size(); ++k) {
      stride.push_back(operands[k].layout.stride[i]);
      joins = joins && a.stride.back()[k] == stride[k] * size[i];
    }
    if (joins) {
      a.size.back() *= size[i];
      a.stride.back() = stride;
    } else {
      a.size.push_back(size[i]);
      a.stride.push_back(stride);
    }
  }
  return a;
}

/// "x0[5 + i0 * 28 + i1]"
std::string element(const CppOperand& o, const Axes& axes, size_t k, char letter) {
  std::string at;
  auto add = [&at](bool minus, const std::string& term) {
    at += at.empty() ? (minus ? "-" : "") : minus ? " - " : " + ";
    at += term;
  };
  if (o.layout.offset) add(false, std::to_string(o.layout.offset));
  for (size_t i = 0; i < axes.size.size(); ++i) {
    const int64_t step = axes.stride[i][k];
    if (step)
      add(step < 0, fmt::format("{}{}", letter, i) + (std::abs(step) == 1 ? "" : fmt::format(" * {}", std::abs(step))));
  }
  return fmt::format("{}[{}]", o.pointer, at.empty() ? "0" : at);
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

}  // namespace

bool register_cpp(CppKernel kernel, Place place) { return kernels().add(std::move(kernel), place); }
const Registry<CppKernel>& cpp_kernels() { return kernels(); }

const StaticValue& CppCall::in(size_t i) const {
  if (!has(i)) throw OnnxUnsupported(fmt::format("its input {} is left out", i));
  return graph_.values[static_cast<size_t>(node_.inputs[i])];
}

std::vector<int64_t> CppCall::list(size_t i, const std::string& attribute, const std::vector<int64_t>& fallback) const {
  if (!has(i)) return node().integers(attribute, fallback);
  if (!in(i).constant) throw OnnxUnsupported(fmt::format("its input {} is known only at a run", i));
  const Tensor t = contiguous(cast(in(i).constant, DType::i64));
  return {t.data<int64_t>(), t.data<int64_t>() + t.numel()};
}

double CppCall::number(size_t i) const {
  if (!in(i).constant || in(i).constant.numel() != 1)
    throw OnnxUnsupported(fmt::format("its input {} is no constant number", i));
  return item(in(i).constant);
}

void CppCall::need_f32() const {
  auto check = [](const std::string& what, DType t) {
    if (t != DType::f32) throw OnnxUnsupported(fmt::format("{} is {}; its kernel is for f32", what, name(t)));
  };
  check("its result", out().dtype);
  for (size_t i = 0; i < inputs(); ++i)
    if (has(i) && !(in(i).constant && !is_floating(in(i).dtype))) check(fmt::format("its input {}", i), in(i).dtype);
}

std::string CppCall::map(const std::string& expression) {
  std::vector<CppOperand> operands = {{"y", Layout::contiguous(out().shape)}};
  std::string numbers, elements;
  for (size_t i = 0; i < inputs(); ++i) {
    const char letter = static_cast<char>('a' + i);
    if (!has(i) || !cpp_has_word(expression, std::string(1, letter))) continue;
    const StaticValue& v = in(i);
    if (v.constant && v.shape.product() == 1) {
      numbers += fmt::format("const {} {} = {};\n", cpp_type(v.dtype), letter, cpp_number(item(v.constant), v.dtype));
    } else {
      operands.push_back({fmt::format("x{}", i), spread(i)});
      elements += fmt::format("const {} {} = $x{};\n", cpp_type(v.dtype), letter, i);
    }
  }
  return numbers + cpp_loops(out().shape, operands, elements + "$y = " + expression + ";\n");
}

void CppCall::hold(size_t i, const Tensor& values, const std::string& how) { held_.push_back({i, values, how}); }

void CppCall::uses(const char* functions) {
  if (std::none_of(used_.begin(), used_.end(), [&](const char* u) { return std::strcmp(u, functions) == 0; }))
    used_.push_back(functions);
}

std::string cpp_sizes(std::initializer_list<std::pair<const char*, int64_t>> sizes) {
  std::string text;
  for (const auto& [name, value] : sizes)
    text += fmt::format("{}{} = {}", text.empty() ? "[[maybe_unused]] constexpr int " : ", ", name, value);
  return text + ";\n";
}

const char* cpp_type(DType t) {
  switch (t) {
    case DType::boolean:
      return "bool";
    case DType::u8:
      return "std::uint8_t";
    case DType::i8:
      return "std::int8_t";
    case DType::i16:
      return "std::int16_t";
    case DType::i32:
      return "std::int32_t";
    case DType::i64:
      return "std::int64_t";
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    default:
      throw OnnxUnsupported(fmt::format("numbers of the type {} have no type in C++17", name(t)));
  }
}

std::string cpp_number(double value, DType t) {
  if (t == DType::boolean) return value != 0 ? "true" : "false";
  if (!is_floating(t)) {
    return value <= -0x1p63  ? "INT64_MIN"
           : value >= 0x1p63 ? "INT64_MAX"
                             : fmt::format("{}", static_cast<int64_t>(value));
  }
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  std::string text = t == DType::f32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return t == DType::f32 ? text + "f" : text;
}

bool cpp_has_word(const std::string& text, const std::string& name) {
  auto in_name = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1))
    if ((at == 0 || !in_name(at - 1)) && !in_name(at + name.size())) return true;
  return false;
}

std::string cpp_loops(const Shape& size, const std::vector<CppOperand>& operands, const std::string& body,
                      char letter) {
  const Axes axes = merged(size, operands);
  std::string text, inner = body;
  // Longer names first: $x1 is a part of $x10.
  for (size_t k = operands.size(); k-- > 0;)
    replace_all(inner, "$" + operands[k].pointer, element(operands[k], axes, k, letter));
  for (size_t i = 0; i < axes.size.size(); ++i)
    text += fmt::format("for (int {0}{1} = 0; {0}{1} < {2}; ++{0}{1}) ", letter, i, axes.size[i]);
  return text + "{\n" + inner + "}\n";
}

}  // namespace tenon::formats
