// The text of an op's definition is the op's own, whole.
#include "engine/op/op_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "engine/op/op.h"
#include "tests/engine/files.h"

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
  const testing_files::Folder folder;
  const std::string file = folder.file("wave.cpp");
  std::ofstream(file) << "// Not this one.\nint x;\n// A wave.\nstruct Wave {\n  int y;\n};\n"
                      << "const Register<Wave> wave_op;\nint z;\n";
  EXPECT_EQ(definition_text(Place::current(file.c_str(), 7)),
            "// A wave.\nstruct Wave {\n  int y;\n};\nconst Register<Wave> wave_op;\n");
  EXPECT_EQ(definition_text(Place::current(file.c_str(), 99)), "");
  EXPECT_EQ(definition_text(Place::current("/no/such/plugin.cpp", 1)), "");
}

}  // namespace
}  // namespace tenon
