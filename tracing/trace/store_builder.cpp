#include "tracing/trace/store_builder.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/error.h"
#include "core/parallel.h"

namespace tenon::traces {
namespace {
constexpr size_t kDeepestLane = 4095;
}

uint32_t StoreBuilder::row_of(std::string_view pid, std::string_view tid) {
  uint64_t key = static_cast<uint64_t>(row_texts_.own(pid)) << 32 | row_texts_.own(tid);
  auto [it, fresh] = row_by_key_.emplace(key, static_cast<uint32_t>(rows_.size()));
  if (fresh) {
    rows_.emplace_back();
    Row row;
    row.pid = unescape(pid);
    row.tid = unescape(tid);
    row.pid_number = std::strtoll(row.pid.c_str(), nullptr, 10);
    row.tid_number = std::strtoll(row.tid.c_str(), nullptr, 10);
    out_->rows_.push_back(std::move(row));
  }
  return it->second;
}

void StoreBuilder::number_texts(const SourceText& source) {
  for (const Part& p : parts_) {
    mended_.add(p.mended);
    auto& names = name_map_.emplace_back();
    for (size_t i = 0; i < p.names.size(); ++i) {
      std::string_view raw = p.names[static_cast<uint32_t>(i)];
      bool plain = true;
      for (char c : raw) plain &= c != '\\' && static_cast<signed char>(c) >= 0;
      if (plain) {
        names.push_back(names_.own(raw));
        continue;
      }
      Mended once;
      names.push_back(names_.own(unescape(raw, &once, p.name_uses[i].first)));
      for (int m = 0; m < kMends; ++m)
        for (uint64_t k = 0; once.count[m] && k < p.name_uses[i].count; ++k)
          mended_.add(static_cast<Mend>(m), once.first[m]);
    }
    auto& categories = category_map_.emplace_back();
    for (std::string_view raw : p.categories.texts()) categories.push_back(categories_.own(unescape(raw)));
    auto& rows = row_map_.emplace_back();
    for (auto [pid, tid] : p.row_ids) rows.push_back(row_of(pid, tid));
    source.forget(p.begin, p.next);  // what it names was read where it stands
  }
  if (categories_.size() > 65535) throw Error("the trace has more than 65,535 categories");
  for (std::string_view c : categories_.texts()) out_->categories_.push_back({std::string(c), kind_of(c), 0});
}

void StoreBuilder::gather_rows() {
  std::vector<size_t> sizes(rows_.size());
  for (size_t p = 0; p < parts_.size(); ++p)
    for (size_t r = 0; r < parts_[p].rows.size(); ++r) sizes[row_map_[p][r]] += parts_[p].rows[r].size();
  for (size_t r = 0; r < rows_.size(); ++r) rows_[r].events.reserve(sizes[r]);
  for (size_t p = 0; p < parts_.size(); ++p) {
    Part& part = parts_[p];
    std::vector<size_t> before;
    for (size_t r = 0; r < part.rows.size(); ++r) {
      RowData& to = rows_[row_map_[p][r]];
      before.push_back(to.events.size());
      for (PartEvent e : part.rows[r]) {
        e.name = name_map_[p][e.name];
        e.category = static_cast<uint16_t>(category_map_[p][e.category]);
        to.events.push_back(e);
      }
      std::vector<PartEvent>().swap(part.rows[r]);
    }
    for (const Part::Correlated& c : part.correlated)
      rows_[row_map_[p][c.row]].correlated.emplace_back(static_cast<uint32_t>(before[c.row] + c.index), c.id);
    std::vector<Part::Correlated>().swap(part.correlated);
  }
}

// Asynchronous slices: a begin and the next end of its id. They overlap as they like; lanes keep them apart.
void StoreBuilder::gather_asyncs() {
  struct End {
    AsyncEnd e;
    uint32_t row, name;
    uint16_t category;
    std::string_view id;
  };
  std::vector<End> all;
  for (size_t p = 0; p < parts_.size(); ++p)
    for (const AsyncEnd& a : parts_[p].asyncs)
      all.push_back({a, row_map_[p][a.row], name_map_[p][a.name], static_cast<uint16_t>(category_map_[p][a.category]),
                     parts_[p].flow_ids[a.id]});
  std::stable_sort(all.begin(), all.end(), [](const End& a, const End& b) { return a.e.time < b.e.time; });
  std::map<std::pair<uint32_t, std::string_view>, std::vector<std::pair<uint32_t, size_t>>> open;  // places in rows
  for (const End& a : all) {
    auto& events = rows_[a.row].events;
    rows_[a.row].free_lanes = true;
    auto& stack = open[{a.e.everywhere ? kNone : a.row, a.id}];
    if (a.e.phase == 'e') {
      if (stack.empty()) {
        mended_.add(Mend::unmatched_end, a.e.source);
        continue;
      }
      PartEvent& begun = rows_[stack.back().first].events[stack.back().second];
      begun.duration = a.e.time - begun.start;
      begun.phase = 'X';
      stack.pop_back();
      continue;
    }
    if (a.e.phase == 'b') stack.emplace_back(a.row, events.size());
    events.push_back({a.e.time, 0, a.e.source, a.name, a.category,
                      static_cast<uint8_t>(a.e.phase == 'n' ? kInstant : 0), a.e.phase});
  }
}

void StoreBuilder::match_begins(RowData& row) {
  std::vector<uint32_t> ends;
  for (uint32_t i = 0; i < row.events.size(); ++i)
    if (row.events[i].phase == 'B' || row.events[i].phase == 'E') ends.push_back(i);
  if (ends.empty()) return;
  std::stable_sort(ends.begin(), ends.end(),
                   [&](uint32_t a, uint32_t b) { return row.events[a].start < row.events[b].start; });
  std::vector<uint32_t> open;
  for (uint32_t i : ends) {
    PartEvent& e = row.events[i];
    if (e.phase == 'B') {
      open.push_back(i);
    } else if (open.empty()) {
      mended_.add(Mend::unmatched_end, e.source);
    } else {
      PartEvent& begun = row.events[open.back()];
      begun.duration = e.start - begun.start;
      begun.phase = 'X';
      open.pop_back();
    }
  }
}

// Analyses add durations up in 64 bits: what all of them come to must be a number. No recording comes to 73 years;
// where a file says so, its longest ones are no durations.
void StoreBuilder::bound_durations() {
  constexpr int64_t most = INT64_MAX / 4;
  int64_t count = 0;
  auto sum_all = [&] {
    __int128 sum = 0;
    count = 0;
    last_end_ = INT64_MIN;
    for (const RowData& r : rows_)
      for (const PartEvent& e : r.events)
        sum += e.duration, last_end_ = std::max(last_end_, e.start + e.duration), ++count;
    for (const RowData& r : rows_)
      for (const PartEvent& e : r.events)
        if (e.phase == 'B' || e.phase == 'b') sum += last_end_ - e.start;
    return sum;
  };
  if (sum_all() <= most) return;
  longest_unfinished_ = most / count;
  for (RowData& r : rows_)
    for (PartEvent& e : r.events)
      if (e.duration > longest_unfinished_) {
        mended_.add(Mend::bad_number, e.source);
        e.duration = 0;
        e.flags |= kRepaired;
      }
  sum_all();
}

void StoreBuilder::sort_row(RowData& row) {
  struct Key {
    int64_t start, duration;
    uint32_t index;
  };
  std::vector<Key> keys;
  keys.reserve(row.events.size());
  for (uint32_t i = 0; i < row.events.size(); ++i) {
    PartEvent& e = row.events[i];
    if (e.phase == 'E') continue;
    if (e.phase == 'B' || e.phase == 'b') {
      e.duration = std::clamp<int64_t>(last_end_ - e.start, 0, longest_unfinished_);
      e.flags |= kUnfinished;
    }
    keys.push_back({e.start, e.duration, i});
  }
  auto before = [](const Key& a, const Key& b) {
    if (a.start != b.start) return a.start < b.start;
    if (a.duration != b.duration) return a.duration > b.duration;
    return a.index < b.index;
  };
  if (!std::is_sorted(keys.begin(), keys.end(), before)) std::sort(keys.begin(), keys.end(), before);
  // An event goes to the lane after the last one that still lasts: nested slices come to lie under each other, and what
  // overlaps without being nested gets a lane of its own.
  std::vector<int64_t> ends;
  row.order.reserve(keys.size());
  row.depth.reserve(keys.size());
  // Streams and asynchronous slices have no stack of calls: those that each reach into the next one take turns on two
  // lanes, and do not go down like stairs.
  auto lasts = [](int64_t end, const Key& k) {
    return end > k.start && !(end - k.start <= kRounding && end < k.start + k.duration);
  };
  for (const Key& k : keys) {
    if (row.free_lanes) {
      size_t lane = 0;
      while (lane < ends.size() && lane < kDeepestLane && lasts(ends[lane], k)) ++lane;
      row.order.push_back(k.index);
      row.depth.push_back(static_cast<uint16_t>(lane));
      if (lane == ends.size())
        ends.push_back(k.start + k.duration);
      else
        ends[lane] = std::max(ends[lane], k.start + k.duration);
      continue;
    }
    // Two that follow each other may overlap by a rounding error; the second is no part of the first for that.
    while (!ends.empty() && !lasts(ends.back(), k)) ends.pop_back();
    // One that reaches beyond what it began in (ProfilerStep#6 begins in profiler.step(), and outlasts it) is no part
    // of that: it takes the first free lane below what holds the whole of it, or every such step would lie deeper than
    // the one before.
    const int64_t end = k.start + k.duration;
    auto holds = [&](int64_t other) { return lasts(other, k) && end - other <= kRounding; };
    size_t lane = ends.size();
    while (lane > 0 && !holds(ends[lane - 1])) --lane;
    while (lane < ends.size() && lasts(ends[lane], k)) ++lane;
    row.order.push_back(k.index);
    row.depth.push_back(static_cast<uint16_t>(std::min(lane, kDeepestLane)));
    if (lane < ends.size()) {
      ends[lane] = std::max(ends[lane], end);
      continue;
    }
    // Deeper than that, slices share the last lane: no stack of calls is so deep, and what is must not cost a lane
    // each.
    if (ends.size() > kDeepestLane)
      ends.back() = std::max(ends.back(), k.start + k.duration);
    else
      ends.push_back(k.start + k.duration);
  }
}

void StoreBuilder::name_rows() {
  auto& rows = out_->rows_;
  // The last name given counts, for every row of the process.
  struct Names {
    const std::string *process = nullptr, *order = nullptr, *labels = nullptr;
  };
  std::unordered_map<std::string_view, Names> of_process;
  for (size_t p = 0; p < parts_.size(); ++p)
    for (const RowName& n : parts_[p].row_names) {
      uint32_t row = row_map_[p][n.row];
      switch (n.what) {
        case 'p':
          of_process[rows[row].pid].process = &n.text;
          break;
        case 'P':
          of_process[rows[row].pid].order = &n.text;
          break;
        case 'l':
          of_process[rows[row].pid].labels = &n.text;
          break;
        case 't':
          rows[row].thread = n.text;
          break;
        default:
          rows[row].order = std::strtoll(n.text.c_str(), nullptr, 10);
      }
    }
  for (Row& r : rows) {
    auto it = of_process.find(r.pid);
    if (it == of_process.end()) continue;
    if (it->second.process) r.process = *it->second.process;
    if (it->second.order) r.process_order = std::strtoll(it->second.order->c_str(), nullptr, 10);
    if (it->second.labels) r.labels = *it->second.labels;
  }
  for (size_t r = 0; r < rows.size(); ++r)
    for (const PartEvent& e : rows_[r].events) {
      EventKind k = out_->categories_[e.category].kind;
      if (on_gpu(k)) {
        rows[r].gpu = rows_[r].free_lanes = true;
        break;
      }
    }
}

void StoreBuilder::write_columns() {
  OwnedTrace& out = *out_;
  // Rows in the order in which people look at them.
  std::vector<uint32_t> row_order(rows_.size());
  for (uint32_t i = 0; i < rows_.size(); ++i) row_order[i] = i;
  std::stable_sort(row_order.begin(), row_order.end(), [&](uint32_t a, uint32_t b) {
    const Row &x = out.rows_[a], &y = out.rows_[b];
    return std::tie(x.process_order, x.gpu, x.pid_number, x.pid, x.order, x.tid_number, x.tid) <
           std::tie(y.process_order, y.gpu, y.pid_number, y.pid, y.order, y.tid_number, y.tid);
  });
  size_t total = 0;
  for (const RowData& r : rows_) total += r.order.size();
  if (total >= kNone) throw Error("the trace has more than 4,294,967,294 events");
  for (auto* column : {&out.start_, &out.duration_}) column->resize(total);
  out.name_.resize(total);
  out.source_at_.resize(total);
  out.category_.resize(total);
  out.flags_.resize(total);

  std::vector<Row> sorted_rows;
  std::vector<RowData> sorted_data;
  EventId at = 0;
  std::vector<EventId> row_begin;
  for (uint32_t r : row_order) {
    RowData& data = rows_[r];
    Row row = std::move(out.rows_[r]);
    row.first_lane = static_cast<uint32_t>(out.lanes_.size());
    row.events = data.order.size();
    uint32_t deepest = 0;
    for (uint16_t d : data.depth) deepest = std::max<uint32_t>(deepest, d + 1u);
    row.lanes = deepest;
    std::vector<EventId> counts(deepest);
    for (uint16_t d : data.depth) ++counts[d];
    for (uint32_t d = 0; d < deepest; ++d) {
      out.lanes_.push_back({static_cast<uint32_t>(sorted_rows.size()), d, at, at + counts[d]});
      at += counts[d];
    }
    sorted_rows.push_back(std::move(row));
    sorted_data.push_back(std::move(data));
  }
  out.rows_ = std::move(sorted_rows);
  std::vector<uint32_t> place(row_order.size());
  for (uint32_t i = 0; i < row_order.size(); ++i) place[row_order[i]] = i;
  for (auto& [key, row] : row_by_key_) row = place[row];
  for (auto& map : row_map_)
    for (uint32_t& row : map) row = place[row];
  rows_ = std::move(sorted_data);

  parallel_for(static_cast<int64_t>(rows_.size()), 1, [&](int64_t r, int64_t) {
    RowData& data = rows_[static_cast<size_t>(r)];
    const Row& row = out.rows_[static_cast<size_t>(r)];
    std::vector<EventId> next;
    for (uint32_t d = 0; d < row.lanes; ++d) next.push_back(out.lanes_[row.first_lane + d].begin);
    if (!data.correlated.empty()) data.id.assign(data.events.size(), kNone);
    for (size_t i = 0; i < data.order.size(); ++i) {
      const PartEvent& e = data.events[data.order[i]];
      EventId id = next[data.depth[i]]++;
      out.start_[id] = e.start;
      out.duration_[id] = e.duration;
      out.name_[id] = e.name;
      out.source_at_[id] = e.source;
      out.category_[id] = e.category;
      out.flags_[id] = e.flags;
      if (!data.id.empty()) data.id[data.order[i]] = id;
    }
    std::vector<PartEvent>().swap(data.events);
    std::vector<uint32_t>().swap(data.order);
    std::vector<uint16_t>().swap(data.depth);
  });
  for (uint16_t c : out.category_) ++out.categories_[c].events;

  out.name_text_.clear();
  for (std::string_view n : names_.texts()) {
    out.name_text_ += n;
    out.name_end_list_.push_back(out.name_text_.size());
  }
  out.columns_ = {out.start_, out.duration_, out.name_, out.source_at_, out.category_, out.flags_};
  out.name_ends_ = out.name_end_list_;
  out.name_bytes_ = out.name_text_;
}

void StoreBuilder::gather_counters() {
  std::map<std::string_view, std::vector<std::pair<int64_t, double>>> series;
  for (const Part& p : parts_) {
    for (const CounterPoint& c : p.counters) series[p.series[c.series]].emplace_back(c.time, c.value);
    out_->memory_list_.insert(out_->memory_list_.end(), p.memory.begin(), p.memory.end());
  }
  for (auto& [name, points] : series) {
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    Counter c;
    c.name = name;
    for (auto [t, v] : points) {
      c.time.push_back(t);
      c.value.push_back(v);
    }
    out_->counters_.push_back(std::move(c));
  }
  __int128 bytes = 0;
  for (const MemoryEvent& m : out_->memory_list_) bytes += m.bytes < 0 ? -static_cast<__int128>(m.bytes) : m.bytes;
  // As with durations: sums of them must be numbers.
  const int64_t largest =
      bytes > INT64_MAX / 4 ? INT64_MAX / 4 / static_cast<int64_t>(out_->memory_list_.size()) : INT64_MAX / 4;
  for (MemoryEvent& m : out_->memory_list_) {
    if (m.bytes > largest || m.bytes < -largest) mended_.add(Mend::bad_number, 0), m.bytes = 0;
    for (int64_t* total : {&m.allocated, &m.reserved})
      if (*total > INT64_MAX / 4 || *total < -1) mended_.add(Mend::bad_number, 0), *total = -1;
  }
  std::stable_sort(out_->memory_list_.begin(), out_->memory_list_.end(),
                   [](const MemoryEvent& a, const MemoryEvent& b) { return a.time < b.time; });
  out_->memory_ = out_->memory_list_;
}

std::shared_ptr<OwnedTrace> StoreBuilder::build(const Outline& outline, const SourceText& source) {
  out_ = std::make_shared<OwnedTrace>();
  number_texts(source);
  gather_rows();
  gather_asyncs();
  for (RowData& r : rows_) match_begins(r);
  bound_durations();
  name_rows();
  parallel_for(static_cast<int64_t>(rows_.size()), 1,
               [&](int64_t r, int64_t) { sort_row(rows_[static_cast<size_t>(r)]); });
  for (const RowData& r : rows_)
    for (uint32_t i : r.order)
      if (r.events[i].flags & kUnfinished) mended_.add(Mend::unmatched_begin, r.events[i].source);
  write_columns();
  link_launches();
  link_by_external_id(source);
  out_->finish_levels();
  link_flows();
  gather_counters();

  OwnedTrace& out = *out_;
  out.metadata_ = outline.metadata;
  out.source_bytes_ = source.bytes().size();
  if (out.size()) {
    out.begin_ = *std::min_element(out.start_.begin(), out.start_.end());
    for (size_t e = 0; e < out.size(); ++e)
      out.finish_ = std::max(out.finish_, e ? out.start_[e] + out.duration_[e] : out.start_[0] + out.duration_[0]);
    out.finish_ = std::max(out.finish_, out.begin_);
  }
  out.base_ = std::strtoll(out.metadata("baseTimeNanoseconds").c_str(), nullptr, 10);
  if (out.base_ > INT64_MAX / 4 || out.base_ < 0) out.base_ = 0;  // no time: it is added to others
  for (const auto& [key, value] : object_fields(out.metadata("distributedInfo"))) {
    if (key != "rank" || value.empty() || value.size() > 9 ||
        value.find_first_not_of("0123456789") != std::string::npos)
      continue;
    out.rank_ = std::strtoll(value.c_str(), nullptr, 10);
  }
  for (int m = 0; m < kMends; ++m)
    if (mended_.count[m]) out.repairs_.push_back({name(static_cast<Mend>(m)), mended_.count[m], mended_.first[m]});
  return out_;
}

}  // namespace tenon::traces
