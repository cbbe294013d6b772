#include "core/process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "tests/messages.h"

namespace tenon {
namespace {

TEST(Process, says_what_it_said_and_how_it_ended) {
  const ProcessResult both = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(both.status, 3);
  EXPECT_EQ(both.said, "out\nerr\n");
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}).status, 128 + 9);
  const ProcessResult long_one = run_process({"sh", "-c", "head -c 300000 /dev/zero; read x || echo no input"});
  EXPECT_EQ(long_one.said.size(), 300000 + 9u) << "more than a pipe holds, and nothing to read";
  EXPECT_THROW(run_process({"/no/such/program"}), Error);
}

TEST(Process, is_killed_with_what_it_started_where_it_is_not_wanted_any_longer) {
  const TemporaryFolder folder("tenon-process");
  const std::string begun = folder / "begun", ended = folder / "ended";
  const auto begin = std::chrono::steady_clock::now();
  int asked = 0;
  const auto until_begun = [&] { return ++asked < 3000 && !std::filesystem::exists(begun); };
  EXPECT_SAYS(testing_words::message_of([&] {
                run_process({"sh", "-c", "(touch " + begun + "; sleep 100; touch " + ended + ") & wait"}, until_begun);
              }),
              "cancelled");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(90)) << "it is not waited for";
  EXPECT_TRUE(std::filesystem::exists(begun));
  EXPECT_FALSE(std::filesystem::exists(ended));
  EXPECT_EQ(run_process({"pgrep", "-f", ended}).status, 1) << "nobody goes on";
  EXPECT_EQ(run_process({"sh", "-c", "sleep 0.3; echo done"}, [] { return true; }).said, "done\n");
}

TEST(Process, is_found_on_the_path) {
  EXPECT_EQ(first_program({"no-such-program-1", "no-such-program-2"}), "");
  const std::string shell = first_program({"no-such-program", "sh"});
  EXPECT_TRUE(shell.ends_with("/sh")) << shell;
}

}  // namespace
}  // namespace tenon
