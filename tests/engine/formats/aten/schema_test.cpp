#include "engine/formats/aten/schema.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "engine/formats/aten/rule.h"

namespace tenon::formats {
namespace {

using Kind = AtenArgument::Kind;
using Type = AtenParameter::Type;

TEST(AtenSchemas, are_read_as_pytorch_writes_them) {
  const AtenSchema s = parse_aten_schema(
      "made.up(Tensor self, Tensor? bias, SymInt[2] stride=1, int[1]? dim=None, float eps=1e-05, *, Scalar value=2, "
      "str mode=\"none\", int[] pad=[0, -1], ScalarType? dtype=None) -> (Tensor, Tensor)");
  EXPECT_EQ(s.target(), "aten.made.up");
  ASSERT_EQ(s.parameters.size(), 9u);
  EXPECT_EQ(s.parameters[0].type, Type::tensor);
  EXPECT_FALSE(s.parameters[0].has_default);
  EXPECT_TRUE(s.parameters[1].optional);
  ASSERT_EQ(s.find("stride")->fallback.ints.size(), 2u);
  EXPECT_EQ(s.find("stride")->fallback.ints[1].value, 1);
  EXPECT_TRUE(s.find("dim")->optional && s.find("dim")->list);
  EXPECT_EQ(s.find("dim")->fallback.kind, Kind::none);
  EXPECT_EQ(s.find("eps")->fallback.reals.at(0), 1e-05);
  EXPECT_FALSE(s.find("eps")->keyword);
  EXPECT_TRUE(s.find("value")->keyword);
  EXPECT_EQ(s.find("value")->fallback.ints.at(0).value, 2);
  EXPECT_EQ(s.find("mode")->fallback.text, "none");
  EXPECT_EQ(s.find("pad")->fallback.ints.at(1).value, -1);
  EXPECT_EQ(s.find("absent"), nullptr);
  for (const char* text : {"", "relu", "relu(Tensor self)", "relu(Tensor) -> Tensor"})
    EXPECT_THROW(parse_aten_schema(text), Error) << text;
}

TEST(AtenSchemas, each_rule_has_one_and_each_has_a_rule) {
  std::set<std::string> ruled;
  for (const AtenRule& r : aten_rules()) {
    EXPECT_FALSE(aten_overloads(r.name).empty()) << r.name << " has no schema";
    ruled.insert(r.name);
    for (const AtenSchema* s : aten_overloads(r.name)) EXPECT_EQ(find_aten_schema(s->target()), s);
  }
  EXPECT_GT(ruled.size(), 150u);
}

}  // namespace
}  // namespace tenon::formats
