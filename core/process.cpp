#include "core/process.h"

#include <fcntl.h>
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

ProcessResult run_process(const std::vector<std::string>& words) {
  std::vector<std::string> copy = words;
  std::vector<char*> argv;
  for (std::string& w : copy) argv.push_back(w.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error("no pipe can be made to run " + words.at(0) + ": " + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child = 0;
  const int code = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ProcessResult result;
  if (code == 0) {
    char part[4096];
    for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0 || (n < 0 && errno == EINTR);)
      if (n > 0) result.said.append(part, static_cast<size_t>(n));
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  close(ends[0]);
  if (code != 0) throw Error(words[0] + " cannot be started: " + std::strerror(code));
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
