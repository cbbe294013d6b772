#include "engine/formats/onnx/model_bytes.h"

#include <climits>

namespace tenon::formats {
namespace {

bool take_varint(std::string_view& rest, uint64_t& out) {
  out = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    out |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

/// The library counts bytes in an int.
template <class Message>
bool parse(Message& message, const std::string& bytes) {
  return bytes.size() <= INT_MAX && message.ParseFromString(bytes);
}

bool split_graph(std::string_view bytes, std::string& rest, std::vector<std::string_view>& initializers) {
  for (ProtoField f; !bytes.empty();) {
    if (!take_field(bytes, f)) return false;
    if (f.number == static_cast<uint64_t>(onnx::GraphProto::kInitializerFieldNumber))
      initializers.push_back(f.content);
    else
      rest += f.whole;
  }
  return true;
}

}  // namespace

bool take_field(std::string_view& rest, ProtoField& out) {
  const std::string_view before = rest;
  uint64_t tag = 0, length = 0;
  if (!take_varint(rest, tag)) return false;
  out.number = tag >> 3;
  switch (tag & 7) {
    case 0:
      if (!take_varint(rest, length)) return false;
      length = 0;
      break;
    case 1:
      length = 8;
      break;
    case 2:
      if (!take_varint(rest, length)) return false;
      break;
    case 5:
      length = 4;
      break;
    default:
      return false;
  }
  if (length > rest.size()) return false;
  out.content = rest.substr(0, length);
  rest.remove_prefix(length);
  out.whole = before.substr(0, before.size() - rest.size());
  return true;
}

bool split_model(std::string_view bytes, ModelBytes& out) {
  google::protobuf::SetLogHandler(nullptr);  // what protobuf would print is in the caller's error instead
  std::string outer, inner;
  bool graph = false;
  for (ProtoField f; !bytes.empty();) {
    if (!take_field(bytes, f)) return false;
    if (f.number != static_cast<uint64_t>(onnx::ModelProto::kGraphFieldNumber)) {
      outer += f.whole;
      continue;
    }
    graph = true;
    if (!split_graph(f.content, inner, out.initializers)) return false;
  }
  return graph && parse(out.model, outer) && parse(out.graph, inner);
}

bool split_initializer(std::string_view bytes, InitializerBytes& out) {
  std::string head;
  for (ProtoField f; !bytes.empty();) {
    if (!take_field(bytes, f)) return false;
    if (f.number == static_cast<uint64_t>(onnx::TensorProto::kRawDataFieldNumber))
      out.raw = f.content, out.has_raw = true;
    else
      head += f.whole;
  }
  return parse(out.tensor, head);
}

}  // namespace tenon::formats
