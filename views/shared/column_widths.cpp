#include "views/shared/column_widths.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace tenon::views {

std::vector<int> column_widths(const std::vector<ColumnNeed>& needs, int room) {
  if (needs.empty()) return {};
  std::vector<int> widths;
  for (const ColumnNeed& n : needs) widths.push_back(n.whole);
  int over = std::accumulate(widths.begin(), widths.end(), 0) - room;
  // Long words are cut to one width, the largest that there is room for.
  constexpr int kShort = 132;
  int most = *std::max_element(widths.begin(), widths.end());
  for (; over > 0 && most > kShort; --most)
    for (size_t i = needs.size(); i-- > 0 && over > 0;)
      if (!needs[i].uncut && widths[i] >= most && widths[i] > needs[i].least) --widths[i], --over;
  // Short ones after them, those of the last columns first.
  for (size_t i = needs.size(); i-- > 0 && over > 0;) {
    if (needs[i].uncut) continue;
    const int cut = std::clamp(widths[i] - needs[i].least, 0, over);
    widths[i] -= cut;
    over -= cut;
  }
  for (size_t i = 0; i < needs.size() && over < 0; ++i) {
    const int more = std::clamp(needs[i].longest - widths[i], 0, -over);
    widths[i] += more;
    over += more;
  }
  if (over < 0 && std::any_of(needs.begin(), needs.end(), [](const ColumnNeed& n) { return !n.uncut; })) {
    // To each its part of what is left and of the columns that are left, so that all of it is given.
    int left = -over, of = room - left;
    for (int& w : widths) {
      const auto more = of > 0 ? static_cast<int>(int64_t{left} * w / of) : 0;
      of -= w;
      w += more;
      left -= more;
    }
    widths.front() += left;
  }
  return widths;
}

}  // namespace tenon::views
