#pragma once
#include <string>

#include "app/window/window.h"

namespace tenon::app {

/// The file beside the program that the window is in; it may not be there. Throws Error where the program does not know
/// its own place.
std::string window_file();

/// The window, loaded at the first call; see Note [The window is a file of its own]. Throws Error, with what to do,
/// where the file is not there, is another version's, or lacks a library (Qt).
const Window& window();

}  // namespace tenon::app
