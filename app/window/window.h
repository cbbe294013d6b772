#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"

namespace tenon::app {

/// What `tenon [FILE...] [--train]` asks for.
struct WindowRequest {
  std::vector<std::string> files;    ///< none: the start page
  bool train = false;                ///< start a run at once
  std::string theme;                 ///< dark, light; empty: the system's
  std::vector<Error> problems = {};  ///< to be told when the window is there
};

/// What `tenon shot` asks for: a picture of one view (or of the whole window).
struct ShotRequest {
  std::string file;    ///< a project, or a trace; empty: the window with nothing open
  std::string other;   ///< opened beside it, to be compared; empty: none
  std::string view;    ///< "training", "tensor", ...; "window": everything
  std::string run;     ///< empty: the latest
  int64_t step = -1;   ///< -1: the last one done
  std::string select;  ///< as views::parse_selection() reads it; empty: nothing
  int width = 1440, height = 900;
  std::string theme = "dark";
  std::string output;  ///< .png; of a view also .svg
};

/// A view that `tenon shot` can show.
struct PicturedView {
  std::string id, title, shows;  ///< its name on the command line, in the window, and what one sees
};

/// What `tenon bench curves` measures of the window.
struct CurveTimes {
  double open_ms = 0;                                     ///< from the file's name to the table of its runs
  double filter_ms = 0;                                   ///< the slowest of some filters, until the table is painted
  double compare_ms = 0;                                  ///< until the curves of the overlaid runs are read and seen
  double alone_ms = 0;                                    ///< a frame of the shown run alone
  double frame_ms = 0, worst_frame_ms = 0, scene_ms = 0;  ///< of the curves, the median; what of it is our picture
  // Processor time of all threads, which other programs on the machine do not stretch.
  double open_work_ms = 0, filter_work_ms = 0, alone_work_ms = 0, frame_work_ms = 0, scene_work_ms = 0;
  int overlaid = 0;
};

/// What `tenon bench builder` measures of the window with a model of very many layers.
struct BuilderTimes {
  struct Wait {
    std::string what;  ///< "open", "unfold", "arrange"
    double ms = 0, work_ms = 0;
  };
  struct Hand {
    std::string what;  ///< "folded_pan": what the hand did, in which state
    double ms = 0, worst_ms = 0;
    double work_ms = 0, work_worst_ms = 0;  ///< processor time of all threads, the driver's included
  };
  std::vector<Wait> waits;
  std::vector<Hand> hands;  ///< a frame of each
};

/// What `tenon bench open` measures of the window with one trace, snapshot or model file.
struct OpenTimes {
  struct Opening {
    double beginning_ms = 0;            ///< to the picture of its beginning, while it is read; 0: there was none
    double first_ms = 0, whole_ms = 0;  ///< from the click to a picture of it; until the window has nothing left to do
    double first_work_ms = 0, whole_work_ms = 0;  ///< processor time until then, of all threads
  };
  std::vector<Opening> openings;           ///< the second finds what the first left beside the file
  double main_view_ms = 0, unfold_ms = 0;  ///< to the view that the flight goes through; all of it unfolded
  int frames = 0, moved = 0;               ///< of the flight; those that showed something else than the one before
  double frame_ms = 0, frame_p99_ms = 0, frame_worst_ms = 0;
  double frame_work_ms = 0, frame_work_p99_ms = 0;     ///< processor time of all threads, the driver's included
  double rss_before = 0, rss_peak = 0, rss_flown = 0;  ///< the most of the process: without the file, opened, flown
  struct Deaf {
    std::string during;
    double p50_ms = 0, p99_ms = 0, worst_ms = 0;
    double work_p99_ms = 0, work_worst_ms = 0;  ///< what of it the UI thread worked
  };
  std::vector<Deaf> deaf;  ///< how late the UI thread heard a hand
};

/// Note [The window is a file of its own]
/// What needs Qt is a module beside the program, lib/tenon/window.so, which is loaded when a window is asked for. The
/// command line begins without Qt's libraries and their memory, and runs where they are not installed. The module has
/// nothing of the rooms below: it finds the program's own, so that there is one copy of every registry.
class Window {
 public:
  virtual ~Window() = default;
  /// Opens the workbench and returns its exit status when it is closed.
  virtual int open(int argc, char** argv, const WindowRequest& request) const = 0;
  /// Throws Error for an unknown view (naming the near ones) and whatever else does not fit.
  virtual int shot(const ShotRequest& request) const = 0;
  /// In the order of their tabs.
  virtual std::vector<PicturedView> views() const = 0;
  /// Opens a project and overlays its first runs in the curves. Throws Error where that takes more than ten minutes.
  virtual CurveTimes measure_curves(const std::string& file, int runs) const = 0;
  /// Opens a project in the builder and works with it by mouse and wheel. Throws Error where that takes more than ten
  /// minutes.
  virtual BuilderTimes measure_builder(const std::string& file) const = 0;
  /// Opens the file, flies through its main view, closes it and opens it again. Throws Error where that takes more than
  /// ten minutes, and of what is no such file.
  virtual OpenTimes measure_open(const std::string& file) const = 0;
};

/// What the module has for the program.
struct WindowEntry {
  const char* version;  ///< TENON_VERSION of the program it was built with
  const Window& (*window)();
};
constexpr char kWindowEntry[] = "tenon_window_entry";

}  // namespace tenon::app
