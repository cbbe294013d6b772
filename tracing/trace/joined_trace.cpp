#include "tracing/trace/joined_trace.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/error.h"

namespace tenon::traces {

namespace {

class JoinedStore : public Trace {
 public:
  std::vector<TracePart> join(const std::vector<std::shared_ptr<const Trace>>& traces,
                              const std::vector<int64_t>& shifts, const std::vector<std::string>& names,
                              const std::string& path);

 private:
  void add_columns(const TracePart& part);
  void add_rows(const TracePart& part, const std::string& name);
  void add_repairs(const Trace& t);
  void close();

  std::vector<int64_t> start_, duration_;
  std::vector<uint32_t> name_;
  std::vector<uint64_t> source_at_;
  std::vector<uint16_t> category_;
  std::vector<uint8_t> flags_;
  std::vector<Link> launch_list_, forward_backward_list_;
  std::vector<uint64_t> name_end_list_;
  std::string name_text_;
  std::unordered_map<std::string_view, uint32_t> name_numbers_;  // of texts of the parts
  std::map<std::string, uint16_t> category_numbers_;
};

void JoinedStore::add_columns(const TracePart& part) {
  const Trace& t = *part.trace;
  std::vector<uint32_t> names(t.names());
  for (uint32_t n = 0; n < names.size(); ++n) {
    const auto [at, fresh] = name_numbers_.emplace(t.text(n), static_cast<uint32_t>(name_end_list_.size()));
    names[n] = at->second;
    if (!fresh) continue;
    name_text_ += t.text(n);
    name_end_list_.push_back(name_text_.size());
  }
  std::vector<uint16_t> categories;
  for (const Category& c : t.categories()) {
    const auto [at, fresh] = category_numbers_.emplace(c.name, static_cast<uint16_t>(categories_.size()));
    if (fresh && categories_.size() >= 65535) throw Error("the traces have more than 65,535 categories");
    if (fresh) categories_.push_back({c.name, c.kind, 0});
    categories_[at->second].events += c.events;
    categories.push_back(at->second);
  }
  const Columns& c = t.columns();
  for (size_t e = 0; e < t.size(); ++e) {
    start_.push_back(c.start[e] + part.shift);
    name_.push_back(names[c.name[e]]);
    category_.push_back(categories[c.category[e]]);
  }
  duration_.insert(duration_.end(), c.duration.begin(), c.duration.end());
  source_at_.insert(source_at_.end(), c.source.begin(), c.source.end());
  flags_.insert(flags_.end(), c.flags.begin(), c.flags.end());
}

void JoinedStore::add_rows(const TracePart& part, const std::string& name) {
  const Trace& t = *part.trace;
  const auto first_lane = static_cast<uint32_t>(lanes_.size());
  for (Row r : t.rows()) {
    r.process = name + (r.process.empty() ? "" : " · " + r.process);
    r.first_lane += first_lane;
    rows_.push_back(std::move(r));
  }
  for (Lane l : t.lanes()) {
    l.row += part.first_row;
    l.begin += part.first_event;
    l.end += part.first_event;
    lanes_.push_back(l);
  }
  auto add = [&](std::vector<Link>& to, std::span<const Link> from) {
    for (const Link& l : from) to.push_back({l.from + part.first_event, l.to + part.first_event});
  };
  add(launch_list_, t.launches());  // both stay sorted: the events of a part lie behind those of the one before
  add(forward_backward_list_, t.forward_backward());
}

void JoinedStore::add_repairs(const Trace& t) {
  for (const Repair& r : t.repairs()) {
    const auto same = std::find_if(repairs_.begin(), repairs_.end(), [&](const Repair& o) { return o.kind == r.kind; });
    if (same == repairs_.end())
      repairs_.push_back(r);
    else
      same->count += r.count;
  }
  truncated_ |= t.truncated();
  source_bytes_ += t.source_bytes();
}

void JoinedStore::close() {
  columns_ = {start_, duration_, name_, source_at_, category_, flags_};
  launches_ = launch_list_;
  forward_backward_ = forward_backward_list_;
  name_ends_ = name_end_list_;
  name_bytes_ = name_text_;
  name_numbers_.clear();
  finish_levels();
}

std::vector<TracePart> JoinedStore::join(const std::vector<std::shared_ptr<const Trace>>& traces,
                                         const std::vector<int64_t>& shifts, const std::vector<std::string>& names,
                                         const std::string& path) {
  path_ = path;
  std::vector<TracePart> parts;
  size_t all = 0;
  for (const auto& t : traces) all += t->size();
  if (all >= kNone)
    throw Error("the traces of " + path + " hold more than 4,294,967,294 events", "Open some of its files one by one.");
  start_.reserve(all), duration_.reserve(all), name_.reserve(all);
  source_at_.reserve(all), category_.reserve(all), flags_.reserve(all);
  for (size_t i = 0; i < traces.size(); ++i) {
    const TracePart part{traces[i], static_cast<EventId>(start_.size()), static_cast<uint32_t>(rows_.size()),
                         shifts[i]};
    add_columns(part);
    add_rows(part, names[i]);
    add_repairs(*traces[i]);
    const bool first = parts.empty();
    begin_ = first ? traces[i]->begin() + shifts[i] : std::min(begin_, traces[i]->begin() + shifts[i]);
    finish_ = first ? traces[i]->finish() + shifts[i] : std::max(finish_, traces[i]->finish() + shifts[i]);
    parts.push_back(part);
  }
  if (!traces.empty()) base_ = traces[0]->base();
  close();
  text_of_ = [parts](EventId e) {
    const auto after = std::upper_bound(parts.begin(), parts.end(), e,
                                        [](EventId id, const TracePart& p) { return id < p.first_event; });
    // Of parts without an event the one behind them begins with the same.
    const TracePart& part = *(after - 1);
    return part.trace->event_text(e - part.first_event);
  };
  return parts;
}

}  // namespace

JoinedTraces join_traces(const std::vector<std::shared_ptr<const Trace>>& traces, const std::vector<int64_t>& shifts,
                         const std::vector<std::string>& names, const std::string& path) {
  auto whole = std::make_shared<JoinedStore>();
  JoinedTraces joined;
  joined.parts = whole->join(traces, shifts, names, path);
  joined.whole = std::move(whole);
  return joined;
}

}  // namespace tenon::traces
