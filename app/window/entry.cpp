// The one thing that the program looks up in the window's module.
#include "app/window/jobs.h"
#include "core/version.h"

namespace tenon::app {
namespace {

class QtWindow : public Window {
 public:
  int open(int argc, char** argv, const WindowRequest& r) const override { return open_window(argc, argv, r); }
  int shot(const ShotRequest& r) const override { return take_shot(r); }
  std::vector<PicturedView> views() const override { return pictured_views(); }
  CurveTimes measure_curves(const std::string& file, int runs) const override {
    return app::measure_curves(file, runs);
  }
  BuilderTimes measure_builder(const std::string& file) const override { return app::measure_builder(file); }
  OpenTimes measure_open(const std::string& file) const override { return app::measure_open(file); }
};

const Window& the_window() {
  static const auto& one = *new QtWindow;
  return one;
}

}  // namespace
}  // namespace tenon::app

extern "C" [[gnu::used, gnu::visibility("default")]] const tenon::app::WindowEntry tenon_window_entry = {
    TENON_VERSION, tenon::app::the_window};
