// The text of an op's definition is the op's own, whole.
#include "engine/op/op_source.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/op/op.h"

namespace tenon {
namespace {

std::string source_of(const std::string& op) { return definition_text(all_ops().place_of(op)); }

TEST(OpSource, every_own_op_shows_its_own_text) {
  size_t seen = 0;
  for (const OpDef& op : all_ops()) {
    const std::string name = op.info.name, place = place_text(all_ops().place_of(name));
    if (!place.starts_with("engine/ops/")) continue;
    ++seen;
    const std::string text = source_of(name);
    ASSERT_FALSE(text.empty()) << name << " at " << place;
    EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}')) << name << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '('), std::count(text.begin(), text.end(), ')')) << name << text;
    EXPECT_LT(text.size(), 20000u) << name;
  }
  EXPECT_GT(seen, 150u);
}

TEST(OpSource, a_struct_comes_with_its_registration_and_nothing_of_its_neighbours) {
  const std::string text = source_of("linear");
  EXPECT_EQ(text.find("struct Linear {"), 0u) << text;
  EXPECT_NE(text.find("static void backward(Grad& d)"), std::string::npos);
  EXPECT_TRUE(text.ends_with("Register<Linear> linear_op;\n")) << text;
  EXPECT_EQ(text.find("struct Matmul"), std::string::npos);
}

TEST(OpSource, what_was_compiled_elsewhere_is_read_from_there_and_may_be_gone) {
  static const Place here = Place::current();
  EXPECT_NE(definition_text(here).find("Place here = Place::current()"), std::string::npos) << definition_text(here);
#line 1 "/no/such/plugin.cpp"
  static const Place gone = Place::current();
  EXPECT_EQ(definition_text(gone), "");
}

}  // namespace
}  // namespace tenon
