#pragma once

#include "app/window/window.h"

namespace tenon::app {

/// The window, loaded at the first call; see Note [The window is a file of its own]. Throws Error, with what to do,
/// where the file is not there, is another version's, or lacks a library (Qt).
const Window& window();

}  // namespace tenon::app
