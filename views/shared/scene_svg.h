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

/// The same for a page of HTML, which says what the colours are: an ink is the variable of its token's name
/// (var(--series-0)), letters have the page's fonts (class "mono" for numbers), and what a target would tell on hover
/// is a title. `id` is the picture's own on the page.
std::string to_inline_svg(const Scene& scene, const std::string& title, const std::string& id);

/// Text for XML and HTML, between tags or within quotes.
std::string xml_escaped(const std::string& text);

}  // namespace tenon::views
