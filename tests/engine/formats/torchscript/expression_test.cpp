#include "engine/formats/torchscript/expression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace tenon::formats {
namespace {

using Kind = ScriptExpression::Kind;

TEST(ScriptExpressions, calls_within_calls_with_values) {
  const ScriptExpression e =
      parse_script_expression("torch.div(torch.add(x, -1), [1, 2.5, -inf], rounding_mode=\"trunc\")");
  ASSERT_EQ(e.kind, Kind::call);
  EXPECT_EQ(e.text, "div");
  ASSERT_EQ(e.parts.size(), 3u);
  EXPECT_EQ(e.parts[0].text, "add");
  EXPECT_EQ(e.parts[0].parts[0].kind, Kind::name);
  EXPECT_EQ(e.parts[0].parts[0].text, "x");
  EXPECT_EQ(e.parts[0].parts[1].integer, -1);
  ASSERT_EQ(e.parts[1].kind, Kind::list);
  EXPECT_EQ(e.parts[1].parts[0].kind, Kind::integer);
  EXPECT_EQ(e.parts[1].parts[1].real, 2.5);
  EXPECT_EQ(e.parts[1].parts[2].real, -INFINITY);
  EXPECT_EQ(e.parts[2].keyword, "rounding_mode");
  EXPECT_EQ(e.parts[2].text, "trunc");
}

TEST(ScriptExpressions, plain_values) {
  EXPECT_EQ(parse_script_expression("None").kind, Kind::none);
  EXPECT_TRUE(parse_script_expression("True").truth);
  EXPECT_EQ(parse_script_expression("2.").kind, Kind::real);
  EXPECT_EQ(parse_script_expression("1e-05").real, 1e-05);
  EXPECT_TRUE(std::isnan(parse_script_expression("nan").real));
  const ScriptExpression none = parse_script_expression("annotate(List[int], [])");
  EXPECT_EQ(none.kind, Kind::list);
  EXPECT_TRUE(none.parts.empty());
}

TEST(ScriptExpressions, what_is_none_is_an_error) {
  for (const char* text : {"", "torch.relu(x", "torch.relu(x))", "relu(x)", "[1, 2", "\"open", "x y"})
    EXPECT_THROW(parse_script_expression(text), Error) << text;
}

}  // namespace
}  // namespace tenon::formats
