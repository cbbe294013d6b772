#include "tests/journeys/tenon_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

namespace tenon::journeys {
namespace {

Outcome start(std::vector<std::string> words, int signal, int64_t after_us) {
  Folder folder;
  const std::string out = folder / "out", err = folder / "err";
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int zero = open("/dev/null", O_RDONLY), one = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600),
              two = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(zero, 0);
    dup2(one, 1);
    dup2(two, 2);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  if (signal) {
    std::this_thread::sleep_for(std::chrono::microseconds(after_us));
    kill(child, signal);  // of our own child, not yet waited for: the number cannot have gone to another
  }
  int status = 0;
  waitpid(child, &status, 0);
  Outcome o;
  o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  o.out = slurp(out);
  o.err = slurp(err);
  return o;
}

std::vector<std::string> with_program(std::vector<std::string> words) {
  words.insert(words.begin(), std::string(TENON_BINARY_DIR) + "/bin/tenon");
  return words;
}

}  // namespace

std::string digest(const std::string& project, const std::string& run, const std::string& step, int threads) {
  const Outcome o = tenon({"digest", project, run, "--step", step, "--threads", std::to_string(threads)});
  EXPECT_EQ(o.status, 0) << o.err;
  return o.out;
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<nlohmann::json> Outcome::json() const {
  std::vector<nlohmann::json> lines;
  std::istringstream in(out);
  std::string line;
  while (std::getline(in, line)) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

Outcome tenon(const std::vector<std::string>& words) { return start(with_program(words), 0, 0); }
Outcome run(const std::vector<std::string>& words) { return start(words, 0, 0); }
Outcome tenon_signalled(const std::vector<std::string>& words, int signal, int64_t after_us) {
  return start(with_program(words), signal, after_us);
}

void train_through_a_kill(const std::string& project, const std::string& run, std::vector<std::string> words,
                          int64_t after_us) {
  words.insert(words.begin(), {"train", project});
  words.insert(words.end(), {"--run", run});
  constexpr int64_t kLongest = 60'000'000;
  for (int64_t wait = after_us; wait < kLongest; wait *= 2) {
    const Outcome cut = tenon_signalled(words, SIGKILL, wait);
    if (tenon({"run", project, run, "--json"}).status != 0) continue;
    if (cut.status == 0) return;  // it was faster than the kill
    const Outcome rest = tenon({"train", project, "--resume", run});
    EXPECT_EQ(rest.status, 0) << rest.err;
    return;
  }
  ADD_FAILURE() << run << " had not begun after a minute";
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tenon-journey-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}
Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string python() {
  const std::string path = std::string(TENON_SOURCE_DIR) + "/build/venv/bin/python";
  return std::filesystem::exists(path) ? path : "";
}
bool has_fashion_mnist() {
  return std::filesystem::exists("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz");
}

}  // namespace tenon::journeys
