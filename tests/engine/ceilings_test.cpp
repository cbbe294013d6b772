// What the processor reaches at most: measured, kept in the cache folder, and measured again where that is no good.
#include "engine/kernels/ceilings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/cache_folder.h"
#include "core/file.h"
#include "core/parallel.h"
#include "core/processor.h"

namespace tenon::kernels {
namespace {

namespace fs = std::filesystem;

class CeilingsFile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* was = std::getenv("XDG_CACHE_HOME")) before_ = was;
    setenv("XDG_CACHE_HOME", home_.c_str(), 1);
  }
  void TearDown() override {
    set_num_threads(0);
    before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    fs::permissions(home_, fs::perms::owner_all, none_);
    fs::remove_all(home_, none_);
  }
  static Ceilings made(int threads) { return {processor_name(), threads, 5e10, 1e10}; }
  /// The one file that is kept.
  static std::string only_file() {
    std::string path;
    for (const auto& f : fs::directory_iterator(cache::folder_of("ceilings"))) {
      EXPECT_TRUE(path.empty()) << f.path();
      path = f.path().string();
    }
    return path;
  }
  std::string home_ = (fs::temp_directory_path() / ("tenon-ceilings-test-" + std::to_string(getpid()))).string();
  std::string before_;
  std::error_code none_;
};

TEST_F(CeilingsFile, what_is_kept_is_read_for_as_many_threads) {
  set_num_threads(1);
  EXPECT_FALSE(kept_ceilings());
  keep_ceilings(made(1));
  ASSERT_TRUE(kept_ceilings());
  EXPECT_EQ(*kept_ceilings(), made(1));
  EXPECT_EQ(known_ceilings(), made(1)) << "what is known is not measured";
  set_num_threads(2);
  EXPECT_FALSE(kept_ceilings()) << "two threads reach more than one";
  keep_ceilings(made(2));
  EXPECT_EQ(kept_ceilings(), made(2));
  set_num_threads(1);
  EXPECT_EQ(kept_ceilings(), made(1));
}

TEST_F(CeilingsFile, a_file_that_says_nothing_sound_is_none) {
  set_num_threads(1);
  keep_ceilings(made(1));
  const std::string path = only_file(), good = read_file(path);
  const auto with = [&](const std::string& part, const std::string& instead) {
    const size_t at = good.find(part);
    EXPECT_NE(at, std::string::npos) << part << " in " << good;
    return std::string(good).replace(at, part.size(), instead);
  };
  for (const std::string& text :
       {std::string(), std::string("{"), good.substr(0, good.size() / 2), std::string("[]"), std::string("{}"),
        with("10000000000.0", "0"), with("10000000000.0", "-1"), with("10000000000.0", "1e999"),
        with("10000000000.0", "\"fast\""), with("50000000000.0", "null"), with("\"threads\": 1", "\"threads\": 3"),
        with(processor_name(), "another processor")}) {
    write_file(path, text);
    EXPECT_FALSE(kept_ceilings()) << text;
  }
  write_file(path, good);
  EXPECT_TRUE(kept_ceilings());
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_FALSE(kept_ceilings()) << "anybody can have written it";
}

TEST_F(CeilingsFile, without_a_folder_nothing_is_kept_and_nothing_fails) {
  setenv("XDG_CACHE_HOME", "/dev/null", 1);
  keep_ceilings(made(num_threads()));
  EXPECT_FALSE(kept_ceilings());
}

TEST_F(CeilingsFile, a_damaged_one_is_measured_again) {
  set_num_threads(1);
  keep_ceilings(made(1));
  write_file(only_file(), "no JSON");
  const Ceilings c = known_ceilings();
  EXPECT_EQ(c.processor, processor_name());
  EXPECT_EQ(c.threads, 1);
  EXPECT_TRUE(std::isfinite(c.flops) && c.flops > 0) << c.flops;
  EXPECT_TRUE(std::isfinite(c.bytes) && c.bytes > 0) << c.bytes;
  EXPECT_EQ(kept_ceilings(), c) << "kept to the last bit";
}

TEST(Ceilings, the_roof_is_a_slope_up_to_the_ridge) {
  const Ceilings c{"p", 1, 6e10, 1.5e10};
  EXPECT_EQ(c.ridge(), 4);
  EXPECT_EQ(c.at(0), 0);
  EXPECT_EQ(c.at(2), 3e10);
  EXPECT_EQ(c.at(4), 6e10);
  EXPECT_EQ(c.at(400), 6e10);
}

}  // namespace
}  // namespace tenon::kernels
