// A file that is cut short while its pages are looked at.
#include "core/mapped_pages.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/mapped_file.h"
#include "core/temporary_folder.h"

namespace tenon {
namespace {

constexpr size_t kPages = 4, kPageBytes = 4096;

class CutFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_, std::ios::binary) << std::string(kPages * kPageBytes, 'a');
    EXPECT_TRUE(cut_files().empty());
  }
  void cut(size_t bytes) const { std::filesystem::resize_file(path_, bytes); }
  TemporaryFolder dir_{"cut file"};
  const std::string path_ = dir_ / "file";
};

TEST_F(CutFile, what_is_missing_counts_as_zeros_and_the_file_is_named_once) {
  const auto file = MappedFile::open(path_);
  const std::string_view bytes = file->bytes();
  cut(kPageBytes);
  EXPECT_TRUE(cut_files().empty()) << "nobody has looked";
  EXPECT_EQ(bytes[0], 'a');
  EXPECT_EQ(bytes[2 * kPageBytes], 0);
  EXPECT_EQ(bytes.back(), 0);
  EXPECT_EQ(bytes[kPageBytes - 1], 'a');
  EXPECT_EQ(cut_files(), std::vector<std::string>{path_});
  EXPECT_EQ(bytes.back(), 0);
  EXPECT_TRUE(cut_files().empty());
  file->forget(bytes);
  EXPECT_EQ(bytes[3 * kPageBytes], 0);
  // A second look from the front finds more that is gone.
  EXPECT_EQ(bytes[kPageBytes], 0);
  EXPECT_EQ(cut_files(), std::vector<std::string>{path_});
}

TEST_F(CutFile, it_is_named_after_it_was_closed) {
  {
    const auto file = MappedFile::open(path_), same = MappedFile::open(path_);
    cut(0);
    EXPECT_EQ(file->bytes()[5], 0);
    EXPECT_EQ(same->bytes()[5], 0);
  }
  EXPECT_EQ(cut_files(), std::vector<std::string>{path_}) << "once, though it was open twice";
}

TEST_F(CutFile, threads_that_meet_there_go_on) {
  const auto file = MappedFile::open(path_);
  cut(0);
  std::vector<std::thread> threads;
  std::atomic<int> sum{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { sum += static_cast<int>(std::count(file->bytes().begin(), file->bytes().end(), 'a')); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(cut_files().size(), 1u);
}

TEST_F(CutFile, no_signal_is_taken_for_another_ones_pages) {
  const auto guarded = MappedFile::open(path_);  // somebody listens
  EXPECT_DEATH(
      {
        const int fd = ::open(path_.c_str(), O_RDONLY);
        const auto* bytes = static_cast<const volatile char*>(mmap(nullptr, kPageBytes, PROT_READ, MAP_PRIVATE, fd, 0));
        cut(0);
        (void)bytes[0];
      },
      "");
}

TEST_F(CutFile, as_many_are_open_as_one_likes) {
  std::vector<std::shared_ptr<const MappedFile>> all;
  for (int i = 0; i < 1500; ++i) all.push_back(MappedFile::open(path_));
  cut(0);
  EXPECT_EQ(all[0]->bytes()[0], 0);
  EXPECT_EQ(all[1000]->bytes()[0], 0);
  all.clear();
  EXPECT_EQ(cut_files().size(), 1u);
  std::ofstream(path_, std::ios::binary) << std::string(kPages * kPageBytes, 'b');
  const auto again = MappedFile::open(path_);
  cut(0);
  EXPECT_EQ(again->bytes()[0], 0) << "there is room again";
  EXPECT_EQ(cut_files().size(), 1u);
}

}  // namespace
}  // namespace tenon
