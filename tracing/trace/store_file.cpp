#include "tracing/trace/store_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "core/sha256.h"
#include "tracing/trace/source_text.h"
#include "tracing/trace/trace_reader.h"

// The saved store: 16 bytes ("TENONTR" and a version, the length of the JSON that follows), JSON with all that is small
// and the places of the columns, then the columns as they lie in memory, each at a multiple of 64. It is thrown away
// rather than repaired: the trace is still there.

namespace tenon::traces {
namespace {

using nlohmann::json;
constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'T', 'R', '4'};
constexpr uint64_t kEdge = 65536, kWorthSaving = 4 << 20;  // smaller ones are read again in an instant

std::string hex_of(std::string_view bytes) { return hex(sha256(bytes.data(), bytes.size())); }

std::string cache_folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (xdg && *xdg) return std::string(xdg) + "/tenon/traces";
  return std::string(home ? home : "/tmp") + "/.cache/tenon/traces";
}

std::string fallback_path(const std::string& path) {
  return cache_folder() + "/" + hex_of(std::filesystem::absolute(path).string()).substr(0, 32);
}

}  // namespace

std::string cache_path(const std::string& path) { return path + ".tenon-trace"; }

FileKey file_key(const std::string& whole) {
  auto [path, member] = split_member(whole);
  FileKey key;
  key.path = std::filesystem::absolute(path).string() + (member.empty() ? "" : "!" + member);
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(fmt::format("{} cannot be opened: {}", path, std::strerror(errno)));
  struct stat s {};
  fstat(fd, &s);
  key.bytes = static_cast<uint64_t>(s.st_size);
  key.changed_ns = s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
  std::string edges;
  for (uint64_t at : {uint64_t{0}, key.bytes > kEdge ? key.bytes - kEdge : 0}) {
    std::string edge(std::min(kEdge, key.bytes), '\0');
    ssize_t n = pread(fd, edge.data(), edge.size(), static_cast<off_t>(at));
    edges.append(edge, 0, n > 0 ? static_cast<size_t>(n) : 0);
  }
  close(fd);
  key.hash = hex_of(edges);
  return key;
}

bool unchanged(const FileKey& key) {
  struct stat s {};
  return stat(split_member(key.path).first.c_str(), &s) == 0 && static_cast<uint64_t>(s.st_size) == key.bytes &&
         s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec == key.changed_ns;
}

