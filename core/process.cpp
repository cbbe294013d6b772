#include "core/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

extern char** environ;

namespace tenon {

namespace {
struct PipeEnd {
  int of;
  ~PipeEnd() { close(of); }
};
/// A program that runs; what is not waited for to its end is killed, with all of its group.
struct RunningProgram {
  pid_t child;
  bool ended = false;
  int wait() {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    ended = true;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  ~RunningProgram() {
    if (ended) return;
    kill(-child, SIGKILL);
    wait();
  }
};

/// In a group of its own what it starts can be ended with it; else Ctrl+C at the terminal ends both. What it says goes
/// to the pipe's second end.
pid_t start(const std::vector<std::string>& words, const int pipe[2], bool own_group) {
  std::vector<std::string> copy = words;
  std::vector<char*> argv;
  for (std::string& w : copy) argv.push_back(w.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], 2);
  posix_spawnattr_t group;
  posix_spawnattr_init(&group);
  if (own_group) posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&group, 0);
  pid_t child = 0;
  const int code = posix_spawnp(&child, argv[0], &actions, &group, argv.data(), environ);
  posix_spawnattr_destroy(&group);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) throw Error(words[0] + " cannot be started: " + std::strerror(code));
  return child;
}
}  // namespace

ProcessResult run_process(const std::vector<std::string>& words, const std::function<bool()>& go_on) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error("no pipe can be made to run " + words.at(0) + ": " + std::strerror(errno));
  const PipeEnd reads{ends[0]};
  RunningProgram program{[&] {
    const PipeEnd writes{ends[1]};
    return start(words, ends, go_on != nullptr);
  }()};
  ProcessResult result;
  pollfd said{reads.of, POLLIN, 0};
  for (char part[4096];;) {
    const int ready = poll(&said, 1, go_on ? 100 : -1);
    if (go_on && !go_on()) throw Error("cancelled");
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = read(reads.of, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    result.said.append(part, static_cast<size_t>(n));
  }
  result.status = program.wait();
  return result;
}

std::string first_program(const std::vector<std::string>& names) {
  const char* path = std::getenv("PATH");
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos) {
      if (access(name.c_str(), X_OK) == 0) return name;
      continue;
    }
    for (std::string folders = path ? path : ""; !folders.empty();) {
      const size_t end = std::min(folders.find(':'), folders.size());
      const std::string file = folders.substr(0, end) + "/" + name;
      if (end > 0 && access(file.c_str(), X_OK) == 0) return file;
      folders.erase(0, end + 1);
    }
  }
  return {};
}

}  // namespace tenon
