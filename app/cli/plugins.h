#pragma once
#include <string>
#include <vector>

#include "core/error.h"

namespace tenon::app {

/// Where a user's plug-ins lie: the folder `plugins` beside the window's settings.
std::string plugin_folder();

/// Takes --plugin FILE and --no-plugins out of the words, wherever they stand before "--", and loads: first every
/// shared library of plugin_folder() in the order of their names, unless --no-plugins was given, then the files that
/// were named. One that is refused is told on standard error, and everything goes on without it.
std::vector<std::string> load_plugins(std::vector<std::string> words);
/// Of those that were refused, why.
const std::vector<Error>& refused_plugins();

}  // namespace tenon::app
