#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/tensor_bytes.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/onnx/model_bytes.h"
#include "engine/formats/onnx/proto.h"

namespace tenon::formats {
namespace {

using onnx::TensorProto;

struct TypePair {
  TensorProto::DataType onnx;
  DType dtype;
};
constexpr TypePair kTypes[] = {{TensorProto::BOOL, DType::boolean}, {TensorProto::UINT8, DType::u8},
                               {TensorProto::INT8, DType::i8},      {TensorProto::INT16, DType::i16},
                               {TensorProto::INT32, DType::i32},    {TensorProto::INT64, DType::i64},
                               {TensorProto::FLOAT16, DType::f16},  {TensorProto::BFLOAT16, DType::bf16},
                               {TensorProto::FLOAT, DType::f32},    {TensorProto::DOUBLE, DType::f64}};

int64_t parse_number(const std::string& text, const std::string& where) {
  int64_t n = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0)
    throw Error(fmt::format("{}: \"{}\" is no position in its external data", where, text));
  return n;
}

// The schema is older than these; their numbers are those of onnx.proto since ONNX 1.16.
constexpr int kUint4 = 21, kInt4 = 22;

/// Two elements a byte, the first in the low half.
Tensor unpacked(std::string_view bytes, const Shape& shape, DType dtype) {
  Tensor t = empty(shape, dtype);
  auto* to = static_cast<uint8_t*>(t.raw());
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(i / 2)]);
    const auto half = static_cast<uint8_t>(i % 2 ? byte >> 4 : byte & 15);
    to[i] = static_cast<uint8_t>(dtype == DType::i8 && half > 7 ? half - 16 : half);
  }
  return t;
}

template <class To, class Field>
void copy_field(const Field& field, Tensor& t, const std::string& where) {
  if (field.size() != t.numel())
    throw Error(fmt::format("{} has {} elements in its data and {} in its shape", where, field.size(), t.numel()));
  To* to = t.data<To>();
  for (int64_t i = 0; i < t.numel(); ++i) to[i] = static_cast<To>(field[static_cast<int>(i)]);
}

}  // namespace

TensorProto::DataType onnx_type(DType t) {
  for (const TypePair& p : kTypes)
    if (p.dtype == t) return p.onnx;
  return TensorProto::UNDEFINED;
}

bool dtype_from_onnx(int type, DType& out) {
  for (const TypePair& p : kTypes)
    if (p.onnx == type) {
      out = p.dtype;
      return true;
    }
  return false;
}

bool four_bit_from_onnx(int type, DType& out) {
  if (type != kUint4 && type != kInt4) return false;
  out = type == kUint4 ? DType::u8 : DType::i8;
  return true;
}

std::string onnx_type_name(int type) {
  static constexpr const char* names[] = {"undefined",      "float",    "uint8",        "int8",           "uint16",
                                          "int16",          "int32",    "int64",        "string",         "bool",
                                          "float16",        "double",   "uint32",       "uint64",         "complex64",
                                          "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
                                          "float8e5m2fnuz", "uint4",    "int4"};
  return type >= 0 && type < static_cast<int>(std::size(names)) ? names[type] : fmt::format("type {}", type);
}

ExternalData ExternalData::beside(const std::string& model) {
  const std::string folder = std::filesystem::path(model).parent_path().string();
  return ExternalData(folder.empty() ? "." : folder);
}

std::shared_ptr<const MappedFile> ExternalData::bytes_of(const TensorProto& proto, const std::string& where,
                                                         size_t expected) {
  namespace fs = std::filesystem;
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = parse_number(entry.value(), where);
    if (entry.key() == "length") length = parse_number(entry.value(), where);
  }
  if (folder_.empty())
    throw Error(fmt::format("{} lies in another file ({}), which cannot be reached from here", where, location));
  std::error_code code;
  const fs::path root = fs::weakly_canonical(folder_, code), path = fs::weakly_canonical(root / location, code);
  const fs::path inside = path.lexically_relative(root);
  if (code || location.empty() || inside.empty() || *inside.begin() == "..")
    throw Error(fmt::format("{} points to \"{}\", outside the model's folder", where, location));
  const auto size = fs::file_size(path, code);
  if (code) throw Error(fmt::format("{}: its external data {} is missing", where, path.string()));
  if (length >= 0 && static_cast<size_t>(length) != expected)
    throw Error(fmt::format("{}: {} bytes of external data for a tensor of {}", where, length, expected));
  auto& file = files_[path.string()];
  if (!file) file = MappedFile::open(path.string());
  if (const size_t all = std::min<size_t>(size, file->bytes().size());
      static_cast<uint64_t>(offset) > all || expected > all - static_cast<uint64_t>(offset))
    throw Error(fmt::format("{}: its external data {} is cut short", where, path.string()));
  return MappedFile::part(file, static_cast<size_t>(offset), expected);
}

