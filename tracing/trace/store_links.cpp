#include <algorithm>
#include <tuple>

#include "core/parallel.h"
#include "tracing/trace/store_builder.h"

// What belongs together: calls and what they launched, forward and backward.
namespace tenon::traces {

// A kernel, copy or fill belongs to the call of the same correlation number; of several (ranks in one file), to the
// last one before it.
void StoreBuilder::link_launches() {
  std::vector<std::pair<int64_t, EventId>> calls, ran;
  for (const RowData& row : rows_)
    for (auto [index, correlation] : row.correlated) {
      EventId e = row.id[index];
      if (e == kNone) continue;
      EventKind k = out_->kind(e);
      if (k == EventKind::runtime)
        calls.emplace_back(correlation, e);
      else if (on_gpu(k))
        ran.emplace_back(correlation, e);
    }
  auto by_time = [&](const auto& a, const auto& b) {
    return std::tuple(a.first, out_->start(a.second), a.second) < std::tuple(b.first, out_->start(b.second), b.second);
  };
  std::sort(calls.begin(), calls.end(), by_time);
  for (auto [correlation, e] : ran) {
    const std::pair<int64_t, int64_t> wanted{correlation, out_->start(e)};
    auto after = std::upper_bound(calls.begin(), calls.end(), wanted,
                                  [this](const std::pair<int64_t, int64_t>& v, const std::pair<int64_t, EventId>& c) {
                                    return v < std::pair<int64_t, int64_t>(c.first, out_->start(c.second));
                                  });
    EventId call = kNone;
    if (after != calls.begin() && (after - 1)->first == wanted.first)
      call = (after - 1)->second;
    else if (after != calls.end() && after->first == wanted.first)
      call = after->second;
    if (call != kNone) out_->launch_list_.push_back({call, e});
  }
  std::sort(out_->launch_list_.begin(), out_->launch_list_.end(),
            [](const Link& a, const Link& b) { return a.to < b.to; });
  out_->launches_ = out_->launch_list_;
}

namespace {

constexpr std::string_view kExternalId = "\"External id\"";

struct NamedOp {
  int64_t id;
  EventId op;
};

/// That argument of each event, in the order given; -1 where it has none. The text is let go of as it is passed.
std::vector<int64_t> numbers_of(const SourceText& source, const Columns& columns, const std::vector<EventId>& events,
                                std::string_view quoted_key) {
  constexpr int64_t chunk = 1024;
  std::vector<int64_t> ids(events.size());
  parallel_for(static_cast<int64_t>(events.size()), chunk, [&](int64_t begin, int64_t end) {
    uint64_t from = UINT64_MAX, to = 0;
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t at = columns.source[events[static_cast<size_t>(i)]];
      ids[static_cast<size_t>(i)] = argument_number(source.bytes(), at, quoted_key);
      from = std::min(from, at);
      to = std::max(to, at);
    }
    source.forget(from, to);
  });
  return ids;
}

}  // namespace

