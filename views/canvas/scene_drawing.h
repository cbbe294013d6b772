#pragma once
#include <QPainter>

#include "views/shared/scene.h"

namespace tenon::views {

/// Draws a scene with Qt's painter, over the ground of a canvas: for pictures that stay sharp at any size.
void draw_scene(QPainter& painter, const Scene& scene, ThemeName theme);

}  // namespace tenon::views
