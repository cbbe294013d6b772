#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/command.h"
#include "projects/project.h"

namespace tenon::views {
struct Document;
}

namespace tenon::app {

/// For commands that only look: works while another process trains, and on read-only files.
std::shared_ptr<projects::Project> open_to_read(const std::string& path);
/// The named run, or the latest where the name is empty. Throws where there is none.
projects::RunInfo pick_run(const projects::Project& project, const std::string& name);
/// The step a text names: a number, "last", or "best".
int64_t pick_step(const projects::RunInfo& run, const std::string& text);
/// A run and one of its steps as "RUN@STEP" names them; without "@" the last one, without a name the latest run.
struct RunStep {
  projects::RunInfo run;
  int64_t step = 0;
};
RunStep pick_run_step(const projects::Project& project, const std::string& text);
/// "PROJECT [RUN] --checkpoint WHICH" of a command that takes a run as of a step, with its --threads applied; from here
/// on an interrupt is noticed. Throws where there is no such run or step.
struct AskedState {
  std::shared_ptr<projects::Project> project;
  projects::RunInfo run;
  int64_t step = 0;
};
AskedState asked_state(const Args& args);
/// The values of an option that is KEY=VALUE, in the order they were given. Throws Error (usage) for one without '='.
std::vector<std::pair<std::string, std::string>> pairs_of(const Args& args, const std::string& option);
/// Throws Error (usage) naming the files where a document is of several ranks: what is asked is asked of one of them.
void need_one_trace(const views::Document& document);
/// --threads N, applied.
void use_threads(const Args& args);

}  // namespace tenon::app