// Note [Work without its call]
// A recording may lack the calls that launched its kernels, or some of them. Then "External id" may name the op that
// did, and takes the call's place in the link. It is an op's number only in traces of PyTorch 1.13 and later; before, a
// kernel's is its correlation number. So it is believed where, for kernels whose call is known, the op of that number
// is around the call; where no call is known, where it is another number than the correlation and names an op that
// began before the kernel. The numbers are read from the text for such files alone.
void StoreBuilder::link_by_external_id(const SourceText& source) {
  const OwnedTrace& t = *out_;
  std::vector<EventId> alone, ops;
  size_t next = 0;
  for (const Lane& lane : t.lanes_) {
    if (!t.rows_[lane.row].gpu) continue;
    for (EventId e = lane.begin; e < lane.end; ++e) {
      while (next < t.launch_list_.size() && t.launch_list_[next].to < e) ++next;
      if (on_gpu(t.kind(e)) && (next == t.launch_list_.size() || t.launch_list_[next].to != e)) alone.push_back(e);
    }
  }
  if (alone.empty()) return;
  const std::vector<int64_t> wanted = numbers_of(source, t.columns_, alone, kExternalId);
  if (std::none_of(wanted.begin(), wanted.end(), [](int64_t id) { return id > 0; })) return;
  for (EventId e = 0; e < t.size(); ++e)
    if (t.kind(e) == EventKind::cpu_op) ops.push_back(e);
  std::vector<NamedOp> named;
  const std::vector<int64_t> numbers = numbers_of(source, t.columns_, ops, kExternalId);
  for (size_t i = 0; i < ops.size(); ++i)
    if (numbers[i] > 0) named.push_back({numbers[i], ops[i]});
  std::sort(named.begin(), named.end(), [&](const NamedOp& a, const NamedOp& b) {
    return std::tuple(a.id, t.start(a.op), a.op) < std::tuple(b.id, t.start(b.op), b.op);
  });
  // Of several of one number (ranks in one file) the last that began before.
  auto find = [&](int64_t id, int64_t time) {
    auto after = std::upper_bound(named.begin(), named.end(), std::pair(id, time),
                                  [&](const auto& v, const NamedOp& n) { return v < std::pair(n.id, t.start(n.op)); });
    return after != named.begin() && (after - 1)->id == id ? (after - 1)->op : kNone;
  };

  constexpr size_t sample = 1000;
  std::vector<EventId> known;
  std::vector<Link> links;
  for (size_t i = 0; i < t.launch_list_.size(); i += std::max<size_t>(1, t.launch_list_.size() / sample))
    links.push_back(t.launch_list_[i]), known.push_back(links.back().to);
  const std::vector<int64_t> ids = numbers_of(source, t.columns_, known, kExternalId);
  size_t asked = 0, right = 0;
  for (size_t i = 0; i < known.size(); ++i) {
    if (ids[i] <= 0) continue;
    ++asked;
    EventId op = find(ids[i], t.start(links[i].from));
    right += op != kNone && t.row_of(op) == t.row_of(links[i].from) && t.end(op) + kRounding >= t.end(links[i].from);
  }
  if (asked == 0) {
    const std::vector<int64_t> correlations = numbers_of(source, t.columns_, alone, "\"correlation\"");
    for (size_t i = 0; i < alone.size(); ++i) {
      if (wanted[i] <= 0) continue;
      ++asked;
      right += find(wanted[i], t.start(alone[i])) != kNone && correlations[i] != wanted[i];
    }
  }
  if (right * 10 < asked * 9) return;
  for (size_t i = 0; i < alone.size(); ++i)
    if (EventId op = wanted[i] > 0 ? find(wanted[i], t.start(alone[i])) : kNone; op != kNone)
      out_->launch_list_.push_back({op, alone[i]});
  std::sort(out_->launch_list_.begin(), out_->launch_list_.end(),
            [](const Link& a, const Link& b) { return a.to < b.to; });
  out_->launches_ = out_->launch_list_;
}

EventId StoreBuilder::enclosing(uint32_t row, int64_t time) const {
  const Row& r = out_->rows_[row];
  for (uint32_t d = r.lanes; d-- > 0;) {
    EventId e = out_->at(r.first_lane + d, time);
    if (e != kNone) return e;
  }
  return kNone;
}

void StoreBuilder::link_flows() {
  struct End {
    std::string_view id;
    uint32_t row;
    int64_t time;
    bool begin;
  };
  std::vector<End> ends;
  size_t count = 0;
  for (const auto& part : parts_) count += part.flows.size();
  ends.reserve(count);  // growing would hold it twice
  for (size_t p = 0; p < parts_.size(); ++p)
    for (const FlowEnd& f : parts_[p].flows)
      ends.push_back({parts_[p].flow_ids[f.id], row_map_[p][f.row], f.time, f.begin});
  std::stable_sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.id < b.id; });
  for (size_t i = 0; i < ends.size();) {
    size_t j = i, begins = 0;
    while (j < ends.size() && ends[j].id == ends[i].id) begins += ends[j++].begin;
    // Kineto ends a flow at every call that could have launched something, whether it did or not.
    const bool launch = ends[i].id.starts_with("ac2g") || ends[i].id.starts_with("async_gpu") ||
                        ends[i].id.starts_with("async_cpu_to_gpu");
    if (begins == 0 && launch) {
      i = j;
      continue;
    }
    if (begins == 0 || begins == j - i) {
      for (size_t k = i; k < j; ++k) mended_.add(Mend::orphan_flow, 0);
    } else if (ends[i].id.starts_with("fwdbwd") || ends[i].id.starts_with("forward_backward")) {
      const End *from = nullptr, *to = nullptr;
      for (size_t k = i; k < j; ++k) (ends[k].begin ? from : to) = &ends[k];
      EventId a = enclosing(from->row, from->time), b = enclosing(to->row, to->time);
      if (a != kNone && b != kNone) out_->forward_backward_list_.push_back({a, b});
    }
    i = j;
  }
  std::sort(out_->forward_backward_list_.begin(), out_->forward_backward_list_.end(),
            [](const Link& a, const Link& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
  out_->forward_backward_ = out_->forward_backward_list_;
}

}  // namespace tenon::traces
