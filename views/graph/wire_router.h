#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "views/shared/scene.h"

namespace tenon::views {

/// Leads wires round boxes that stand anywhere: upright and level lines with as few bends as it takes.
class WireRouter {
 public:
  explicit WireRouter(std::vector<Box> boxes);
  static constexpr float kNear = 320,
                         kFar = 1280;  ///< so far round the ports boxes are looked at, at first and at last
  /// How far from its ports a wire may be led aside: past the last box that is looked at.
  static constexpr float kFarthest = kFar + 400;
  /// From a port on the lower edge of a box to one on the upper edge of another; both lie on the edges of boxes.
  std::vector<Point> route(Point from, Point to) const;

 private:
  bool free(float x0, float y0, float x1, float y1) const;
  const std::vector<int>& near(float x0, float y0, float x1, float y1) const;
  std::vector<Point> search(Point from, Point to, float reach) const;
  static std::string form_of(Point from, Point by, float reach, const std::vector<Box>& around);
  static std::vector<Point> search(Point from, Point to, const std::vector<Box>& around);
  static std::vector<Point> search(Point from, Point to, const std::vector<Box>& around, const std::vector<float>& xs,
                                   const std::vector<float>& ys);

  std::vector<Box> boxes_;
  float cell_ = 400;
  float left_ = 0, top_ = 0;
  int columns_ = 0, rows_ = 0;
  std::vector<std::vector<int>> grid_;  ///< boxes by cell of a coarse grid
  // Of near(), which is asked thousands of times: its answer, and the turn in which a box was last put into one.
  mutable std::vector<int> near_;
  mutable std::vector<uint32_t> put_;
  mutable uint32_t turn_ = 0;
  mutable std::unordered_map<std::string, std::vector<Point>> ways_;  ///< by their form_of()
};

}  // namespace tenon::views
