#pragma once
#include <string>

#include "core/mapped_file.h"
#include "engine/formats/model_file.h"
#include "engine/formats/onnx/model.h"

// Model files that tests of views open.
namespace tenon::views::testing {

/// So many residual blocks that are built alike, and a head: 3 nodes a block and one more, 2 weights a block and one
/// more. Values count up from -5 in steps of 0.5.
inline formats::OnnxModel blocks_model(int blocks) {
  formats::OnnxModel m;
  m.producer = "tests";
  auto weight = [&](const std::string& name, const Shape& shape) {
    Tensor t = empty(shape);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i) * 0.5f - 5;
    m.graph.initializers.emplace_back(name, t);
  };
  auto value = [](const std::string& name) {
    return formats::OnnxValue{
        .name = name, .typed = true, .ranked = true, .shape = {{-1, "N"}, {4, ""}, {8, ""}, {8, ""}}};
  };
  auto add = [&](const std::string& name, const std::string& op, std::vector<std::string> inputs,
                 const std::string& out) {
    formats::OnnxNode n;
    n.name = name;
    n.op_type = op;
    n.inputs = std::move(inputs);
    n.outputs = {out};
    if (op == "Conv") n.attributes.push_back({"pads", std::vector<int64_t>{1, 1, 1, 1}});
    m.graph.nodes.push_back(std::move(n));
  };
  m.graph.inputs.push_back(value("x"));
  std::string last = "x";
  for (int b = 0; b < blocks; ++b) {
    const std::string block = "layers." + std::to_string(b), scope = "/model/" + block, made = "v" + std::to_string(b);
    weight(block + ".conv.weight", {4, 4, 3, 3});
    weight(block + ".conv.bias", {4});
    add(scope + "/conv/Conv", "Conv", {last, block + ".conv.weight", block + ".conv.bias"}, made + "c");
    add(scope + "/relu/Relu", "Relu", {made + "c"}, made + "r");
    add(scope + "/Add", "Add", {made + "r", last}, made);
    last = made;
  }
  weight("head.weight", {4, 4, 1, 1});
  add("/head/Conv", "Conv", {last, "head.weight"}, "y");
  m.graph.outputs.push_back(value("y"));
  return m;
}

inline std::shared_ptr<const formats::ModelFile> model_file_of(std::string bytes, const std::string& name) {
  return formats::ModelFile::parse(MappedFile::of(std::move(bytes), name));
}
inline std::shared_ptr<const formats::ModelFile> blocks_file(int blocks) {
  return model_file_of(formats::onnx_bytes(blocks_model(blocks)), "blocks.onnx");
}

}  // namespace tenon::views::testing
