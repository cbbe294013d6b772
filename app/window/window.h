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

/// What `tenon bench curves` measures of the window.
struct CurveTimes {
  double open_ms = 0;                                     ///< from the file's name to the table of its runs
  double filter_ms = 0;                                   ///< the slowest of some filters, until the table is painted
  double compare_ms = 0;                                  ///< until the curves of the overlaid runs are read and seen
  double alone_ms = 0;                                    ///< a frame of the shown run alone
  double frame_ms = 0, worst_frame_ms = 0, scene_ms = 0;  ///< of the curves, the median; what of it is our picture
  int overlaid = 0;
};
/// Opens a project and overlays its first runs in the curves. Throws Error where that takes more than ten minutes.
CurveTimes measure_curves(const std::string& file, int runs);

}  // namespace tenon::app
