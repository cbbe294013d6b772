#include "views/graph/wire_router.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

namespace tenon::views {

namespace {
constexpr float kLead = 12, kClear = 10;  // straight out of a port; from a box that is passed

/// Places of lines, sorted, each once.
struct Lines {
  size_t most;
  std::vector<float> all = {};
  /// False where they become too many: boxes that lie over each other have as many lines as there are boxes.
  bool add(float v) {
    const auto at = std::lower_bound(all.begin(), all.end(), v);
    if (at == all.end() || *at != v) all.insert(at, v);
    return all.size() <= most;
  }
};
}  // namespace

WireRouter::WireRouter(std::vector<Box> boxes) : boxes_(std::move(boxes)) {
  float right = -std::numeric_limits<float>::max(), bottom = right;
  left_ = top_ = std::numeric_limits<float>::max();
  for (const Box& b : boxes_) {
    left_ = std::min(left_, b.x), top_ = std::min(top_, b.y);
    right = std::max(right, b.right()), bottom = std::max(bottom, b.bottom());
  }
  if (boxes_.empty()) return;
  constexpr float kMostCells = 200;  // a side
  cell_ = std::max({cell_, (right - left_) / kMostCells, (bottom - top_) / kMostCells});
  columns_ = static_cast<int>((right - left_) / cell_) + 1;
  rows_ = static_cast<int>((bottom - top_) / cell_) + 1;
  grid_.resize(static_cast<size_t>(columns_) * static_cast<size_t>(rows_));
  put_.resize(boxes_.size());
  for (size_t i = 0; i < boxes_.size(); ++i) {
    const Box& b = boxes_[i];
    for (int r = static_cast<int>((b.y - top_) / cell_); r <= static_cast<int>((b.bottom() - top_) / cell_); ++r)
      for (int c = static_cast<int>((b.x - left_) / cell_); c <= static_cast<int>((b.right() - left_) / cell_); ++c)
        if (r >= 0 && r < rows_ && c >= 0 && c < columns_)
          grid_[static_cast<size_t>(r) * static_cast<size_t>(columns_) + static_cast<size_t>(c)].push_back(
              static_cast<int>(i));
  }
}

/// The boxes of all cells that a rectangle touches, each once; good until the next call.
const std::vector<int>& WireRouter::near(float x0, float y0, float x1, float y1) const {
  near_.clear();
  ++turn_;
  if (!columns_) return near_;
  const auto clamp = [](float v, int most) { return std::clamp(static_cast<int>(std::floor(v)), 0, most - 1); };
  for (int r = clamp((y0 - top_) / cell_, rows_); r <= clamp((y1 - top_) / cell_, rows_); ++r)
    for (int c = clamp((x0 - left_) / cell_, columns_); c <= clamp((x1 - left_) / cell_, columns_); ++c)
      for (int b : grid_[static_cast<size_t>(r) * static_cast<size_t>(columns_) + static_cast<size_t>(c)])
        if (std::exchange(put_[static_cast<size_t>(b)], turn_) != turn_) near_.push_back(b);
  return near_;
}

bool WireRouter::free(float x0, float y0, float x1, float y1) const {
  if (x0 > x1) std::swap(x0, x1);
  if (y0 > y1) std::swap(y0, y1);
  for (int i : near(x0, y0, x1, y1)) {
    const Box& b = boxes_[static_cast<size_t>(i)];
    if (x0 < b.right() - 0.5f && x1 > b.x + 0.5f && y0 < b.bottom() - 0.5f && y1 > b.y + 0.5f) return false;
  }
  return true;
}

std::vector<Point> WireRouter::route(Point from, Point to) const {
  if (to.y >= from.y + 2 * kLead || (std::fabs(from.x - to.x) < 0.5f && to.y > from.y)) {
    if (std::fabs(from.x - to.x) < 0.5f) {
      if (free(from.x, from.y, to.x, to.y)) return {from, to};
    } else {  // down, across, down: where the way across is free
      for (float y : {(from.y + to.y) / 2, to.y - kLead, from.y + kLead})
        if (free(from.x, from.y, from.x, y) && free(from.x, y, to.x, y) && free(to.x, y, to.x, to.y))
          return {from, {from.x, y}, {to.x, y}, to};
    }
  }
  for (float reach : {kNear, kFar})
    if (std::vector<Point> way = search(from, to, reach); !way.empty()) return way;
  // Boxes that lie over the ports: as straight as it goes.
  const float y = (from.y + to.y) / 2;
  return {from, {from.x, y}, {to.x, y}, to};
}

/// Where the same boxes stand around the same way to go, it is searched for once: blocks are built alike.
std::vector<Point> WireRouter::search(Point from, Point to, float reach) const {
  const Point a{from.x, from.y + kLead}, b{to.x, to.y - kLead};
  const float x0 = std::min(a.x, b.x) - reach, x1 = std::max(a.x, b.x) + reach, y0 = std::min(a.y, b.y) - reach,
              y1 = std::max(a.y, b.y) + reach;
  std::vector<Box> around;
  for (int i : near(x0, y0, x1, y1)) {
    const Box& box = boxes_[static_cast<size_t>(i)];
    if (!(box.right() < x0 || box.x > x1 || box.bottom() < y0 || box.y > y1)) around.push_back(box);
  }
  const Point by{to.x - from.x, to.y - from.y};
  const auto [known, fresh] = ways_.try_emplace(form_of(from, by, reach, around));
  std::vector<Point>& steps = known->second;  // from the port on
  if (fresh) {
    steps = search(from, to, around);
    for (Point& p : steps) p = {p.x == to.x ? by.x : p.x - from.x, p.y == to.y ? by.y : p.y - from.y};
  }
  std::vector<Point> way;
  for (const Point& s : steps)  // its last one is where it ends
    way.push_back({s.x == steps.back().x ? to.x : from.x + s.x, s.y == steps.back().y ? to.y : from.y + s.y});
  return way;
}

/// All that a way depends on, but for where it is; in parts of a pixel, for sums of coordinates are not exact.
std::string WireRouter::form_of(Point from, Point by, float reach, const std::vector<Box>& around) {
  constexpr float kParts = 64;
  const auto part = [](float v) { return static_cast<int32_t>(v * kParts + (v < 0 ? -0.5f : 0.5f)); };
  std::vector<std::array<int32_t, 4>> boxes;
  boxes.reserve(around.size() + 1);
  boxes.push_back({part(by.x), part(by.y), part(reach), 0});
  for (const Box& b : around) boxes.push_back({part(b.x - from.x), part(b.y - from.y), part(b.w), part(b.h)});
  std::sort(boxes.begin() + 1, boxes.end());
  return {reinterpret_cast<const char*>(boxes.data()), boxes.size() * sizeof boxes[0]};
}

/// Dijkstra's search on the lines that run clear of the boxes around: length, and so much for a bend.
std::vector<Point> WireRouter::search(Point from, Point to, const std::vector<Box>& around) {
  constexpr size_t kMostLines = 160;
  Lines xs{kMostLines}, ys{kMostLines};
  xs.add(from.x), xs.add(to.x), ys.add(from.y + kLead), ys.add(to.y - kLead);
  for (const Box& box : around)
    if (!(xs.add(box.x - kClear) && xs.add(box.right() + kClear) && ys.add(box.y - kLead) &&
          ys.add(box.bottom() + kLead)))
      return {};
  return search(from, to, around, xs.all, ys.all);
}

std::vector<Point> WireRouter::search(Point from, Point to, const std::vector<Box>& around,
                                      const std::vector<float>& xs, const std::vector<float>& ys) {
  constexpr float kBend = 60;
  const Point a{from.x, from.y + kLead}, b{to.x, to.y - kLead};
  const auto w = xs.size(), h = ys.size();
  // Which steps to the right and down are free.
  std::vector<char> right(w * h, 1), down(w * h, 1);
  for (const Box& box : around) {
    const auto c0 = static_cast<size_t>(std::upper_bound(xs.begin(), xs.end(), box.x + 0.5f) - xs.begin());
    const auto c1 = static_cast<size_t>(std::lower_bound(xs.begin(), xs.end(), box.right() - 0.5f) - xs.begin());
    const auto r0 = static_cast<size_t>(std::upper_bound(ys.begin(), ys.end(), box.y + 0.5f) - ys.begin());
    const auto r1 = static_cast<size_t>(std::lower_bound(ys.begin(), ys.end(), box.bottom() - 0.5f) - ys.begin());
    for (size_t r = r0; r < r1; ++r)
      for (size_t c = c0 ? c0 - 1 : 0; c < c1; ++c) right[r * w + c] = 0;
    for (size_t c = c0; c < c1; ++c)
      for (size_t r = r0 ? r0 - 1 : 0; r < r1; ++r) down[r * w + c] = 0;
  }
  const auto at = [&](Point p) {
    return static_cast<size_t>(std::lower_bound(ys.begin(), ys.end(), p.y) - ys.begin()) * w +
           static_cast<size_t>(std::lower_bound(xs.begin(), xs.end(), p.x) - xs.begin());
  };
  // A state is a crossing and whether it was come to level (1) or upright (0).
  const size_t start = at(a) * 2, goal = at(b) * 2;
  std::vector<float> cost(w * h * 2, std::numeric_limits<float>::max());
  std::vector<int> before(w * h * 2, -1);
  using Entry = std::pair<float, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> todo;
  cost[start] = 0;
  todo.push({0, start});
  while (!todo.empty()) {
    const auto [c, s] = todo.top();
    todo.pop();
    if (c > cost[s]) continue;
    if (s == goal) break;
    const size_t p = s / 2, x = p % w, y = p / w;
    const bool level = s % 2;
    const auto step = [&](size_t to, float length, bool now_level) {
      const size_t next = to * 2 + now_level;
      const float sum = c + length + (now_level != level ? kBend : 0);
      if (sum >= cost[next]) return;
      cost[next] = sum;
      before[next] = static_cast<int>(s);
      todo.push({sum, next});
    };
    if (x + 1 < w && right[p]) step(p + 1, xs[x + 1] - xs[x], true);
    if (x > 0 && right[p - 1]) step(p - 1, xs[x] - xs[x - 1], true);
    if (y + 1 < h && down[p]) step(p + w, ys[y + 1] - ys[y], false);
    if (y > 0 && down[p - w]) step(p - w, ys[y] - ys[y - 1], false);
    if (level) step(p, 0, false);  // it ends upright
  }
  if (before[goal] < 0 && start != goal) return {};
  std::vector<Point> way = {to};
  for (int s = static_cast<int>(goal); s >= 0; s = before[static_cast<size_t>(s)]) {
    const size_t p = static_cast<size_t>(s) / 2;
    const Point q{xs[p % w], ys[p / w]};
    while (way.size() >= 2 && ((way[way.size() - 2].x == way.back().x && way.back().x == q.x) ||
                               (way[way.size() - 2].y == way.back().y && way.back().y == q.y)))
      way.pop_back();
    if (way.back().x != q.x || way.back().y != q.y) way.push_back(q);
  }
  if (way.size() >= 2 && way[way.size() - 2].x == way.back().x && way.back().x == from.x) way.pop_back();
  way.push_back(from);
  std::reverse(way.begin(), way.end());
  return way;
}

}  // namespace tenon::views
