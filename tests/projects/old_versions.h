#pragma once
#include <string>

namespace tenon::projects::testing_files {

/// A project as version 1 wrote it: a model, a recipe, a finished run "old" of 20 steps with a NaN in its loss, a
/// checkpoint, an artifact, and a window's state that no version of today understands.
void make_version_1(const std::string& path);

}  // namespace tenon::projects::testing_files
