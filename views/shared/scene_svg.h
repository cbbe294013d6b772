#pragma once
#include <string>

#include "views/shared/scene.h"

namespace tenon::views {

/// The fonts that a scene was laid out with.
struct SvgFonts {
  std::string words = "DejaVu Sans", numbers = "DejaVu Sans Mono";
  float scale = 1;  ///< of the sizes of the faces
};

/// A scene as an SVG document, over the ground of a canvas: a primitive each, letters as text, clips as clips. (Qt's
/// generator of SVG leaves clips out, and what is scrolled away in a canvas would lie over its frame.)
std::string to_svg(const Scene& scene, ThemeName theme, const std::string& title, const SvgFonts& fonts = {});

}  // namespace tenon::views
