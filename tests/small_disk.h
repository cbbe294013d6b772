#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

/// A test on a disk of a few megabytes that only its own process sees. The test is run again, by itself, in a new
/// process of the same program (threads do not outlive a fork), for which a small file system in memory is mounted on a
/// folder of its own.
namespace tenon::small_disk {

constexpr int kRefused = 77;

/// Only in a child that is about to become another program.
inline bool mount_here(const std::string& folder, const std::string& size) {
  const unsigned user = geteuid(), group = getegid();
  if (unshare(CLONE_NEWNS) != 0) {
    // Who is not root may mount in a user namespace, where the kernel grants those.
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    auto put = [](const char* file, const std::string& text) { std::ofstream(file) << text; };
    put("/proc/self/setgroups", "deny");
    put("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
    put("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", folder.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
}

/// Runs `body` with the path of a disk of that size ("8m"). Called by the test of that full name, and by nothing else.
inline void with(const char* size, const std::function<void(const std::string& disk)>& body) {
  if (const char* disk = std::getenv("TENON_SMALL_DISK")) return body(disk);
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name();
  std::string folder = (std::filesystem::temp_directory_path() / "tenon-disk-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string said = folder + ".out";
  const pid_t child = fork();
  if (child == 0) {
    if (!mount_here(folder, size)) _exit(kRefused);
    setenv("TENON_SMALL_DISK", folder.c_str(), 1);
    const int out = open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1);
    dup2(out, 2);
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    execl(self.c_str(), self.c_str(), filter.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::ifstream in(said);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(said);
  std::filesystem::remove(folder);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kRefused)
    GTEST_SKIP() << "the kernel lets this user mount no small disk";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  EXPECT_NE(text.find("[  PASSED  ] 1 test."), std::string::npos) << text;
}

/// Takes all that is free on a disk but `leave` bytes, also in addition to what it took before; gone with drain().
inline void fill(const std::string& disk, int64_t leave = 0) {
  const int fd = open((disk + "/ballast").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ASSERT_GE(fd, 0);
  const std::string block(65536, 'b');
  int64_t size = lseek(fd, 0, SEEK_END);
  for (size_t piece : {block.size(), size_t{4096}})
    for (ssize_t n = 0; (n = write(fd, block.data(), piece)) > 0;) size += n;
  EXPECT_EQ(errno, ENOSPC);
  ASSERT_GE(size, leave);
  ASSERT_EQ(ftruncate(fd, size - leave), 0);
  close(fd);
}
inline void drain(const std::string& disk) { std::filesystem::remove(disk + "/ballast"); }

}  // namespace tenon::small_disk
