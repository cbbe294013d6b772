// The tables of a model file against what was read of it.
#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/model_file.h"
#include "engine/formats/onnx/model.h"
#include "engine/ops/create.h"
#include "tests/projects/query/asked.h"

namespace tenon::projects {
namespace {

using namespace testing_query;

/// y = relu(x w) + b, with two weights of a module and one beside all.
std::shared_ptr<const formats::ModelFile> made_model() {
  formats::OnnxModel m;
  m.graph.initializers = {{"fc.weight", full({4, 3}, 1)}, {"fc.bias", full({3}, 2)}, {"scale", full({1}, 2)}};
  m.graph.inputs = {{.name = "x", .typed = true, .ranked = true, .shape = {{-1, "N"}, {4, ""}}}};
  m.graph.outputs = {{.name = "y", .typed = true}};
  m.graph.nodes = {{"/fc/MatMul", "MatMul", "", {"x", "fc.weight"}, {"h"}, {}},
                   {"/Relu", "Relu", "", {"h"}, {"r"}, {}},
                   {"", "Add", "", {"r", "fc.bias"}, {"y"}, {}}};
  return formats::ModelFile::parse(MappedFile::of(formats::onnx_bytes(m), "made.onnx"));
}

struct ModelTables : ::testing::Test {
  std::shared_ptr<const formats::ModelFile> m = made_model();
  QueryBase base{{.model = m}};
};

TEST_F(ModelTables, tensors_are_those_of_the_file) {
  EXPECT_EQ(base.kind(), QueryKind::model);
  const auto all = rows(base, "SELECT id, name, module, dtype, shape, dims, elements, bytes FROM tensors");
  ASSERT_EQ(all.size(), m->tensors.size());
  EXPECT_EQ(text(all[0]), "0|fc.weight|fc|float|[4, 3]|2|12|48");
  EXPECT_EQ(text(all[2]), "2|scale||float|[1]|1|1|4");
  EXPECT_EQ(number(base, "SELECT sum(bytes) FROM tensors"), static_cast<int64_t>(m->bytes()));
  EXPECT_EQ(number(base, "SELECT value FROM tensors, json_each(shape) WHERE name = 'fc.weight' AND key = 1"), 3);
  EXPECT_EQ(number(base, "SELECT count(*) FROM tensors WHERE problem IS NULL"), 3);
}

TEST_F(ModelTables, nodes_and_what_they_read_and_make) {
  EXPECT_EQ(text(rows(base, "SELECT id, name, op, module, inputs, outputs, attributes FROM nodes").at(0)),
            "0|/fc/MatMul|MatMul|fc|x, fc.weight|h|");
  EXPECT_EQ(number(base, "SELECT count(*) FROM nodes WHERE name IS NULL"), 1);
  EXPECT_EQ(number(base, "SELECT count(*) FROM operands"), 8);
  EXPECT_EQ(
      text(rows(base, "SELECT t.name FROM operands o JOIN tensors t ON t.id = o.tensor WHERE o.node = 2 AND NOT made")
               .at(0)),
      "fc.bias");
  // Who reads what another makes.
  EXPECT_EQ(text(rows(base,
                      "SELECT b.node FROM operands a JOIN operands b ON b.value = a.value AND b.made = 0 WHERE a.made "
                      "= 1 AND a.node = 0")
                     .at(0)),
            "1");
}

TEST_F(ModelTables, rows_say_what_they_lead_to) {
  using Leads = QueryColumn::Leads;
  const auto leads = [&](const std::string& sql) { return base.run(sql).columns.at(0).leads; };
  EXPECT_EQ(leads("SELECT id FROM tensors"), Leads::tensor);
  EXPECT_EQ(leads("SELECT name FROM tensors"), Leads::tensor);
  EXPECT_EQ(leads("SELECT id FROM nodes"), Leads::node);
  EXPECT_EQ(leads("SELECT n.id AS node FROM nodes n"), Leads::node);
  EXPECT_EQ(leads("SELECT sum(bytes) FROM tensors"), Leads::nowhere);
}

TEST_F(ModelTables, examples_are_answered_also_of_a_file_without_anything) {
  QueryBase empty({.model = std::make_shared<formats::ModelFile>()});
  for (const QueryExample& e : query_examples(QueryKind::model)) {
    EXPECT_FALSE(rows(base, e.sql).empty()) << e.title;
    EXPECT_TRUE(rows(empty, e.sql).empty()) << e.title;
  }
  EXPECT_THROW(base.run("SELECT * FROM events"), Error);
}

}  // namespace
}  // namespace tenon::projects
