#include "core/process.h"

#include <gtest/gtest.h>

#include "core/error.h"

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

TEST(Process, is_found_on_the_path) {
  EXPECT_EQ(first_program({"no-such-program-1", "no-such-program-2"}), "");
  const std::string shell = first_program({"no-such-program", "sh"});
  EXPECT_TRUE(shell.ends_with("/sh")) << shell;
}

}  // namespace
}  // namespace tenon
