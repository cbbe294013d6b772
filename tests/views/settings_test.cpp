#include "views/shared/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/file.h"

namespace tenon::views {
namespace {

class SettingsFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tenon-settings-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    const char* had = std::getenv("XDG_CONFIG_HOME");
    before_ = had ? had : "";
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (before_.empty())
      ::unsetenv("XDG_CONFIG_HOME");
    else
      ::setenv("XDG_CONFIG_HOME", before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  std::string file() const { return folder_ / "tenon" / "settings.json"; }
  std::filesystem::path folder_;
  std::string before_;
};

TEST_F(SettingsFile, has_defaults_keeps_what_was_set_and_goes_back) {
  for (const AttrDef& def : settings::defs()) {
    EXPECT_EQ(settings::get(def.name), def.fallback) << def.name;
    EXPECT_FALSE(def.help.empty());
  }
  settings::set("text_size", int64_t{15});
  settings::set("theme", std::string("light"));
  EXPECT_EQ(settings::integer("text_size"), 15);
  EXPECT_EQ(settings::text("theme"), "light");
  settings::reset("text_size");
  EXPECT_EQ(settings::integer("text_size"), 13);
  EXPECT_EQ(settings::text("theme"), "light") << "the others stay";
  EXPECT_THROW(settings::set("text_size", int64_t{99}), Error);
  EXPECT_THROW(settings::set("theme", std::string("pink")), Error);
  EXPECT_THROW(settings::set("thread", int64_t{1}), Error);
  try {
    settings::find_def("thread");
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("threads"), std::string::npos) << "the near name: " << e.message();
  }
}

TEST_F(SettingsFile, remembers_files_once_and_latest_first) {
  settings::add_recent("/a/one.tenon", "project");
  settings::add_recent("/a/two.json", "trace");
  settings::add_recent("/a/b/../one.tenon", "project");
  auto files = settings::recent();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, "/a/one.tenon");
  EXPECT_EQ(files[1].kind, "trace");
  EXPECT_GT(files[0].opened, 1600000000);
  settings::forget_recent("/a/one.tenon");
  ASSERT_EQ(settings::recent().size(), 1u);
  for (int i = 0; i < 100; ++i) settings::add_recent("/many/" + std::to_string(i), "project");
  EXPECT_EQ(settings::recent().size(), 30u);
  EXPECT_EQ(settings::recent()[0].path, "/many/99");
}

TEST_F(SettingsFile, keeps_shortcuts_and_the_tour) {
  settings::set_shortcut("run.train", "Ctrl+T");
  settings::set_shortcut("go.to", "");
  EXPECT_EQ(settings::shortcuts().at("run.train"), "Ctrl+T");
  EXPECT_EQ(settings::shortcuts().at("go.to"), "");
  settings::reset_shortcut("go.to");
  EXPECT_EQ(settings::shortcuts().size(), 1u);
  settings::reset_shortcuts();
  EXPECT_TRUE(settings::shortcuts().empty());
  EXPECT_FALSE(settings::tour_seen());
  settings::set_tour_seen(true);
  EXPECT_TRUE(settings::tour_seen());
}

TEST_F(SettingsFile, a_damaged_file_counts_as_empty_and_is_kept_beside) {
  std::filesystem::create_directories(folder_ / "tenon");
  for (const char* text : {"{\"values\": {\"text_size\": ", "[1, 2]", "{\"values\": 3, \"recent\": {\"a\": 1}}",
                           "{\"values\": {\"text_size\": 400, \"theme\": 7}, \"recent\": [3, {\"path\": 4}]}"}) {
    std::ofstream(file()) << text;
    EXPECT_EQ(settings::integer("text_size"), 13) << text;
    EXPECT_EQ(settings::text("theme"), "system") << text;
    EXPECT_TRUE(settings::recent().empty()) << text;
    EXPECT_TRUE(settings::shortcuts().empty()) << text;
  }
  std::ofstream(file()) << "{\"values\": {\"text_size\": ";
  settings::set("text_size", int64_t{14});
  EXPECT_EQ(settings::integer("text_size"), 14);
  EXPECT_EQ(read_file(file() + ".damaged"), "{\"values\": {\"text_size\": ");
}

TEST_F(SettingsFile, a_folder_that_cannot_be_made_is_told) {
  std::ofstream(folder_ / "tenon") << "a file in the place of the folder";
  EXPECT_EQ(settings::integer("text_size"), 13);
  EXPECT_THROW(settings::set("text_size", int64_t{14}), Error);
  EXPECT_THROW(settings::add_recent("/a", "project"), Error);
}

}  // namespace
}  // namespace tenon::views
