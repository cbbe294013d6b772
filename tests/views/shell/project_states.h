#pragma once
#include <string>
#include <vector>

namespace tenon::views::testing {

/// A state a project can be in when a window opens it, with the file of one.
struct ProjectState {
  std::string name;     ///< "killed"
  std::string file;     ///< empty: no project at all
  bool pauses = false;  ///< two steps are trained in the window, which then stays paused
  bool has_run = false;
  std::string skipped;  ///< why it could not be made here; empty: it was
};
std::vector<std::string> project_state_names();
/// Made at its first use in a process, by training where it takes that.
const ProjectState& project_state(const std::string& name);
/// A copy of a state's file in `folder`: tests do not see each other's changes. (A read-only one is given as it is.)
std::string copy_of(const ProjectState& state, const std::string& folder);
/// Writes a small trace of two threads and a stream into `folder`; "training" is the name of one of its events.
std::string small_trace(const std::string& folder);

}  // namespace tenon::views::testing
