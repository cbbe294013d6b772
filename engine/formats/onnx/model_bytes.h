#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/onnx/proto.h"

// What fills a model's file are its initializers. They are found by walking over the fields of the message and parsed
// one by one, so that their values stay where they are until they are asked for.
namespace tenon::formats {

/// A field of a protobuf message, not looked into.
struct ProtoField {
  uint64_t number = 0;
  std::string_view whole;    ///< with its tag
  std::string_view content;  ///< of a field with a length: a message, a text, packed numbers
};
/// Takes the first field off a message; false where it leaves the message, or is of a kind that is none.
bool take_field(std::string_view& rest, ProtoField& out);

/// A model's message in parts. The bytes must outlive it.
struct ModelBytes {
  onnx::ModelProto model;                      ///< all but its graph
  onnx::GraphProto graph;                      ///< all but its initializers
  std::vector<std::string_view> initializers;  ///< TensorProtos
};
/// False where the bytes are no model, or are damaged.
bool split_model(std::string_view bytes, ModelBytes& out);

/// An initializer's message: all but its raw bytes, and these where it has any.
struct InitializerBytes {
  onnx::TensorProto tensor;
  std::string_view raw;
  bool has_raw = false;
};
bool split_initializer(std::string_view bytes, InitializerBytes& out);

}  // namespace tenon::formats
