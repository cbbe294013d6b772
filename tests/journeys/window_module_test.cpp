// The program without its window: on a machine without Qt, where the window was not installed, where it is broken.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

const std::string kPrograms = std::string(TENON_BINARY_DIR) + "/bin/";

/// The program alone in a folder, and what lies where its window would.
struct WithoutWindow : ::testing::Test {
  Folder folder;
  std::string program = folder / "bin/tenon", module;
  void SetUp() override {
    std::filesystem::create_directories(folder / "bin");
    std::filesystem::copy_file(kPrograms + "tenon", program);
    module = (std::filesystem::path(folder / "bin") / TENON_MODULES "/window.so").lexically_normal().string();
    std::filesystem::create_directories(std::filesystem::path(module).parent_path());
  }
  void lies_there(const std::string& bytes) { std::ofstream(module, std::ios::binary) << bytes; }
};

TEST_F(WithoutWindow, the_command_line_does_its_jobs) {
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(run({program, "new", project, "--template", "spirals"}).status, 0);
  const Outcome trained = run({program, "train", project, "--epochs", "1"});
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(run({program, "eval", project}).status, 0);
}

TEST_F(WithoutWindow, what_wants_a_window_says_what_is_missing) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{program},
                                                {program, "p.tenon"},
                                                {program, "shot", "--view", "window", "-o", "x.png"}}) {
    const Outcome o = run(words);
    EXPECT_EQ(o.status, 1);
    EXPECT_NE(o.err.find(module + " is not there"), std::string::npos) << o.err;
    EXPECT_NE(o.err.find("tenon --help"), std::string::npos) << o.err;
  }
  const Outcome doctor = run({program, "doctor"});
  EXPECT_NE(doctor.out.find(module + " is not there"), std::string::npos) << doctor.out;
}

TEST_F(WithoutWindow, a_broken_or_foreign_window_is_an_error) {
  lies_there("no library");
  EXPECT_NE(run({program}).err.find("there is no window: " + module), std::string::npos);
  const std::string source = folder / "foreign.cpp";
  std::ofstream(source) << "extern \"C\" { extern const char* const tenon_window_entry[2]; }\n"
                           "const char* const tenon_window_entry[2] = {\"0.0.1\", nullptr};\n";
  ASSERT_EQ(run({"c++", "-shared", "-fPIC", source, "-o", module}).status, 0);
  const Outcome o = run({program});
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("belongs to another version of Tenon (0.0.1)"), std::string::npos) << o.err;
}

TEST(WindowModule, its_views_are_listed_without_a_display) {
  if (!std::filesystem::exists(kPrograms + TENON_MODULES "/window.so")) GTEST_SKIP() << "built without the window";
  const Outcome o = run({"env", "-u", "DISPLAY", kPrograms + "tenon", "shot", "--list"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("\ntimeline "), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("\nmodel_file "), std::string::npos) << o.out;
}

TEST(WindowModule, the_program_needs_no_library_of_Qt) {
  if (!std::filesystem::exists(kPrograms + TENON_MODULES "/window.so")) GTEST_SKIP() << "built without the window";
  EXPECT_EQ(run({"ldd", kPrograms + "tenon"}).out.find("libQt"), std::string::npos);
  EXPECT_NE(run({"ldd", kPrograms + TENON_MODULES "/window.so"}).out.find("libQt"), std::string::npos);
}

}  // namespace
}  // namespace tenon::journeys
