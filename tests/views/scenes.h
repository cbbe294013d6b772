#pragma once
#include <algorithm>
#include <string>

#include "views/shared/scene.h"

// What tests of drawn models share.
namespace tenon::views {

/// Whether a text of the scene holds `part`.
inline bool shows(const Scene& scene, const std::string& part) {
  const auto texts = scene.texts();
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& t) { return t.find(part) != t.npos; });
}
/// The middle of what is hit so; outside of the scene where nothing is.
inline Point center_of(const Scene& scene, Hit hit) {
  for (const auto& t : scene.targets())
    if (t.hit == hit) return {t.box.x + t.box.w / 2, t.box.y + t.box.h / 2};
  return {-1, -1};
}

}  // namespace tenon::views
