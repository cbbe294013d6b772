#pragma once
#include <QFont>
#include <QImage>
#include <map>
#include <memory>
#include <string>

#include "views/shared/scene.h"

namespace tenon::views {

/// The font of a face: the desktop's own where there is one, else the best of what is installed.
QFont face_font(Face face);
/// How tall the letters of the body are, in logical pixels; the other faces follow. Fonts that were made keep theirs.
void set_text_size(int pixels);
int text_size();

/// The letters and signs that a canvas is sure to show; others are drawn when they are first seen.
const std::u32string& usual_letters();

/// Glyph pictures drawn by Qt, so that canvases show the same font, hinting and fallbacks as the widgets beside them.
/// One store a scale factor, shared by all canvases.
class Glyphs {
 public:
  struct Glyph {
    QImage alpha;        ///< 8 bit coverage; null for blanks
    float x = 0, y = 0;  ///< from the pen on the baseline to the top left, physical pixels
    float advance = 0;   ///< physical pixels, fractional
  };
  static std::shared_ptr<Glyphs> at_scale(double dpr);
  explicit Glyphs(double dpr);

  const Glyph& glyph(Face face, char32_t c);
  float ascent(Face face) const { return ascent_[static_cast<int>(face)]; }
  float descent(Face face) const { return descent_[static_cast<int>(face)]; }
  double dpr() const { return dpr_; }

 private:
  double dpr_;
  QFont fonts_[kFaces];
  float ascent_[kFaces], descent_[kFaces];
  std::map<std::pair<int, char32_t>, Glyph> glyphs_;
};

}  // namespace tenon::views
