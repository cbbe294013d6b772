#include "tracing/snapshot/snapshot_store.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/parallel.h"
#include "tracing/snapshot/usage_division.h"

// The saved store of a snapshot: its columns, the lives that were found in them, and how its memory is divided by
// place, which is the picture that it opens with. What makes one of them unsound is looked for before anything is
// looked up: see fits_itself(). Of a store in the cache folder that only this user's programs can have written the
// hash says enough: it has what was sound when it was kept.

namespace tenon::snapshot {
namespace {

using nlohmann::json;
using traces::ColumnFile;
using traces::ColumnWriter;
using traces::FileKey;

// Structs whose fields leave room between them are written word by word: what lies in that room is nobody's.
using BlockWords = std::array<uint64_t, 5>;
using SegmentWords = std::array<uint64_t, 13>;
using AnnotationWords = std::array<uint64_t, 3>;
static_assert(sizeof(Snapshot::Frame) == 16 && sizeof(Lives::Life) == 8 && sizeof(Usage) == 24 &&
              sizeof(UsageDivision::Top) == 16);

uint64_t as_word(int64_t v) { return static_cast<uint64_t>(v); }
int64_t as_number(uint64_t word) { return static_cast<int64_t>(word); }
uint32_t as_index(uint64_t word) { return static_cast<uint32_t>(word); }

BlockWords words_of(const Block& b) {
  return {b.address, as_word(b.size), as_word(b.requested), static_cast<uint64_t>(b.state), b.stack};
}
Block block_of(const BlockWords& w) {
  return {w[0], as_number(w[1]), as_number(w[2]), static_cast<State>(w[3]), as_index(w[4])};
}
SegmentWords words_of(const Segment& s) {
  return {as_word(s.device), s.address,
          as_word(s.total),  as_word(s.allocated),
          as_word(s.active), as_word(s.requested),
          s.stream,          uint64_t{s.large} | uint64_t{s.expandable} << 1,
          as_word(s.pool.a), as_word(s.pool.b),
          s.stack,           s.first_block,
          s.blocks};
}
Segment segment_of(const SegmentWords& w) {
  Segment s{as_number(w[0]), w[1], as_number(w[2]), as_number(w[3]), as_number(w[4]), as_number(w[5]), as_index(w[6])};
  s.large = w[7] & 1;
  s.expandable = w[7] & 2;
  s.pool = {as_number(w[8]), as_number(w[9])};
  s.stack = as_index(w[10]);
  s.first_block = w[11];
  s.blocks = w[12];
  return s;
}

/// A store being put together, with what is written of no column that the snapshot has.
class Packed {
 public:
  explicit Packed(const Snapshot& s) {
    for (const Block& b : s.blocks) blocks_.push_back(words_of(b));
    for (const Segment& g : s.segments) segments_.push_back(words_of(g));
    for (const Annotation& a : s.annotations) {
      annotations_.push_back({a.start, as_word(a.device), as_word(a.time_us)});
      labels_.push_back(a.name);
    }
    json& head = store_.head;
    for (const auto& [name, value] : s.settings) labels_.push_back(name), labels_.push_back(value);
    head["settings"] = s.settings.size();
    head["repairs"] = json::array();
    for (const auto& [what, count] : s.repairs) {
      labels_.push_back(what);
      head["repairs"].push_back(count);
    }
    head["streams"] = s.streams;
    head["pools"] = json::array();
    for (const PoolId& p : s.pools) head["pools"].push_back({p.a, p.b});
    head["pools_told"] = s.pools_told;
    head["source_bytes"] = s.source_bytes;
    head["protocol"] = s.protocol;
    head["truncated"] = s.truncated;
    head["traces"] = json::array();
    for (size_t i = 0; i < s.traces.size(); ++i) add_trace(s, i);
    // From here on nothing of what is written may grow.
    const auto column = [this](const auto& c) { store_.column(c.span()); };
    Events::each_part(s.events, column);
    column(s.frames);
    column(s.stack_frames);
    column(s.stack_ends);
    TextColumn::each_part(s.texts, column);
    TextColumn::each_part(labels_, column);
    store_.column(std::span<const BlockWords>(blocks_));
    store_.column(std::span<const SegmentWords>(segments_));
    store_.column(std::span<const AnnotationWords>(annotations_));
    for (size_t i = 0; i < s.traces.size(); ++i) {
      Lives::each_part(*lives_[i], column);
      UsageDivision::each_part(*divisions_[i], column);
    }
  }
  const ColumnWriter& store() const { return store_; }

