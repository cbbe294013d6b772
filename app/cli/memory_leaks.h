#pragma once
#include <string>
#include <vector>

#include "app/cli/command.h"

namespace tenon::app {

/// Whether a file is a project, whose runs are looked at by replays.
bool is_project(const std::string& path);
/// tenon memory leaks P.tenon [RUN]: the exit status.
int run_leaks(const Args& args);
/// Of a project alone.
std::vector<Option> run_leaks_options();

}  // namespace tenon::app
