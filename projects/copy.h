#pragma once
#include <cstdint>
#include <string>

#include "projects/time_travel.h"

namespace tenon::projects {

/// Writes the project at `from` as it is at this moment into a new file, also while another thread or program trains
/// into it. A run that trains is one that was interrupted, in the copy, and can be resumed there. Nothing is left of a
/// copy that failed or was cancelled (Error "cancelled"). Progress counts bytes. Throws where `to` is there already;
/// `replaces`: only where it is this project, or in use.
/// Returns the bytes of the copy.
int64_t copy_project(const std::string& from, const std::string& to, bool replaces = false,
                     const Progress& progress = {});

}  // namespace tenon::projects
