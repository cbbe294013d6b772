#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tenon {

struct ProcessResult {
  int status = 0;    ///< the exit status; 128 + the signal that ended it
  std::string said;  ///< on standard output and error
};

/// Runs a program, found on the path, without input, and waits for its end. `go_on` is asked ten times a second
/// meanwhile: where it returns false, or throws, the program and those that it started are killed. Throws Error where
/// it cannot be started, and Error "cancelled" once `go_on` returned false.
ProcessResult run_process(const std::vector<std::string>& words, const std::function<bool()>& go_on = {});

/// The first of these programs that the path has, or that a path names; empty where there is none.
std::string first_program(const std::vector<std::string>& names);

}  // namespace tenon
