#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "views/shared/tokens.h"

namespace tenon::views {

struct Point {
  float x = 0, y = 0;
};
struct Size {
  float w = 0, h = 0;
};
struct Box {
  float x = 0, y = 0, w = 0, h = 0;
  float right() const { return x + w; }
  float bottom() const { return y + h; }
  bool contains(float px, float py) const { return px >= x && py >= y && px < x + w && py < y + h; }
  bool overlaps(const Box& o) const { return x < o.x + o.w && o.x < x + w && y < o.y + o.h && o.y < y + h; }
};

enum class Align : uint8_t { left, center, right };
enum class Face : uint8_t { body, small, title, mono, mono_small };
inline constexpr int kFaces = 5;
enum class Cursor : uint8_t { arrow, hand, cross, move, resize_h, grab };

/// What lies under a point: a meaning the model gave it and a number of its own.
struct Hit {
  int kind = 0;  ///< 0: nothing
  int64_t id = 0;
  explicit operator bool() const { return kind != 0; }
  bool operator==(const Hit&) const = default;
};

/// A picture as plain values: what a view-model draws and what a canvas paints or a test reads. Coordinates are logical
/// pixels from the top left of the canvas. Primitives are painted in the order they were added.
class Scene {
 public:
  enum class Kind : uint8_t { rect, line, text, clip, unclip };
  struct Prim {
    Kind kind;
    Align align = Align::left;
    Face face = Face::body;
    bool closed = false;
    Ink fill = Ink::none, stroke = Ink::none;
    uint8_t hatch = 0;  ///< 0 none, 1 diagonal: a second sign beside the colour
    float alpha = 1, width = 1, radius = 0;
    Box box;
    uint32_t first = 0, count = 0;  ///< points of a line, or index of the text
  };
  struct Target {
    Box box;
    Hit hit;
    Cursor cursor = Cursor::arrow;
    uint32_t tip = 0;  ///< index into strings, 0: none
  };

  explicit Scene(Size size = {}) : size_(size) { strings_.emplace_back(); }

  Size size() const { return size_; }
  void rect(Box b, Ink fill, float alpha = 1, float radius = 0);
  void outline(Box b, Ink stroke, float width = 1, float radius = 0, float alpha = 1);
  void hatch(Box b, Ink stroke, float alpha = 1);
  void line(Point a, Point b, Ink stroke, float width = 1, float alpha = 1);
  void polyline(const std::vector<Point>& points, Ink stroke, float width = 1, float alpha = 1);
  /// A filled convex shape.
  void polygon(const std::vector<Point>& points, Ink fill, float alpha = 1);
  /// A cubic curve from a to b that leaves and arrives along x (or y).
  void curve(Point a, Point b, Ink stroke, float width = 1, float alpha = 1, bool vertical = false);
  /// Text inside a box: centred in height, aligned in width, shortened in its middle where it does not fit.
  void text(Box b, std::string text, Ink ink = Ink::text, Face face = Face::body, Align align = Align::left);
  void clip(Box b);
  void unclip();
  /// What a click into the box means; later targets lie above earlier ones. `tip` is shown on hover.
  void target(Box b, Hit hit, Cursor cursor = Cursor::hand, std::string tip = {});

  const Target* target_at(float x, float y) const;
  Hit hit_at(float x, float y) const;
  const std::string& tip_at(float x, float y) const;

  const std::vector<Prim>& prims() const { return prims_; }
  const std::vector<Point>& points() const { return points_; }
  const std::vector<Target>& targets() const { return targets_; }
  const std::string& string(uint32_t i) const { return strings_[i]; }
  size_t count(Kind kind) const;

  /// One line a primitive, rounded to whole pixels: what tests compare and people read.
  std::string dump() const;
  /// Every text of the scene, in order.
  std::vector<std::string> texts() const;
  /// The texts that lie (partly) outside of the scene or over one another in the same face: a picture to be looked at
  /// again.
  std::vector<std::string> overlaps() const;

 private:
  Size size_;
  std::vector<Prim> prims_;
  std::vector<Point> points_;
  std::vector<Target> targets_;
  std::vector<std::string> strings_;
};

/// Width of a text in a face: exact where a canvas has told how to measure, from average advances without a window.
float text_width(const std::string& text, Face face = Face::body);
void measure_text_with(float (*measure)(const std::string& text, Face face));

}  // namespace tenon::views