 private:
  void add_trace(const Snapshot& s, size_t i) {
    lives_.push_back(i < s.lives.size() ? s.lives[i] : find_lives(s, i));
    divisions_.push_back(i < s.divisions.size() ? s.divisions[i] : divide_usage(s, Timeline(s, i, lives_.back()), {}));
    const Lives& l = *lives_.back();
    json bands = json::array();
    for (const UsageDivision::Band& b : divisions_.back()->bands) {
      labels_.push_back(b.name);
      bands.push_back({b.at_peak, b.rest});
    }
    store_.head["traces"].push_back({s.traces[i].device, s.traces[i].begin, s.traces[i].end, l.blocks_from, l.peak,
                                     l.peak_bytes, l.bytes_before, l.unknown_frees, std::move(bands)});
  }

  ColumnWriter store_;
  std::vector<BlockWords> blocks_;
  std::vector<SegmentWords> segments_;
  std::vector<AnnotationWords> annotations_;
  TextColumn labels_;
  std::vector<std::shared_ptr<const Lives>> lives_;
  std::vector<std::shared_ptr<const UsageDivision>> divisions_;
};

/// Whether stretches lie inside [0, all), and no two have anything in common: what goes through each of them goes
/// through everything once at most.
bool apart(std::vector<std::pair<uint64_t, uint64_t>> begin_and_length, uint64_t all) {
  std::sort(begin_and_length.begin(), begin_and_length.end());
  uint64_t at = 0;
  for (const auto& [begin, length] : begin_and_length) {
    if (length == 0 && begin <= all) continue;
    if (begin < at || begin > all || length > all - begin) return false;
    at = begin + length;
  }
  return true;
}

constexpr int64_t kMostBytes = int64_t{1} << 42, kMostWanted = int64_t{1} << 60;  // as the reader lets in
bool in_range(int64_t v, int64_t most) { return v >= 0 && v <= most; }

bool events_fit(const Snapshot& s) {
  const Events& e = s.events;
  const size_t n = e.size_();
  std::atomic<bool> all = e.extra.size() <= n && e.category.size() <= n && e.pool.size() <= n;
  constexpr int64_t kNarrow = 5;
  parallel_for(kNarrow, 1, [&](int64_t begin, int64_t end) {
    int64_t at = 0;
    Events::for_each_narrow(e, [&](const auto& c) {
      if (at >= begin && at < end && (c.size() != n || !c.sound())) all = false;
      ++at;
    });
  });
  if (!all) return false;
  constexpr int64_t kRows = 1 << 18;
  std::vector<int64_t> sums(n / kRows + 1);
  parallel_for(static_cast<int64_t>(n), kRows, [&](int64_t begin, int64_t end) {
    __int128 sum = 0;
    bool fit = true;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const bool failed = e.action[i] == Action::oom;
      const int64_t size = e.size[i];
      fit &= static_cast<int>(e.action[i]) < kActions && e.stream[i] < s.streams.size() &&
             in_range(size, failed ? kMostWanted : kMostBytes);
      sum += failed ? 0 : size;
    }
    if (!fit || sum > kMostWanted) all = false;
    sums[static_cast<size_t>(begin / kRows)] = static_cast<int64_t>(sum);
  });
  __int128 bytes = 0;
  for (const int64_t sum : sums) bytes += sum;
  return all && bytes <= kMostWanted;
}

bool segments_fit(const Snapshot& s) {
  std::vector<std::pair<uint64_t, uint64_t>> of_segments;
  __int128 bytes = 0;
  for (const Segment& g : s.segments) {
    of_segments.emplace_back(g.first_block, g.blocks);
    if (!in_range(g.total, kMostBytes) || !in_range(g.allocated, kMostBytes) || !in_range(g.active, kMostBytes) ||
        !in_range(g.requested, kMostWanted) || g.stream >= s.streams.size())
      return false;
    bytes += g.total + g.allocated + g.active + static_cast<__int128>(g.requested);
  }
  for (const Block& b : s.blocks) {
    if (b.state > State::pending_free || !in_range(b.size, kMostBytes) || !in_range(b.requested, kMostBytes))
      return false;
    bytes += b.size + b.requested;
  }
  return bytes <= kMostWanted && apart(std::move(of_segments), s.blocks.size());
}

/// Whether the columns of a mapped snapshot, but for its lives, hold what its reader promises of them.
bool fits_itself(const Snapshot& s) {
  std::vector<std::pair<uint64_t, uint64_t>> of_traces;
  for (const DeviceTrace& t : s.traces) {
    if (t.end < t.begin) return false;
    of_traces.emplace_back(t.begin, t.end - t.begin);
  }
  for (size_t i = 0; i < s.stacks(); ++i)
    if (s.stack_ends[i] > s.stack_frames.size() || (i && s.stack_ends[i] < s.stack_ends[i - 1])) return false;
  return s.texts.sound() && apart(std::move(of_traces), s.events.size_()) && events_fit(s) && segments_fit(s);
}

template <class Words, class Row>
void take_rows(ColumnFile& file, std::vector<Row>& rows, Row (*row_of)(const Words&)) {
  for (const Words& w : file.column<Words>()) rows.push_back(row_of(w));
}

/// False where there are fewer labels than what they are of. `bands`: those of every trace.
bool take_labels(const TextColumn& labels, std::span<const AnnotationWords> annotations, const json& head, Snapshot& s,
                 std::vector<std::vector<UsageDivision::Band>>& bands) {
  const auto settings = head.at("settings").get<uint64_t>();
  size_t of_bands = 0;
  for (const json& t : head.at("traces")) of_bands += t.at(8).size();
  if (!labels.sound() || settings > labels.size() ||
      labels.size() != annotations.size() + 2 * settings + head.at("repairs").size() + of_bands)
    return false;
  size_t at = 0;
  const auto next = [&] { return std::string(labels[at++]); };
  for (const AnnotationWords& w : annotations)
    s.annotations.push_back({w[0] != 0, next(), as_number(w[1]), as_number(w[2])});
  for (uint64_t i = 0; i < settings; ++i) {
    std::string name = next();
    s.settings.emplace_back(std::move(name), next());
  }
  for (const json& count : head.at("repairs")) s.repairs.emplace_back(next(), count.get<uint64_t>());
  for (const json& t : head.at("traces")) {
    bands.emplace_back();
    for (const json& b : t.at(8)) bands.back().push_back({next(), b.at(0).get<int64_t>(), b.at(1).get<bool>()});
  }
  return true;
}

/// `wanted`: null where it shall be of any file.
std::shared_ptr<const Snapshot> open_mapped(const std::string& store_path, const FileKey* wanted) {
  auto file = ColumnFile::open(kSnapshotStore, store_path, wanted);
  if (!file || !file->whole()) return nullptr;
  auto s = std::make_shared<Snapshot>();
  s->store = file->file();
  s->path = file->key().path;
  s->key = std::make_shared<FileKey>(file->key());
  const json& head = file->head();
  s->streams = head.at("streams").get<std::vector<int64_t>>();
  for (const json& p : head.at("pools")) s->pools.push_back({p.at(0), p.at(1)});
  s->pools_told = head.at("pools_told");
  s->source_bytes = head.at("source_bytes");
  s->protocol = head.at("protocol");
  s->truncated = head.at("truncated");
  const auto map = [&]<class T>(Column<T>& c) { c = Column<T>(file->column<T>()); };
  Events::each_part(s->events, map);
  map(s->frames);
  map(s->stack_frames);
  map(s->stack_ends);
  TextColumn labels;
  TextColumn::each_part(s->texts, map);
  TextColumn::each_part(labels, map);
  take_rows(*file, s->blocks, block_of);
  take_rows(*file, s->segments, segment_of);
  std::vector<std::vector<UsageDivision::Band>> bands;
  if (!take_labels(labels, file->column<AnnotationWords>(), head, *s, bands)) return nullptr;
  for (const json& t : head.at("traces")) {
    s->traces.push_back({t.at(0), t.at(1), t.at(2)});
    auto l = std::make_shared<Lives>();
    l->events = s->traces.back().end - s->traces.back().begin;
    l->blocks_from = t.at(3);
    l->peak = t.at(4);
    l->peak_bytes = t.at(5);
    l->bytes_before = t.at(6);
    l->unknown_frees = t.at(7);
    Lives::each_part(*l, map);
    s->lives.push_back(std::move(l));
    auto division = std::make_shared<UsageDivision>();
    division->bands = std::move(bands[s->divisions.size()]);
    UsageDivision::each_part(*division, map);
    s->divisions.push_back(std::move(division));
  }
  if (wanted && cache::is_own(store_path)) return s;
  if (!fits_itself(*s)) return nullptr;
  for (size_t i = 0; i < s->traces.size(); ++i)
    if (!fits(s->lives[i], *s, i) || !fits(*s->divisions[i], *s, i)) return nullptr;
  return s;
}

}  // namespace

void write_store(const Snapshot& snapshot, const FileKey& key, const std::string& store_path) {
  Packed(snapshot).store().write(kSnapshotStore, key, store_path);
}

std::shared_ptr<const Snapshot> open_store(const std::string& store_path, const FileKey& key) {
  try {
    return open_mapped(store_path, &key);
  } catch (const std::exception&) {  // damaged: the file itself is still there
    return nullptr;
  }
}

std::shared_ptr<const Snapshot> open_given_store(const std::string& store_path) {
  try {
    if (auto s = open_mapped(store_path, nullptr)) return s;
  } catch (const std::exception&) {
  }
  throw Error(fmt::format("{} is what was kept of a memory snapshot, and is damaged or of another version", store_path),
              "Open the snapshot itself; this file may be deleted.");
}

void keep_store(const Snapshot& s) {
  if (!s.key || s.from_cache() || s.source_bytes < traces::kWorthSaving) return;
  if (fits_itself(s))  // what would not be taken is not kept either
    traces::save_store(kSnapshotStore, s.path, *s.key, Packed(s).store());
}

}  // namespace tenon::snapshot