namespace {

Tensor tensor_of_message(const TensorProto& proto, const std::string& where, ExternalData& external,
                         std::optional<std::string_view> raw) {
  DType dtype;
  const bool halves = four_bit_from_onnx(proto.data_type(), dtype);
  if (!halves && !dtype_from_onnx(proto.data_type(), dtype))
    throw OnnxUnsupported(
        fmt::format("{} has the type {}, which is not supported", where, onnx_type_name(proto.data_type())));
  if (proto.has_segment()) throw OnnxUnsupported(fmt::format("{} is given in segments, which is not supported", where));
  if (proto.dims_size() > kMaxDims)
    throw OnnxUnsupported(
        fmt::format("{} has {} dimensions; at most {} are supported", where, proto.dims_size(), kMaxDims));
  Shape shape;
  const size_t item = itemsize(dtype);
  // No tensor is larger than 2^40 elements; with that bound on every partial product nothing overflows.
  int64_t count = 1;
  for (int64_t d : proto.dims()) {
    if (d < 0) throw Error(fmt::format("{} has the size {} in its shape", where, d));
    if (d && count > (int64_t{1} << 40) / d) throw Error(fmt::format("{} has an absurd shape", where));
    shape.push_back(d);
    count = std::max<int64_t>(count, 1) * std::max<int64_t>(d, 1);
  }
  const size_t elements = static_cast<size_t>(shape.product()), bytes = halves ? (elements + 1) / 2 : elements * item;
  if (proto.data_location() == TensorProto::EXTERNAL) {
    const auto values = external.bytes_of(proto, where, bytes);
    return halves ? unpacked(values->bytes(), shape, dtype)
                  : view_of(tensor_of(values, 0, bytes, dtype), Layout::contiguous(shape));
  }
  if (raw) {
    if (raw->size() != bytes)
      throw Error(fmt::format("{} has {} bytes of data, and its shape {} needs {}", where, raw->size(),
                              to_string(shape), bytes));
    if (halves) return unpacked(*raw, shape, dtype);
    Tensor t = empty(shape, dtype);
    if (bytes) std::memcpy(t.raw(), raw->data(), bytes);
    return t;
  }
  // Typed fields: the number of elements is checked against the field before anything is allocated.
  const int64_t given = dtype == DType::f32   ? proto.float_data_size()
                        : dtype == DType::f64 ? proto.double_data_size()
                        : dtype == DType::i64 ? proto.int64_data_size()
                                              : proto.int32_data_size();
  const int64_t needed = halves ? static_cast<int64_t>(bytes) : shape.product();
  if (given != needed)
    throw Error(fmt::format("{} has {} elements in its data, and its shape {} needs {}", where, given, to_string(shape),
                            needed));
  if (halves) {
    const std::string packed(proto.int32_data().begin(), proto.int32_data().end());
    return unpacked(packed, shape, dtype);
  }
  Tensor t = empty(shape, dtype);
  switch (dtype) {
    case DType::f32:
      copy_field<float>(proto.float_data(), t, where);
      break;
    case DType::f64:
      copy_field<double>(proto.double_data(), t, where);
      break;
    case DType::i64:
      copy_field<int64_t>(proto.int64_data(), t, where);
      break;
    case DType::i32:
      copy_field<int32_t>(proto.int32_data(), t, where);
      break;
    case DType::i16:
      copy_field<int16_t>(proto.int32_data(), t, where);
      break;
    case DType::i8:
      copy_field<int8_t>(proto.int32_data(), t, where);
      break;
    case DType::u8:
      copy_field<uint8_t>(proto.int32_data(), t, where);
      break;
    case DType::boolean:
      copy_field<bool>(proto.int32_data(), t, where);
      break;
    case DType::f16:
    case DType::bf16:
      copy_field<uint16_t>(proto.int32_data(), t, where);
      break;  // the bits, one value each
  }
  return t;
}

}  // namespace

Tensor read_tensor(const TensorProto& proto, const std::string& where, ExternalData& external) {
  return tensor_of_message(proto, where, external,
                           proto.has_raw_data() ? std::optional<std::string_view>(proto.raw_data()) : std::nullopt);
}

