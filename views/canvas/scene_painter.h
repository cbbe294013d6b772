#pragma once
#include <imgui.h>

#include <map>
#include <memory>
#include <string>

#include "views/canvas/glyphs.h"
#include "views/shared/scene.h"

namespace tenon::views {

/// Paints scenes with an ImDrawList. Glyphs are packed into the context's own atlas; one that is missing is drawn from
/// the next frame on.
class ScenePainter {
 public:
  /// Packs the glyphs into the atlas of the current ImGui context; call again when needs_atlas().
  void build_atlas(std::shared_ptr<Glyphs> glyphs);
  /// The atlas of before is gone.
  void forget_atlas() { missing_ = true; }
  /// A glyph is missing, or others are wanted now.
  bool needs_atlas(const std::shared_ptr<Glyphs>& glyphs) const { return missing_ || glyphs != glyphs_; }
  void paint(ImDrawList* list, const Scene& scene, ThemeName theme);
  float measure(const std::string& text, Face face);

 private:
  struct Packed {
    float u0 = 0, v0 = 0, u1 = 0, v1 = 0, w = 0, h = 0, x = 0, y = 0, advance = 0;
    bool drawn = false;
  };
  const Packed* packed(Face face, char32_t c);
  void text(ImDrawList* list, const Scene::Prim& prim, const std::string& text, ThemeName theme);
  void line(ImDrawList* list, const Scene& scene, const Scene::Prim& prim, ThemeName theme);
  std::u32string fit(const std::string& text, Face face, float width, float& used);

  std::shared_ptr<Glyphs> glyphs_;
  std::map<std::pair<int, char32_t>, Packed> packed_;
  bool missing_ = true;
};

/// The letters of UTF-8 text; a broken byte becomes U+FFFD.
std::u32string letters(const std::string& utf8);

}  // namespace tenon::views
