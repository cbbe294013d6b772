#include "tracing/trace/store_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "tracing/trace/column_file.h"

namespace tenon::traces {
using nlohmann::json;

class StoreFile {
 public:
  static ColumnWriter store_of(const Trace& t, std::string_view kept) {
    ColumnWriter store;
    store.head = small_parts(t);
    auto column = [&](const auto& values) { store.column(std::span(values)); };
    column(t.columns_.start);
    column(t.columns_.duration);
    column(t.columns_.name);
    column(t.columns_.source);
    column(t.columns_.category);
    column(t.columns_.flags);
    column(t.launches_);
    column(t.forward_backward_);
    column(t.memory_);
    column(t.name_ends_);
    column(t.name_bytes_);
    column(t.lanes_);
    for (const Counter& c : t.counters_) {
      column(c.time);
      column(c.value);
    }
    column(kept);
    return store;
  }

  /// `wanted`: null where it shall be of any file.
  static std::shared_ptr<const Trace> read(const std::string& store_path, const FileKey* wanted);

 private:
  static bool fits(const Trace& t);
  static json small_parts(const Trace& t) {
    json head;
    for (const Category& c : t.categories_) head["categories"].push_back({c.name, static_cast<int>(c.kind), c.events});
    for (const Row& r : t.rows_)
      head["rows"].push_back({r.pid, r.tid, r.process, r.thread, r.labels, r.pid_number, r.tid_number, r.process_order,
                              r.order, r.gpu, r.first_lane, r.lanes, r.events});
    for (const auto& [k, v] : t.metadata_) head["metadata"].push_back({k, v});
    for (const Repair& r : t.repairs_) head["repairs"].push_back({r.kind, r.count, r.first_byte});
    for (const Counter& c : t.counters_) head["counters"].push_back(c.name);
    head["numbers"] = {t.base_, t.begin_, t.finish_, t.rank_};
    head["source_bytes"] = t.source_bytes_;
    head["truncated"] = t.truncated_;
    return head;
  }
};

namespace {

class MappedTrace : public Trace {
 public:
  std::shared_ptr<const MappedFile> file;
};

}  // namespace

std::shared_ptr<const Trace> StoreFile::read(const std::string& store_path, const FileKey* wanted) {
  auto file = ColumnFile::open(kTraceStore, store_path, wanted);
  if (!file || !file->whole()) return nullptr;
  auto t = std::make_shared<MappedTrace>();
  t->file = file->file();
  const json& head = file->head();
  auto list = [&](const char* name) { return head.contains(name) ? head.at(name) : json::array(); };
  for (const json& c : list("categories"))
    t->categories_.push_back({c.at(0), static_cast<EventKind>(std::clamp(c.at(1).get<int>(), 0, kKinds - 1)), c.at(2)});
  for (const json& r : list("rows"))
    t->rows_.push_back({r.at(0), r.at(1), r.at(2), r.at(3), r.at(4), r.at(5), r.at(6), r.at(7), r.at(8), r.at(9),
                        r.at(10), r.at(11), r.at(12)});
  for (const json& m : list("metadata")) t->metadata_.emplace_back(m.at(0), m.at(1));
  for (const json& r : list("repairs")) t->repairs_.push_back({r.at(0), r.at(1), r.at(2)});
  const json& numbers = head.at("numbers");
  t->base_ = numbers.at(0);
  t->begin_ = numbers.at(1);
  t->finish_ = numbers.at(2);
  t->rank_ = numbers.at(3);
  t->source_bytes_ = head.at("source_bytes");
  t->truncated_ = head.at("truncated");
  t->path_ = file->key().path;
  t->key_ = std::make_shared<FileKey>(file->key());
  t->from_cache_ = true;

  t->columns_.start = file->column<int64_t>();
  t->columns_.duration = file->column<int64_t>();
  t->columns_.name = file->column<uint32_t>();
  t->columns_.source = file->column<uint64_t>();
  t->columns_.category = file->column<uint16_t>();
  t->columns_.flags = file->column<uint8_t>();
  t->launches_ = file->column<Link>();
  t->forward_backward_ = file->column<Link>();
  t->memory_ = file->column<MemoryEvent>();
  t->name_ends_ = file->column<uint64_t>();
  auto names = file->column<char>();
  t->name_bytes_ = {names.data(), names.size()};
  auto lanes = file->column<Lane>();
  t->lanes_.assign(lanes.begin(), lanes.end());
  for (const json& name : list("counters")) {
    Counter c;
    c.name = name;
    auto time = file->column<int64_t>();
    auto value = file->column<double>();
    if (time.size() != value.size()) return nullptr;
    c.time.assign(time.begin(), time.end());
    c.value.assign(value.begin(), value.end());
    t->counters_.push_back(std::move(c));
  }
  const auto kept = file->column<char>();
  t->kept_ = {kept.data(), kept.size()};

  if (!fits(*t)) return nullptr;
  t->finish_levels();
  return t;
}

/// Whether everything points to where something is, lanes are in order, and times can be added up: what the reader
/// promises of a store.
bool StoreFile::fits(const Trace& t) {
  const Columns& c = t.columns_;
  const size_t n = c.start.size();
  if (c.duration.size() != n || c.name.size() != n || c.source.size() != n || c.category.size() != n ||
      c.flags.size() != n)
    return false;
  for (size_t i = 0; i < t.name_ends_.size(); ++i)
    if (t.name_ends_[i] > t.name_bytes_.size() || (i && t.name_ends_[i] < t.name_ends_[i - 1])) return false;
  constexpr int64_t far = INT64_MAX / 4;
  EventId at = 0;
  uint32_t top_name = 0, top_category = 0;
  __int128 sum = 0;
  for (size_t k = 0; k < t.lanes_.size(); ++k) {
    const Lane& l = t.lanes_[k];
    if (l.begin != at || l.end < l.begin || l.end > n || l.row >= t.rows_.size()) return false;
    // Each lane below the first of a row follows the one above it.
    if (l.depth && (k == 0 || t.lanes_[k - 1].row != l.row || t.lanes_[k - 1].depth + 1 != l.depth)) return false;
    for (EventId e = l.begin; e < l.end; ++e) {
      if (c.start[e] < -far || c.start[e] > far || c.duration[e] < 0 || (e > l.begin && c.start[e] < c.start[e - 1]))
        return false;
      sum += c.duration[e];
      top_name = std::max(top_name, c.name[e]);
      top_category = std::max<uint32_t>(top_category, c.category[e]);
    }
    at = l.end;
  }
  if (at != n || sum > far || (n && (top_name >= t.name_ends_.size() || top_category >= t.categories_.size())))
    return false;
  for (const Row& r : t.rows_)
    if (r.first_lane > t.lanes_.size() || r.lanes > t.lanes_.size() - r.first_lane) return false;
  for (auto links : {t.launches_, t.forward_backward_})
    for (const Link& l : links)
      if (l.from >= n || l.to >= n) return false;
  __int128 bytes = 0;
  for (const MemoryEvent& m : t.memory_) {
    if (m.time < -far || m.time > far || m.allocated < -1 || m.allocated > far || m.reserved < -1 || m.reserved > far)
      return false;
    bytes += m.bytes < 0 ? -static_cast<__int128>(m.bytes) : m.bytes;
  }
  auto near = [](int64_t v) { return v >= -far && v <= far; };
  return bytes <= far && near(t.base_) && near(t.begin_) && near(t.finish_);
}

void write_store(const Trace& trace, const FileKey& key, const std::string& store_path, std::string_view kept) {
  StoreFile::store_of(trace, kept).write(kTraceStore, key, store_path);
}

std::shared_ptr<const Trace> open_store(const std::string& store_path, const FileKey& key) {
  try {
    return StoreFile::read(store_path, &key);
  } catch (const std::exception&) {  // damaged: the file itself is still there
    return nullptr;
  }
}

std::shared_ptr<const Trace> open_given_store(const std::string& store_path) {
  try {
    if (auto t = StoreFile::read(store_path, nullptr)) return t;
  } catch (const std::exception&) {
  }
  throw Error(fmt::format("{} is what was kept of a trace, and is damaged or of another version", store_path),
              "Open the trace itself; this file may be deleted.");
}

void save_store(const Trace& trace, const FileKey& key, std::string_view kept) {
  if (trace.source_bytes() < kWorthSaving) return;
  save_store(kTraceStore, trace.path(), key, StoreFile::store_of(trace, kept));
}

}  // namespace tenon::traces
