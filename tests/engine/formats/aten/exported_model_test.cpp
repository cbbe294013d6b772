// Programs of torch.export made by hand: what is not as usual.
#include "engine/formats/aten/exported_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/mapped_file.h"
#include "engine/formats/onnx/run.h"
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

}  // namespace
}  // namespace tenon::formats
