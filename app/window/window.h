#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"

namespace tenon::app {

/// What `tenon [FILE] [--train]` asks for.
struct WindowRequest {
  std::string project;               ///< empty: the start page
  bool train = false;                ///< start a run at once
  std::string theme;                 ///< dark, light; empty: the system's
  std::vector<Error> problems = {};  ///< to be told when the window is there
};
/// Opens the workbench and returns its exit status when it is closed.
int open_window(int argc, char** argv, const WindowRequest& request);

/// What `tenon shot` asks for: a picture of one view (or of the whole window).
struct ShotRequest {
  std::string file;    ///< a project, or a trace; empty: the window with nothing open
  std::string view;    ///< "training", "tensor", ...; "window": everything
  std::string run;     ///< empty: the latest
  int64_t step = -1;   ///< -1: the last one done
  std::string select;  ///< as views::parse_selection() reads it; empty: nothing
  int width = 1440, height = 900;
  std::string theme = "dark";
  std::string output;  ///< .png; of a view also .svg
};
/// Throws Error for an unknown view (naming the near ones) and whatever else does not fit.
int take_shot(int argc, char** argv, const ShotRequest& request);

}  // namespace tenon::app
