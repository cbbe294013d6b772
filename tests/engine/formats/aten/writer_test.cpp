// Programs of torch.export as they are written and read back; tests/peers/exported_test.cpp has PyTorch run and write
// them.
#include "engine/formats/aten/writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "engine/formats/aten/exported_model.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/formats/zip.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "tests/engine/files.h"
#include "tests/engine/same_bits.h"

namespace tenon::formats {
namespace {

using nlohmann::json;

/// y = (relu(x) w' - mask) / 2, once more as rows of two.
OnnxModel pairs_model(const Tensor& weight, const Tensor& mask) {
  OnnxModel m;
  m.graph.inputs.push_back({.name = "x", .typed = true, .ranked = true, .shape = {{-1, "N"}, {3, ""}}});
  m.graph.outputs.push_back({.name = "y"});
  m.graph.initializers = {
      {"layers.0.weight", weight}, {"mask", mask}, {"half", scalar(0.5)}, {"to", integers({-1, 2})}};
  m.graph.nodes = {{"a", "Relu", "", {"x"}, {"relu"}, {}},
                   {"b", "Gemm", "", {"relu", "layers.0.weight"}, {"linear"}, {{"transB", int64_t{1}}}},
                   {"c", "Sub", "", {"linear", "mask"}, {"sub"}, {}},
                   {"d", "Mul", "", {"sub", "half"}, {"product"}, {}},
                   {"e", "Reshape", "", {"product", "to"}, {"y"}, {}}};
  return m;
}

struct ExportedFile {
  testing_files::Folder folder;
  std::string path = folder.file("m.pt2");
  Tensor weight = view_of(arange(12, DType::f32), Layout::contiguous({4, 3})),
         mask = view_of(arange(4, DType::f32), Layout::contiguous({1, 4}));
  OnnxModel model = pairs_model(weight, mask);
  void save() const { save_exported(path, model, {{{"layers.0.weight", weight}}, {}}, 31); }
  json program() const {
    const std::string bytes = read_file(path);
    const Zip zip(bytes, path);
    std::string unpacked;
    return json::parse(zip.data(*zip.find("m/models/model.json"), unpacked));
  }
};

TEST(ExportedProgram, says_what_is_there_at_any_batch) {
  ExportedFile f;
  f.save();
  const json j = f.program(), &graph = j.at("graph_module").at("graph");
  std::vector<std::string> targets;
  for (const json& n : graph.at("nodes")) targets.push_back(n.at("target"));
  EXPECT_EQ(targets, (std::vector<std::string>{"torch.ops.aten.relu.default", "torch.ops.aten.linear.default",
                                               "torch.ops.aten.sub.Tensor", "torch.ops.aten.mul.Scalar",
                                               "torch.ops.aten.reshape.default"}));
  const json& sizes = graph.at("tensor_values").at("y").at("sizes");
  EXPECT_EQ(sizes[0].at("as_expr").at("expr_str"), "Mul(Integer(2), Symbol('s0', positive=True, integer=True))");
  EXPECT_EQ(sizes[0].at("as_expr").at("hint").at("as_int"), 62);
  EXPECT_EQ(sizes[1].at("as_int"), 2);
  EXPECT_EQ(j.at("range_constraints").at("s0").at("min_val"), 1);
  const json& specs = j.at("graph_module").at("signature").at("input_specs");
  EXPECT_EQ(specs[0].at("parameter").at("parameter_name"), "layers.0.weight");
  EXPECT_EQ(specs[1].at("tensor_constant").at("tensor_constant_name"), "constant_0");
}

TEST(ExportedProgram, read_back_it_computes_the_same) {
  ExportedFile f;
  f.save();
  const OnnxModel back = load_runnable(f.path);
  ASSERT_TRUE(back.graph.initializer("layers.0.weight"));
  EXPECT_TRUE(same_bits(*back.graph.initializer("layers.0.weight"), f.weight));
  EXPECT_EQ(type_text(back.graph.inputs.at(0)), "f32 [s0, 3]");
  for (int64_t batch : {1, 5}) {
    const Tensor x = reshape(linspace(-2, 3, batch * 3), {batch, 3});
    EXPECT_TRUE(same_bits(run_onnx(back, {x}).at(0), run_onnx(f.model, {x}).at(0))) << batch;
  }
}

TEST(ExportedProgram, what_it_cannot_say_is_refused_by_name) {
  ExportedFile f;
  f.model.graph.nodes[0].op_type = "EyeLike";
  EXPECT_NE(testing_words::message_of([&] {
              save_exported(f.path, f.model, {}, 3);
            }).find("EyeLike 'a' cannot be written as a program of torch.export: there is no rule"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(f.path));
}

}  // namespace
}  // namespace tenon::formats