std::pair<std::string, Tensor> read_initializer_bytes(std::string_view message, const std::string& name,
                                                      ExternalData& external, bool* four_bit) {
  InitializerBytes parts;
  if (!split_initializer(message, parts)) throw Error(name + " is not an ONNX model, or is damaged");
  const std::string where = fmt::format("{}: initializer {}", name, parts.tensor.name());
  DType dtype;
  if (four_bit) *four_bit = four_bit_from_onnx(parts.tensor.data_type(), dtype);
  return {parts.tensor.name(),
          tensor_of_message(parts.tensor, where, external, parts.has_raw ? std::optional(parts.raw) : std::nullopt)};
}

void write_tensor(const Tensor& t, const std::string& name, TensorProto& proto) {
  proto.set_name(name);
  proto.set_data_type(onnx_type(t.dtype()));
  for (int64_t d : t.size()) proto.add_dims(d);
  std::vector<char> copy;
  proto.set_raw_data(std::string(logical_bytes(t, copy)));
}

void write_four_bit(const Tensor& t, const std::string& name, TensorProto& proto) {
  proto.set_name(name);
  proto.set_data_type(t.dtype() == DType::u8 ? kUint4 : kInt4);
  for (int64_t d : t.size()) proto.add_dims(d);
  std::vector<char> copy;
  const std::string_view bytes = logical_bytes(t, copy);
  std::string packed((bytes.size() + 1) / 2, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int value = t.dtype() == DType::u8 ? static_cast<uint8_t>(bytes[i]) : static_cast<int8_t>(bytes[i]);
    if (t.dtype() == DType::u8 ? value > 15 : value < -8 || value > 7)
      throw Error(fmt::format("{}: {} does not fit into 4 bits", name, value));
    packed[i / 2] = static_cast<char>(packed[i / 2] | (value & 15) << (i % 2 * 4));
  }
  proto.set_raw_data(std::move(packed));
}

Tensor load_onnx_tensor(const std::string& path) {
  google::protobuf::SetLogHandler(nullptr);
  TensorProto proto;
  if (!proto.ParseFromString(read_file(path)))
    throw Error(fmt::format("{} is not an ONNX tensor, or is damaged", path));
  ExternalData external = ExternalData::beside(path);
  return read_tensor(proto, path, external);
}

OnnxItem load_onnx_item(const std::string& path, const OnnxValue& declared) {
  using Form = OnnxValue::Form;
  const Form form = declared.form;
  if (form == Form::other)
    throw OnnxUnsupported(fmt::format("{} is a map or a sparse tensor, which is not supported", path));
  google::protobuf::SetLogHandler(nullptr);
  const std::string bytes = read_file(path);
  auto tensor = [&](TensorProto proto) {
    if (declared.typed && declared.dtype == DType::bf16 && proto.data_type() == TensorProto::UINT16)
      proto.set_data_type(TensorProto::BFLOAT16);
    ExternalData none("");
    return read_tensor(proto, path, none);
  };
  if (form == Form::tensor) {
    TensorProto proto;
    if (!proto.ParseFromString(bytes)) throw Error(fmt::format("{} is not an ONNX tensor, or is damaged", path));
    return tensor(std::move(proto));
  }
  onnx::SequenceProto sequence;
  if (form == Form::optional || form == Form::optional_sequence) {
    onnx::OptionalProto optional;
    if (!optional.ParseFromString(bytes)) throw Error(fmt::format("{} is not an ONNX optional, or is damaged", path));
    if (optional.has_tensor_value()) return tensor(optional.tensor_value());
    if (!optional.has_sequence_value()) return {};
    sequence = optional.sequence_value();
  } else if (!sequence.ParseFromString(bytes)) {
    throw Error(fmt::format("{} is not an ONNX sequence, or is damaged", path));
  }
  if (sequence.elem_type() != onnx::SequenceProto::TENSOR && sequence.elem_type() != onnx::SequenceProto::UNDEFINED)
    throw OnnxUnsupported(
        fmt::format("{} is a sequence of something other than tensors, which is not supported", path));
  std::vector<Tensor> tensors;
  for (const auto& t : sequence.tensor_values()) tensors.push_back(tensor(t));
  return tensors;
}

void save_onnx_tensor(const std::string& path, const std::string& name, const Tensor& t) {
  TensorProto proto;
  write_tensor(t, name, proto);
  write_file(path, proto.SerializeAsString());
}

}  // namespace tenon::formats
