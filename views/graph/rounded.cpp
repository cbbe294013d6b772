#include "views/graph/rounded.h"

#include <algorithm>
#include <cmath>

namespace tenon::views {

std::vector<Point> rounded(const std::vector<Point>& way, float radius) {
  if (radius < 1.5f || way.size() < 3) return way;
  std::vector<Point> out = {way.front()};
  for (size_t i = 1; i + 1 < way.size(); ++i) {
    const Point a = way[i - 1], b = way[i], c = way[i + 1];
    const float in = std::hypot(b.x - a.x, b.y - a.y), on = std::hypot(c.x - b.x, c.y - b.y);
    const float r = std::min({radius, in / 2, on / 2});
    if (r < 0.5f) {
      out.push_back(b);
      continue;
    }
    const Point p{b.x - (b.x - a.x) / in * r, b.y - (b.y - a.y) / in * r},
        q{b.x + (c.x - b.x) / on * r, b.y + (c.y - b.y) / on * r};
    for (int k = 0; k <= 4; ++k) {
      const float t = static_cast<float>(k) / 4, u = 1 - t;
      out.push_back({u * u * p.x + 2 * u * t * b.x + t * t * q.x, u * u * p.y + 2 * u * t * b.y + t * t * q.y});
    }
  }
  out.push_back(way.back());
  return out;
}

}  // namespace tenon::views
