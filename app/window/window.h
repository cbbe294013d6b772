#pragma once
#include <cstdint>
#include <string>

namespace tenon::app {

/// What the window opens with. No Qt here: the command line includes this whether or not there is a window.
struct WindowOptions {
  std::string file;             ///< a project; empty: none
  bool start_training = false;  ///< begin a run as soon as the project is open
  std::string theme;            ///< dark, light or contrast; empty: as the desktop has it
};
/// Runs the window until it is closed. Throws Error where there is no display.
int run_window(int argc, char** argv, const WindowOptions& options);

struct ShotOptions {
  std::string file;
  std::string view = "window";  ///< builder, training, tensor, autograd, memory, timeline, nan, project, window
  std::string run;              ///< name; empty: the last one
  std::string select;           ///< "op:12", "tensor:3", "module:features.3", "step:120"; empty: nothing
  std::string layout;           ///< of the whole window: build, train, profile, memory, debug
  int width = 1440, height = 900;
  std::string theme = "dark";
  std::string output;
  int64_t step = 0;             ///< step to replay for the views of a step; 0: the last one
};
/// Draws a view into a PNG file and returns the exit status. Throws Error for a name that is none, a project that cannot be read or no display.
int run_shot(int argc, char** argv, const ShotOptions& options);

}  // namespace tenon::app
