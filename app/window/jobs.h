#pragma once
#include "app/window/window.h"

namespace tenon::app {

// What the functions of Window do, one to one; see there.
int open_window(int argc, char** argv, const WindowRequest& request);
int take_shot(const ShotRequest& request);
std::vector<PicturedView> pictured_views();
CurveTimes measure_curves(const std::string& file, int runs);
BuilderTimes measure_builder(const std::string& file);
OpenTimes measure_open(const std::string& file);

}  // namespace tenon::app
