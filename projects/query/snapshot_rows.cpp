#include "projects/query/snapshot_rows.h"

#include <fmt/format.h>

namespace tenon::projects {

SnapshotRows::SnapshotRows(std::shared_ptr<const snapshot::Snapshot> of) : s(std::move(of)), sites_(s->stacks()) {}

void SnapshotRows::put_time(QueryCell& out, int64_t event) const {
  if (const int64_t t = s->events.time_us[static_cast<size_t>(event)]; t >= 0) out.put(t);
}
void SnapshotRows::put_stream(QueryCell& out, uint32_t stream) const {
  if (stream < s->streams.size()) out.put(s->streams[stream]);
}
void SnapshotRows::put_pool(QueryCell& out, int64_t event) const {
  if (const uint32_t pool = s->events.pool_of(static_cast<size_t>(event)); pool < s->pools.size())
    put_pool(out, s->pools[pool]);
}
void SnapshotRows::put_pool(QueryCell& out, const snapshot::PoolId& pool) const {
  if (pool != snapshot::PoolId()) out.put(fmt::format("{}.{}", pool.a, pool.b));
}
void SnapshotRows::put_text(QueryCell& out, uint32_t text) const {
  if (text < s->texts.size()) out.put_standing(s->text(text));
}
void SnapshotRows::put_stack(QueryCell& out, uint32_t stack) const {
  if (stack < s->stacks()) out.put(int64_t{stack});
}
void SnapshotRows::put_site(QueryCell& out, uint32_t stack) const {
  if (stack >= sites_.size()) return;
  if (sites_[stack].empty()) sites_[stack] = s->site(stack);
  out.put_standing(sites_[stack]);
}
int64_t SnapshotRows::device_of(int64_t event) const {
  for (const snapshot::DeviceTrace& t : s->traces)
    if (static_cast<size_t>(event) >= t.begin && static_cast<size_t>(event) < t.end) return t.device;
  return 0;
}

}  // namespace tenon::projects
