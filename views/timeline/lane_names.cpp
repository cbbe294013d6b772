#include "views/timeline/lane_names.h"

#include <algorithm>

namespace tenon::views {

using traces::EventId;
using traces::kNone;

std::vector<NameSum> LaneNames::sums() const {
  if (!trace) return {};
  const traces::Columns& c = trace->columns();
  std::vector<NameSum> all(trace->names());
  for (uint32_t n = 0; n < all.size(); ++n) all[n].name = n;
  auto add = [&](EventId e) {
    if (marked && (static_cast<double>(c.start[e] + c.duration[e] - origin) <= from ||
                   static_cast<double>(c.start[e] - origin) >= to))
      return;
    NameSum& s = all[c.name[e]];
    ++s.calls;
    s.ns += static_cast<double>(c.duration[e]);
    if (s.longest == kNone || c.duration[e] > c.duration[s.longest]) s.longest = e;
  };
  for (const auto& [begin, end] : lanes) {
    if (by_match)
      for (auto at = std::lower_bound(matches.begin(), matches.end(), begin); at != matches.end() && *at < end; ++at)
        add(*at);
    else
      for (EventId e = begin; e < end; ++e) add(e);
  }
  std::erase_if(all, [](const NameSum& s) { return s.calls == 0; });
  std::stable_sort(all.begin(), all.end(), [](const NameSum& a, const NameSum& b) { return a.ns > b.ns; });
  if (all.size() > kMost) all.resize(kMost);
  return all;
}

}  // namespace tenon::views
