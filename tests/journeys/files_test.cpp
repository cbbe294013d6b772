// Files of a person's day: an empty project, a copy while it trains, settings, pictures as lines.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

const std::string kProgram = std::string(TENON_BINARY_DIR) + "/bin/tenon";

TEST(Files, an_empty_project_is_made_and_built_later) {
  Folder dir;
  const Outcome made = tenon({"new", dir / "e.tenon", "--set", "epochs=3", "--json"});
  ASSERT_EQ(made.status, 0) << made.err;
  bool told = false;
  for (const auto& j : tenon({"recipe", dir / "e.tenon", "--json"}).json())
    told |= j.at("key") == "epochs" && j.at("value") == 3;
  EXPECT_TRUE(told);
  EXPECT_EQ(tenon({"new", dir / "e.tenon"}).status, 1) << "what is there stays";
  EXPECT_EQ(tenon({"new", dir / "f.tenon", "--data", "x"}).status, 1) << "there are no such data";
  const Outcome trained = tenon({"train", dir / "e.tenon"});
  EXPECT_EQ(trained.status, 1) << "there is nothing to train yet";
  EXPECT_FALSE(trained.err.empty());
}

TEST(Files, a_copy_is_made_and_never_replaces) {
  Folder dir;
  ASSERT_EQ(tenon({"new", dir / "p.tenon", "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", dir / "p.tenon", "--max-steps", "20"}).status, 0);
  const Outcome copied = tenon({"copy", dir / "p.tenon", dir / "q.tenon", "--json"});
  ASSERT_EQ(copied.status, 0) << copied.err;
  EXPECT_EQ(copied.json().at(0).at("copy"), dir / "q.tenon");
  const std::string run = tenon({"runs", dir / "p.tenon", "--json"}).json().at(0).at("name");
  EXPECT_EQ(tenon({"digest", dir / "p.tenon", run, "--step", "20"}).out,
            tenon({"digest", dir / "q.tenon", run, "--step", "20"}).out);
  const Outcome again = tenon({"copy", dir / "p.tenon", dir / "q.tenon"});
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.err.find("already exists"), std::string::npos) << again.err;
  EXPECT_EQ(tenon({"copy", dir / "none.tenon", dir / "r.tenon"}).status, 1);
  EXPECT_FALSE(std::filesystem::exists(dir / "r.tenon"));
}

TEST(Files, the_cache_folder_is_told_limited_and_emptied) {
  Folder dir;
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"env", "XDG_CONFIG_HOME=" + dir.path(), "XDG_CACHE_HOME=" + (dir / "c"), kProgram});
    return run(words);
  };
  const Outcome bare = with({"cache", "--json"});
  ASSERT_EQ(bare.status, 0) << bare.err;
  EXPECT_EQ(bare.json().at(0).at("files"), 0);
  EXPECT_EQ(bare.json().at(0).at("limit"), int64_t{10} << 30);
  std::filesystem::create_directories(dir / "c/tenon/traces");
  write_file(dir / "c/tenon/traces/kept", std::string(5000, 'x'));
  const auto told = with({"cache", "--json"}).json().at(0);
  EXPECT_EQ(told.at("bytes"), 5000);
  EXPECT_EQ(told.at("kinds").at("traces").at("files"), 1);
  EXPECT_NE(with({"cache"}).out.find("traces"), std::string::npos);
  const auto emptied = with({"cache", "--empty", "--json"}).json().at(0);
  EXPECT_EQ(emptied.at("removed").at("bytes"), 5000);
  EXPECT_EQ(emptied.at("files"), 0);
  write_file(dir / "c/tenon/traces/kept", "x");
  EXPECT_EQ(with({"settings", "--set", "cache_limit=0"}).status, 0);
  EXPECT_EQ(with({"cache", "--json"}).json().at(0).at("files"), 0) << "a limit holds at once";
}

TEST(Files, settings_are_listed_set_and_put_back) {
  Folder dir;
  auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"env", "XDG_CONFIG_HOME=" + dir.path(), kProgram});
    return run(words);
  };
  const Outcome all = with({"settings", "--json"});
  ASSERT_EQ(all.status, 0) << all.err;
  ASSERT_GE(all.json().size(), 3u);
  const Outcome set = with({"settings", "--set", "threads=1", "--set", "theme=light"});
  ASSERT_EQ(set.status, 0) << set.err;
  for (const auto& j : with({"settings", "--json"}).json()) {
    if (j.at("setting") == "threads") {
      EXPECT_EQ(j.at("value"), 1);
    }
    if (j.at("setting") == "theme") {
      EXPECT_EQ(j.at("value"), "light");
    }
  }
  // What computes follows it.
  EXPECT_NE(with({"doctor"}).out.find("1 compute"), std::string::npos);
  EXPECT_EQ(with({"settings", "--set", "threads=-1"}).status, 2);
  const Outcome unknown = with({"settings", "--set", "thread=1", "--reset", "theme"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("threads"), std::string::npos) << "the near name";
  EXPECT_NE(read_file(dir / "tenon/settings.json").find("light"), std::string::npos) << "nothing of it was done";
  EXPECT_EQ(with({"settings", "--reset", "threads", "--reset", "theme"}).status, 0);
  EXPECT_EQ(with({"doctor"}).out.find("1 compute"), std::string::npos) << "unless this machine has one core";
}

}  // namespace
}  // namespace tenon::journeys