class StoreFile {
 public:
  static void write(const Trace& t, const FileKey& key, const std::string& path) {
    json head = small_parts(t);
    head["key"] = {{"path", key.path}, {"bytes", key.bytes}, {"changed_ns", key.changed_ns}, {"hash", key.hash}};
    std::vector<std::string_view> sections;
    auto section = [&](const auto& span) {
      sections.push_back({reinterpret_cast<const char*>(span.data()), span.size() * sizeof(span[0])});
    };
    section(t.columns_.start);
    section(t.columns_.duration);
    section(t.columns_.name);
    section(t.columns_.source);
    section(t.columns_.category);
    section(t.columns_.flags);
    section(t.launches_);
    section(t.forward_backward_);
    section(t.memory_);
    section(t.name_ends_);
    sections.push_back(t.name_bytes_);
    section(t.lanes_);
    for (const Counter& c : t.counters_) {
      section(c.time);
      section(c.value);
    }
    for (std::string_view s : sections) head["sections"].push_back(s.size());
    std::string text = head.dump(-1, ' ', false, json::error_handler_t::replace);
    FileWriter file(path);
    uint64_t length = text.size(), at = 16 + length;
    file.put({kMagic, 8});
    file.put({reinterpret_cast<const char*>(&length), 8});
    file.put(text);
    for (std::string_view s : sections) {
      static constexpr char zeros[64] = {};
      uint64_t pad = (64 - at % 64) % 64;
      file.put({zeros, pad});
      file.put(s);
      at += pad + s.size();
    }
    file.commit();
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

struct Cutter {
  std::string_view bytes;
  uint64_t at;
  template <class T>
  std::span<const T> take(uint64_t size) {
    at = (at + 63) / 64 * 64;
    if (size % sizeof(T) || at > bytes.size() || size > bytes.size() - at) throw Error("damaged");
    auto* p = reinterpret_cast<const T*>(bytes.data() + at);
    at += size;
    return {p, size / sizeof(T)};
  }
};

}  // namespace

std::shared_ptr<const Trace> StoreFile::read(const std::string& store_path, const FileKey* wanted) {
  auto t = std::make_shared<MappedTrace>();
  t->file = MappedFile::open(store_path);
  std::string_view bytes = t->file->bytes();
  uint64_t length = 0;
  if (bytes.size() < 16 || std::memcmp(bytes.data(), kMagic, 8) != 0) return nullptr;
  std::memcpy(&length, bytes.data() + 8, 8);
  if (length > bytes.size() - 16) return nullptr;
  // All its numbers are whole: one that is not would be no number in the types below.
  json head = json::parse(bytes.substr(16, length), [](int, json::parse_event_t event, json& v) {
    if (event == json::parse_event_t::value && v.is_number_float()) throw Error("damaged");
    return true;
  });
  const json& k = head.at("key");
  const FileKey key{k.at("path"), k.at("bytes"), k.at("changed_ns"), k.at("hash")};
  if (wanted && (key.path != wanted->path || key.bytes != wanted->bytes || key.changed_ns != wanted->changed_ns ||
                 key.hash != wanted->hash))
    return nullptr;
  auto list = [&](const char* name) { return head.contains(name) ? head[name] : json::array(); };
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
  t->path_ = key.path;
  t->key_ = std::make_shared<FileKey>(key);
  t->from_cache_ = true;

  Cutter cut{bytes, 16 + length};
  size_t s = 0;
  auto size = [&] { return head.at("sections").at(s++).get<uint64_t>(); };
  t->columns_.start = cut.take<int64_t>(size());
  t->columns_.duration = cut.take<int64_t>(size());
  t->columns_.name = cut.take<uint32_t>(size());
  t->columns_.source = cut.take<uint64_t>(size());
  t->columns_.category = cut.take<uint16_t>(size());
  t->columns_.flags = cut.take<uint8_t>(size());
  t->launches_ = cut.take<Link>(size());
  t->forward_backward_ = cut.take<Link>(size());
  t->memory_ = cut.take<MemoryEvent>(size());
  t->name_ends_ = cut.take<uint64_t>(size());
  auto names = cut.take<char>(size());
  t->name_bytes_ = {names.data(), names.size()};
  auto lanes = cut.take<Lane>(size());
  t->lanes_.assign(lanes.begin(), lanes.end());
  for (const json& name : list("counters")) {
    Counter c;
    c.name = name;
    auto time = cut.take<int64_t>(size());
    auto value = cut.take<double>(size());
    if (time.size() != value.size()) return nullptr;
    c.time.assign(time.begin(), time.end());
    c.value.assign(value.begin(), value.end());
    t->counters_.push_back(std::move(c));
  }

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

void write_store(const Trace& trace, const FileKey& key, const std::string& store_path) {
  StoreFile::write(trace, key, store_path);
}

std::shared_ptr<const Trace> open_store(const std::string& store_path, const FileKey& key) {
  try {
    return StoreFile::read(store_path, &key);
  } catch (const std::exception&) {  // damaged: the file itself is still there
    return nullptr;
  }
}

bool is_store(std::string_view bytes) { return bytes.size() >= 8 && std::memcmp(bytes.data(), kMagic, 8) == 0; }

std::shared_ptr<const Trace> open_given_store(const std::string& store_path) {
  try {
    if (auto t = StoreFile::read(store_path, nullptr)) return t;
  } catch (const std::exception&) {
  }
  throw Error(fmt::format("{} is what was kept of a trace, and is damaged", store_path),
              "Open the trace itself; this file may be deleted.");
}

void save_store(const Trace& trace, const FileKey& key) {
  if (trace.source_bytes() < kWorthSaving) return;
  try {
    if (file_key(trace.path()).hash != key.hash) return;  // changed while it was read
    write_store(trace, key, cache_path(trace.path()));
    return;
  } catch (const Error&) {
  }
  try {
    std::error_code ignored;
    std::filesystem::create_directories(cache_folder(), ignored);
    write_store(trace, key, fallback_path(trace.path()));
  } catch (const Error&) {  // a store is a convenience: without one the trace is read again next time
  }
}

std::shared_ptr<const Trace> load_store(const std::string& path) {
  FileKey key;
  try {
    key = file_key(path);
  } catch (const Error&) {
    return nullptr;
  }
  for (const std::string& stored : {cache_path(path), fallback_path(path)}) {
    if (access(stored.c_str(), R_OK) != 0) continue;
    if (auto t = open_store(stored, key)) return t;
  }
  return nullptr;
}

}  // namespace tenon::traces
