// Programs of TorchScript as they are written; tests/peers/torchscript_test.cpp runs them in PyTorch.
#include "engine/formats/torchscript/script.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/mapped_file.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/zip.h"
#include "engine/ops/create.h"
#include "tests/engine/files.h"
#include "tests/engine/same_bits.h"

namespace tenon::formats {
namespace {

/// y = layer(relu(x)) - mask, where the layer is in a list, as nn.Sequential has it.
OnnxModel small_model(const Tensor& weight, const Tensor& mask) {
  OnnxModel m;
  m.graph.inputs.push_back({.name = "x", .typed = true, .ranked = true, .shape = {{-1, "N"}, {3, ""}}});
  m.graph.outputs.push_back({.name = "y"});
  m.graph.initializers = {{"layers.0.weight", weight}, {"mask", mask}, {"mask again", mask}, {"half", scalar(0.5)}};
  m.graph.nodes = {{"a", "Relu", "", {"x"}, {"relu"}, {}},
                   {"b", "Gemm", "", {"relu", "layers.0.weight"}, {"linear"}, {{"transB", int64_t{1}}}},
                   {"c", "Sub", "", {"linear", "mask"}, {"sub"}, {}},
                   {"d", "Add", "", {"sub", "mask again"}, {"sum"}, {}},
                   {"e", "Mul", "", {"sum", "half"}, {"y"}, {}}};
  return m;
}

struct Written {
  testing_files::Folder folder;
  std::string path = folder.file("m.torchscript");
  std::string code() const {
    const std::string bytes = read_file(path);
    const Zip zip(bytes, path);
    std::string unpacked;
    return std::string(zip.data(*zip.find("m/code/__torch__.py"), unpacked));
  }
};

TEST(TorchScriptFile, has_the_state_under_its_names_and_one_forward) {
  Written w;
  const Tensor weight = arange(12, DType::f32), mask = arange(4, DType::f32);
  const Tensor shaped = view_of(weight, Layout::contiguous({4, 3})), row = view_of(mask, Layout::contiguous({1, 4}));
  save_torchscript(w.path, small_model(shaped, row), {{{"layers.0.weight", shaped}}, {}}, 31);
  EXPECT_EQ(w.code(),
            "class Part2(Module):\n  __parameters__ = [\"weight\", ]\n  __buffers__ = []\n  training : bool\n"
            "  weight : Tensor\n"
            "class Part1(Module):\n  __parameters__ = []\n  __buffers__ = []\n  __annotations__ = []\n"
            "  __annotations__[\"0\"] = __torch__.Part2\n  training : bool\n"
            "class Model(Module):\n  __parameters__ = []\n  __buffers__ = [\"constant_0\", ]\n  training : bool\n"
            "  constant_0 : Tensor\n  layers : __torch__.Part1\n"
            "  def forward(self: __torch__.Model,\n    x: Tensor) -> Tensor:\n"
            "    relu = torch.relu(x)\n"
            "    linear = torch.linear(relu, getattr(self.layers, \"0\").weight, None)\n"
            "    sub = torch.sub(linear, self.constant_0)\n"
            "    sum = torch.add(sub, self.constant_0)\n"
            "    y = torch.mul(sum, 0.5)\n"
            "    return y\n");
  const auto back = TorchFile::parse_program(MappedFile::open(w.path));
  EXPECT_TRUE(back.foreign().empty());
  ASSERT_EQ(back.entries().size(), 2u);
  for (const auto& e : back.entries()) {
    ASSERT_TRUE(e.name == "constant_0" || e.name == "layers/0/weight") << e.name;
    EXPECT_TRUE(same_bits(e.tensor, e.name == "constant_0" ? row : shaped)) << e.name;
    EXPECT_EQ(e.requires_grad, e.name == "layers/0/weight");
  }
}

TEST(TorchScriptFile, what_it_cannot_say_is_refused_by_name) {
  Written w;
  OnnxModel m = small_model(zeros({4, 3}), zeros({1, 4}));
  m.graph.nodes[0].op_type = "NonZero";
  const std::string said = testing_words::message_of([&] { save_torchscript(w.path, m, {}, 31); });
  EXPECT_FALSE(said.empty());
  m = small_model(zeros({4, 3}), zeros({1, 4}));
  m.graph.nodes[0].op_type = "EyeLike";
  EXPECT_NE(testing_words::message_of([&] {
              save_torchscript(w.path, m, {}, 3);
            }).find("EyeLike 'a' cannot be written as TorchScript: there is no rule"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(w.path));
}

}  // namespace
}  // namespace tenon::formats
