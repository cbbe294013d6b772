// Programs of torch.export made by hand: what is not as usual.
#include "engine/formats/aten/exported_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/mapped_file.h"
#include "engine/formats/model_file.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/zip.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "tests/engine/files.h"
#include "tests/engine/same_bits.h"

namespace tenon::formats {
namespace {

using nlohmann::json;

json tensor_argument(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }
json node_of(const std::string& target, const std::vector<std::pair<std::string, json>>& inputs,
             const std::string& output) {
  json in = json::array();
  for (const auto& [name, a] : inputs) in.push_back({{"name", name}, {"arg", a}, {"kind", 1}});
  return {{"target", "torch.ops." + target}, {"inputs", in}, {"outputs", json::array({tensor_argument(output)})}};
}
/// Of one input "x" of [s0, 3]; every value is said to be like it.
json program_of(const json& nodes, const std::string& output) {
  const json like = {{"dtype", 7},
                     {"sizes", json::array({{{"as_expr", {{"expr_str", "Symbol('s0', positive=True, integer=True)"}}}},
                                            {{"as_int", 3}}})}};
  json values = {{"x", like}};
  for (const json& n : nodes) values[n.at("outputs")[0].at("as_tensor").at("name").get<std::string>()] = like;
  return {{"schema_version", {{"major", 8}, {"minor", 14}}},
          {"graph_module",
           {{"graph", {{"nodes", nodes}, {"tensor_values", values}}},
            {"signature",
             {{"input_specs", json::array({{{"user_input", {{"arg", tensor_argument("x")}}}}})},
              {"output_specs", json::array({{{"user_output", {{"arg", tensor_argument(output)}}}}})}}}}}};
}
std::shared_ptr<const MappedFile> archive_of(const json& program) {
  const testing_files::Folder folder;
  const std::string path = folder.file("m.pt2");
  FileWriter file(path);
  ZipWriter zip(file);
  zip.add("m/archive_format", "pt2");
  zip.add("m/archive_version", "0");
  zip.add("m/models/model.json", program.dump());
  zip.finish();
  file.commit();
  return MappedFile::of(read_file(path), "m.pt2");
}
std::string refusal(const json& program) {
  return testing_words::message_of([&] { parse_exported(archive_of(program)); });
}

TEST(ExportedModel, what_is_written_in_place_is_read_as_written) {
  const json nodes = json::array(
      {node_of("aten.neg.default", {{"self", tensor_argument("x")}}, "neg"),
       node_of("aten.relu_.default", {{"self", tensor_argument("neg")}}, "relu_"),
       node_of("aten.add.Tensor", {{"self", tensor_argument("neg")}, {"other", tensor_argument("x")}}, "add")});
  const Tensor x = reshape(linspace(-2, 3, 6), {2, 3});
  const Tensor y = run_onnx(parse_exported(archive_of(program_of(nodes, "add"))), {x}).at(0);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(y.data<float>()[i], std::max(-x.data<float>()[i], 0.0f) + x.data<float>()[i]) << i;
}

TEST(ExportedModel, writing_into_what_others_see_is_refused) {
  const json nodes = json::array(
      {node_of("aten.detach.default", {{"self", tensor_argument("x")}}, "view"),
       node_of("aten.relu_.default", {{"self", tensor_argument("view")}}, "relu_"),
       node_of("aten.add.Tensor", {{"self", tensor_argument("relu_")}, {"other", tensor_argument("x")}}, "add")});
  EXPECT_NE(refusal(program_of(nodes, "add")).find("it writes into view, whose memory other tensors share"),
            std::string::npos);
}

TEST(ExportedModel, all_that_is_missing_is_told_at_once) {
  const json nodes = json::array(
      {node_of("aten.nonzero.default", {{"self", tensor_argument("x")}}, "first"),
       node_of("aten.nonzero.default", {{"self", tensor_argument("x")}}, "second"),
       node_of("aten.relu.default", {{"self", tensor_argument("first")}}, "behind"),
       node_of("higher_order.cond", {{"", tensor_argument("x")}}, "branch"),
       node_of("aten.dropout.default",
               {{"input", tensor_argument("x")}, {"p", {{"as_float", 0.5}}}, {"train", {{"as_bool", true}}}}, "drop")});
  const std::string said = refusal(program_of(nodes, "branch"));
  EXPECT_NE(said.find("aten.nonzero.default ('first') and 1 more: there is no rule for this operator"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("higher_order.cond ('branch'): there is no rule"), std::string::npos) << said;
  EXPECT_NE(said.find("call model.eval() first"), std::string::npos) << said;
  EXPECT_EQ(said.find("relu"), std::string::npos) << said;
}

TEST(ExportedModel, arguments_of_another_form_are_errors) {
  const auto said = [](const json& argument) {
    return refusal(program_of(
        json::array({node_of("aten.softmax.int", {{"self", tensor_argument("x")}, {"dim", argument}}, "y")}), "y"));
  };
  EXPECT_NE(said({{"as_int", 7}}).find("axis 7 of 2 axes"), std::string::npos);
  EXPECT_NE(said({{"as_string", "last"}}).find("argument dim is of a form"), std::string::npos);
  EXPECT_NE(said({{"as_none", true}}).find("argument dim is of a form"), std::string::npos);
  EXPECT_NE(refusal(program_of(json::array({node_of("aten.softmax.int", {{"self", tensor_argument("x")}}, "y")}), "y"))
                .find("its argument dim is missing"),
            std::string::npos);
  json old = program_of(json::array(), "x");
  old["schema_version"]["major"] = 5;
  EXPECT_NE(refusal(old).find("its schema has the version 5"), std::string::npos);
}

/// An archive as torch.export.save() of PyTorch 2.0 to 2.7 writes it: members without a folder, weights and constants
/// each a file of torch.save.
std::string archive_up_to_2_7(const testing_files::Folder& folder, json program, const std::string& ending = ".pt") {
  program["schema_version"] = {{"major", 8}, {"minor", 2}};
  const auto saved = [&](const NamedTensors& tensors) {
    save_torch(folder.file("part.pt"), tensors);
    return read_file(folder.file("part.pt"));
  };
  const std::string path = folder.file("old.pt2");
  FileWriter file(path);
  ZipWriter zip(file);
  zip.add("serialized_exported_program.json", program.dump());
  zip.add("serialized_state_dict" + ending, saved({{"scale", linspace(1, 3, 3)}}));
  zip.add("serialized_constants" + ending, saved({{"shift", linspace(-1, 1, 3)}}));
  zip.add("serialized_example_inputs.pt", "");
  zip.add("version", "8.2");
  zip.add("extra_files/note.txt", "by hand");
  zip.finish();
  file.commit();
  return path;
}

TEST(ExportedModel, archives_of_pytorch_up_to_2_7) {
  json program = program_of(
      json::array(
          {node_of("aten.mul.Tensor", {{"self", tensor_argument("x")}, {"other", tensor_argument("p_scale")}}, "mul"),
           node_of("aten.add.Tensor", {{"self", tensor_argument("mul")}, {"other", tensor_argument("c_shift")}},
                   "add")}),
      "add");
  json& specs = program["graph_module"]["signature"]["input_specs"];
  specs.insert(specs.begin(),
               {{{"parameter", {{"arg", {{"name", "p_scale"}}}, {"parameter_name", "scale"}}}},
                {{"tensor_constant", {{"arg", {{"name", "c_shift"}}}, {"tensor_constant_name", "shift"}}}}});
  for (const char* held : {"p_scale", "c_shift"})
    program["graph_module"]["graph"]["tensor_values"][held] = {{"dtype", 7}, {"sizes", {{{"as_int", 3}}}}};
  const Tensor x = reshape(linspace(-2, 3, 6), {2, 3});
  for (const char* ending : {".pt", ".json"}) {  // the first releases named both by what they were before
    const testing_files::Folder folder;
    const std::string path = archive_up_to_2_7(folder, program, ending);
    EXPECT_EQ(file_kind(read_file(path)), FileKind::torch_export);
    const Tensor y = run_onnx(load_runnable(path), {x}).at(0);
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_FLOAT_EQ(y.data<float>()[i],
                      x.data<float>()[i] * static_cast<float>(1 + i % 3) + static_cast<float>(i % 3 - 1))
          << i;
    const auto shown = ModelFile::open(path);
    EXPECT_EQ(shown->nodes.size(), 2u);
    EXPECT_EQ(shown->nodes[0].inputs, (std::vector<std::string>{"x", "scale"}));
    EXPECT_EQ(shown->tensors.size(), 2u);
    EXPECT_EQ(item(select(shown->tensor(shown->at("scale")), 0, 2)), 3);
  }
  // The program is no JSON, or of an older schema; weights that are no file of torch.save.
  const testing_files::Folder folder;
  program["graph_module"]["signature"]["input_specs"].erase(0);
  EXPECT_NE(testing_words::message_of([&] { load_runnable(archive_up_to_2_7(folder, program)); }).find("p_scale"),
            std::string::npos);
  const std::string path = folder.file("bad.pt2");
  FileWriter file(path);
  ZipWriter zip(file);
  zip.add("serialized_exported_program.json", "{");
  zip.finish();
  file.commit();
  EXPECT_NE(testing_words::message_of([&] {
              load_runnable(path);
            }).find("its member serialized_exported_program.json is no JSON"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::formats
