#include "core/cache_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/file.h"
#include "core/mapped_file.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

class CacheFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* was = std::getenv("XDG_CACHE_HOME")) before_ = was;
    setenv("XDG_CACHE_HOME", home_.c_str(), 1);
    cache::set_limit(1000);
  }
  void TearDown() override {
    before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    cache::set_limit(cache::kUsualLimit);
    fs::remove_all(home_);
  }
  /// A file of so many bytes that was used so many seconds ago.
  std::string put(const std::string& kind, const std::string& name, size_t bytes, int64_t ago) {
    fs::create_directories(cache::folder_of(kind));
    const std::string path = cache::folder_of(kind) + "/" + name;
    write_file(path, std::string(bytes, 'x'));
    timespec times[2] = {{time(nullptr) - ago, 0}, {time(nullptr) - ago, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return path;
  }
  std::string home_ = (fs::temp_directory_path() / ("tenon-cache-test-" + std::to_string(getpid()))).string();
  std::string before_;
};

TEST_F(CacheFolder, what_was_used_longest_ago_goes_first) {
  const std::string old = put("traces", "old", 400, 300), older = put("tokens", "older", 300, 500),
                    fresh = put("snapshots", "fresh", 300, 10);
  EXPECT_EQ(cache::held_in_all().bytes, 1000);
  EXPECT_EQ(cache::held_in_all().files, 3);
  EXPECT_EQ(cache::held().at("traces").bytes, 400);
  EXPECT_TRUE(cache::make_room());
  EXPECT_EQ(cache::held_in_all().files, 3) << "it is within the limit";
  EXPECT_TRUE(cache::make_room(100));
  EXPECT_FALSE(fs::exists(older));
  EXPECT_TRUE(fs::exists(old) && fs::exists(fresh));
  // One that is opened is used now.
  MappedFile::open(old);
  EXPECT_TRUE(cache::make_room(500));
  EXPECT_FALSE(fs::exists(fresh));
  EXPECT_TRUE(fs::exists(old));
  EXPECT_FALSE(cache::make_room(1001)) << "that much never fits";
  EXPECT_EQ(cache::held_in_all().files, 0);
}

TEST_F(CacheFolder, what_is_open_stays) {
  const std::string open = put("traces", "open", 600, 900), other = put("traces", "other", 600, 10);
  auto file = MappedFile::open(open);
  EXPECT_EQ(cache::hold(home_ + "/elsewhere"), nullptr);
  EXPECT_TRUE(cache::make_room());
  EXPECT_TRUE(fs::exists(open)) << "though it was used longest ago";
  EXPECT_FALSE(fs::exists(other));
  EXPECT_FALSE(cache::make_room(900));
  EXPECT_EQ(cache::empty().files, 0);
  EXPECT_EQ(file->bytes(), std::string(600, 'x'));
  file.reset();
  EXPECT_EQ(cache::empty().bytes, 600);
  EXPECT_FALSE(fs::exists(open));
}

TEST_F(CacheFolder, is_emptied_of_its_own_files_alone) {
  put("traces", "a", 10, 5);
  put("tokens", "half.part-" + std::to_string(getpid()), 10, 5);
  const std::string dead = put("tokens", "half.part-999999999", 10, 5), outside = home_ + "/outside";
  write_file(outside, "somebody's");
  fs::create_symlink(outside, cache::folder_of("traces") + "/link");
  fs::create_directories(cache::folder_of("traces") + "/within");
  const cache::Held gone = cache::empty();
  EXPECT_EQ(gone.files, 2);
  EXPECT_EQ(gone.bytes, 20);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(outside));
  EXPECT_TRUE(fs::exists(cache::folder_of("tokens") + "/half.part-" + std::to_string(getpid())))
      << "somebody is writing it";
  fs::remove_all(home_);
  EXPECT_EQ(cache::empty().files, 0) << "there is no folder yet";
  EXPECT_TRUE(cache::make_room(1000));
}

TEST_F(CacheFolder, a_file_is_its_owners_where_nobody_else_may_write) {
  const std::string path = put("snapshots", "one", 10, 0), within = cache::folder_of("snapshots");
  EXPECT_TRUE(cache::is_own(path));
  for (const std::string& open : {path, within, cache::folder()}) {
    SCOPED_TRACE(open);
    struct stat was {};
    ASSERT_EQ(::stat(open.c_str(), &was), 0);
    for (const mode_t other : {S_IWGRP, S_IWOTH}) {
      ASSERT_EQ(::chmod(open.c_str(), was.st_mode | other), 0);
      EXPECT_FALSE(cache::is_own(path));
    }
    ASSERT_EQ(::chmod(open.c_str(), was.st_mode), 0);
    EXPECT_TRUE(cache::is_own(path));
  }
  const std::string link = within + "/link", outside = home_ + "/outside";
  write_file(outside, "x");
  fs::create_symlink(outside, link);
  EXPECT_FALSE(cache::is_own(link));
  EXPECT_FALSE(cache::is_own(outside));
  EXPECT_FALSE(cache::is_own(within + "/none"));
}

}  // namespace
}  // namespace tenon
