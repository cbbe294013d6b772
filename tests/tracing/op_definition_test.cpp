// What an op is, told of every op that there is.
#include "tracing/ops/op_definition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/op/op.h"
#include "tests/messages.h"

namespace tenon::tracing {
namespace {

using testing_words::error_of;

const Table& table_named(const Finding& f, const std::string& name) {
  const auto at = std::find_if(f.tables.begin(), f.tables.end(), [&](const Table& t) { return t.name == name; });
  static const Table none;
  EXPECT_NE(at, f.tables.end()) << name;
  return at == f.tables.end() ? none : *at;
}
std::string fact_of(const Finding& f, const std::string& name) {
  for (const Fact& fact : f.facts)
    if (fact.name == name) return std::get<std::string>(fact.value);
  return {};
}
std::vector<std::string> ops_in(const Table& t) {
  std::vector<std::string> ops;
  for (const auto& row : t.rows) ops.push_back(std::get<std::string>(row[0]));
  return ops;
}

TEST(OpDefinition, the_list_has_every_op_once) {
  const Finding f = list_ops();
  const auto names = ops_in(f.tables.at(0));
  ASSERT_EQ(names.size(), all_ops().size());
  size_t gradients = 0;
  for (const OpDef& op : all_ops()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), op.info.name), 1) << op.info.name;
    gradients += op.backward != nullptr;
  }
  EXPECT_EQ(std::get<int64_t>(f.facts.at(1).value), static_cast<int64_t>(gradients));
}

/// Their gradient is what comes to them: no op is run for it.
const std::set<std::string> kPassOn = {"cast", "copy", "frac", "module_boundary", "to_device"};

TEST(OpDefinition, every_op_can_be_looked_into_and_its_gradient_is_seen) {
  for (const OpDef& op : all_ops()) {
    const std::string name = op.info.name;
    const Finding f = op_definition(name);
    EXPECT_EQ(f.sentence.find(name + " takes "), 0u) << f.sentence;
    if (op.samples) {
      EXPECT_FALSE(table_named(f, "samples").rows.empty()) << name;
    }
    const bool passes_on = op.info.kind == OpKind::view || kPassOn.contains(name);
    if (op.backward && op.samples && !passes_on) {
      EXPECT_FALSE(table_named(f, "gradient").rows.empty()) << name;
    }
    if (op.decompose && op.samples) {
      EXPECT_FALSE(table_named(f, "decomposition").rows.empty()) << name;
    }
  }
}

TEST(OpDefinition, linear_is_what_it_is) {
  const Finding f = op_definition("linear");
  EXPECT_EQ(fact_of(f, "onnx"), "Gemm");
  EXPECT_EQ(fact_of(f, "saves_inputs"), "0, 1");
  EXPECT_EQ(fact_of(f, "autocast"), "in the low type");
  EXPECT_EQ(ops_in(table_named(f, "gradient")), (std::vector<std::string>{"matmul", "matmul", "sum"}));
  const auto& with_bias = table_named(f, "samples").rows.at(0);
  EXPECT_EQ(std::get<std::string>(with_bias[1]), "f64 [5, 3], f64 [4, 3], f64 [4]");
  EXPECT_EQ(std::get<int64_t>(with_bias[4]), 2 * 5 * 4 * 3);
  EXPECT_NE(std::get<std::string>(table_named(f, "source").rows.at(0)[0]).find("struct Linear"), std::string::npos);
}

TEST(OpDefinition, attributes_say_what_they_may_be) {
  const Finding f = op_definition("softmax");
  const auto& rows = table_named(f, "attributes").rows;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(std::get<std::string>(rows[0][0]), "log");
  EXPECT_EQ(std::get<std::string>(rows[0][1]), "false");
  EXPECT_EQ(std::get<std::string>(rows[0][2]), "yes or no");
}

TEST(OpDefinition, a_name_that_no_op_has_is_told_with_those_that_are_near) {
  const std::string said = error_of([] { op_definition("linaer"); });
  EXPECT_NE(said.find("linaer"), std::string::npos) << said;
  EXPECT_NE(said.find("linear"), std::string::npos) << said;
}

}  // namespace
}  // namespace tenon::tracing
