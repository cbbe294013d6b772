#include "views/shared/document_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "views/shared/settings.h"

namespace tenon::views {
namespace {

class KeptDocument : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* was = std::getenv("XDG_CONFIG_HOME");
    had_ = was != nullptr;
    if (was) was_ = was;
    folder_ = ::testing::TempDir() + "kept_documents." + std::to_string(getpid());  // tests run beside one another
    std::filesystem::remove_all(folder_);
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (had_)
      setenv("XDG_CONFIG_HOME", was_.c_str(), 1);
    else
      unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(folder_);
  }
  std::string folder_, was_;
  bool had_ = false;
};

TEST_F(KeptDocument, IsReadAsItWasWrittenAndByItsPath) {
  const DocumentState state{
      12.5, 1e9, {false, true}, {{100, 200, "why \"here\"? ünïcode"}, {7.25, 7.25, ""}}, {true, false, true}};
  EXPECT_EQ(document_state("/data/a.json"), DocumentState{});
  set_document_state("/data/a.json", state);
  EXPECT_EQ(document_state("/data/a.json"), state);
  EXPECT_EQ(document_state("/data/../data/a.json"), state);
  EXPECT_EQ(document_state("/data/b.json"), DocumentState{});
  DocumentState memory{100, 200};
  memory.memory = {2, "stream", true, 12345678901};
  set_document_state("/data/m.pickle", memory);
  EXPECT_EQ(document_state("/data/m.pickle"), memory);
  set_document_state("/data/m.pickle", {});
  set_document_state("/data/a.json", {});
  EXPECT_EQ(document_state("/data/a.json"), DocumentState{});
  EXPECT_TRUE(std::filesystem::is_empty(settings::folder() + "/documents"));
}

TEST_F(KeptDocument, WhatIsDamagedCountsAsNothingAndAFullDiskIsTold) {
  set_document_state("/data/a.json", {1, 2, {}, {{3, 4, "x"}}});
  const auto file = std::filesystem::directory_iterator(settings::folder() + "/documents")->path();
  for (const char* text :
       {"", "[", "[1]", "{\"path\": 7}", "{\"path\":\"/data/a.json\",\"folded\":3,\"pinned\":{},\"bookmarks\":7}",
        "{\"path\":\"/data/a.json\",\"from\":1e999,\"bookmarks\":[1,{\"note\":5}]}",
        "{\"path\":\"/data/a.json\",\"memory\":[3]}",
        "{\"path\":\"/data/a.json\",\"memory\":{\"trace\":-1e300,\"by\":7,\"cursor\":\"x\"}}"}) {
    std::ofstream(file) << text;
    EXPECT_EQ(document_state("/data/a.json").bookmarks.size(), 0u) << text;
  }
  std::filesystem::remove_all(folder_);
  std::ofstream(folder_) << "no folder";
  EXPECT_THROW(set_document_state("/data/a.json", {1, 2, {}, {}}), Error);
}

}  // namespace
}  // namespace tenon::views
