// The saved store of a snapshot: what comes back is what was saved, what is damaged or made to do harm is not taken.
#include "tracing/snapshot/snapshot_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "tests/sealed.h"
#include "tests/tracing/made_snapshot.h"
#include "tracing/analyses/finding_json.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/allocator_state.h"
#include "tracing/snapshot/regions.h"
#include "tracing/snapshot/stacked_usage.h"

namespace tenon::snapshot {
namespace {

namespace fs = std::filesystem;
using Shared = std::shared_ptr<const Snapshot>;

const traces::FileKey kSomeKey{"/a/snapshot.pickle", 4109, 7, "00ff"};

std::vector<std::string> fixtures() {
  std::vector<std::string> all;
  for (const char* folder : {"/tests/tracing/data/snapshots", "/tests/fuzz/seeds/snapshot"})
    for (const auto& entry : fs::directory_iterator(std::string(TENON_SOURCE_DIR) + folder))
      if (entry.path().string().find(".pickle") != std::string::npos) all.push_back(entry.path().string());
  std::sort(all.begin(), all.end());
  return all;
}

/// What every analysis says; but for whether it is a store that it is said of.
nlohmann::json answers(const Shared& s) {
  nlohmann::json all;
  for (const auto& a : tracing::snapshot_analyses()) {
    if (a.min_files != 1) continue;
    nlohmann::json& said = all[a.name] = tracing::finding_json(a.run({.snapshots = {s}}));
    said.erase("from_cache");
  }
  return all;
}

void expect_same_columns(const Snapshot& a, const Snapshot& b) {
  const Events &x = a.events, &y = b.events;
  ASSERT_EQ(x.size_(), y.size_());
  for (size_t i = 0; i < x.size_(); ++i) {
    EXPECT_EQ(x.action[i], y.action[i]);
    EXPECT_EQ(x.address[i], y.address[i]);
    EXPECT_EQ(x.size[i], y.size[i]);
    EXPECT_EQ(x.time_us[i], y.time_us[i]);
    EXPECT_EQ(a.streams.at(x.stream[i]), b.streams.at(y.stream[i]));
    EXPECT_EQ(a.stack_lines(x.stack[i]), b.stack_lines(y.stack[i]));
    EXPECT_EQ(a.text(x.extra_of(i)), b.text(y.extra_of(i)));
    EXPECT_EQ(a.text(x.category_of(i)), b.text(y.category_of(i)));
    EXPECT_EQ(x.pool_of(i), y.pool_of(i));
  }
  EXPECT_EQ(a.pools, b.pools);
  EXPECT_EQ(a.pools_told, b.pools_told);
  EXPECT_EQ(a.settings, b.settings);
  EXPECT_EQ(a.repairs, b.repairs);
  EXPECT_EQ(a.source_bytes, b.source_bytes);
  EXPECT_EQ(a.protocol, b.protocol);
  EXPECT_EQ(a.truncated, b.truncated);
  ASSERT_EQ(a.annotations.size(), b.annotations.size());
  for (size_t i = 0; i < a.annotations.size(); ++i) {
    EXPECT_EQ(a.annotations[i].name, b.annotations[i].name);
    EXPECT_EQ(a.annotations[i].start, b.annotations[i].start);
    EXPECT_EQ(a.annotations[i].device, b.annotations[i].device);
    EXPECT_EQ(a.annotations[i].time_us, b.annotations[i].time_us);
  }
}

template <class State>
void expect_same_segments(const State& a, const State& b) {
  ASSERT_EQ(a.segments.size(), b.segments.size());
  for (size_t i = 0; i < a.segments.size(); ++i) {
    const Segment &x = a.segments[i], &y = b.segments[i];
    EXPECT_EQ(std::tie(x.device, x.address, x.total, x.allocated, x.active, x.requested, x.stream, x.large,
                       x.expandable, x.pool, x.stack, x.first_block, x.blocks),
              std::tie(y.device, y.address, y.total, y.allocated, y.active, y.requested, y.stream, y.large,
                       y.expandable, y.pool, y.stack, y.first_block, y.blocks));
  }
  ASSERT_EQ(a.blocks.size(), b.blocks.size());
  for (size_t i = 0; i < a.blocks.size(); ++i) {
    const Block &x = a.blocks[i], &y = b.blocks[i];
    EXPECT_EQ(std::tie(x.address, x.size, x.requested, x.state, x.stack),
              std::tie(y.address, y.size, y.requested, y.state, y.stack));
  }
}

void expect_same_picture(const Snapshot& a, const Snapshot& b, size_t trace) {
  const Timeline x(a, trace), y(b, trace);
  ASSERT_EQ(x.elements(), y.elements());
  EXPECT_EQ(x.peak(), y.peak());
  EXPECT_EQ(x.peak_bytes(), y.peak_bytes());
  EXPECT_EQ(x.usage(0, x.events(), 100), y.usage(0, y.events(), 100));
  for (size_t at = 0; at < x.events(); at += 1 + x.events() / 50) {
    EXPECT_EQ(x.bytes(at), y.bytes(at));
    EXPECT_EQ(x.live(at), y.live(at));
  }
  // As it was kept, and as it is divided anew.
  ASSERT_LT(trace, b.divisions.size());
  const StackedUsage u(a, x, {}), v(b.divisions[trace], b, y);
  EXPECT_EQ(u.bands(), v.bands());
  for (uint32_t id = 0; id < x.elements(); ++id) EXPECT_EQ(u.band_of(id), v.band_of(id));
  for (size_t at = 0; at < x.events(); at += 1 + x.events() / 50) EXPECT_EQ(u.bytes(at), v.bytes(at));
  for (size_t from = 0; from < x.events(); from += 1 + x.events() / 20) {
    const StackedUsage::Column p = u.highest(from, x.events()), q = v.highest(from, x.events());
    EXPECT_EQ(p.event, q.event);
    EXPECT_EQ(p.bands, q.bands);
  }
  expect_same_segments(state_after(a, trace, x.peak()), state_after(b, trace, x.peak()));
  EXPECT_EQ(regions(a, trace).size(), regions(b, trace).size());
}

class SnapshotStores : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  /// What comes back of a snapshot.
  Shared stored(const Snapshot& s) {
    write_store(s, kSomeKey, path_);
    return open_store(path_, kSomeKey);
  }
  static Shared read(const std::string& file) {
    return read_snapshot(file, {.read_cache = false, .write_cache = false});
  }
  static Shared seed(const char* name) {
    return read(std::string(TENON_SOURCE_DIR) + "/tests/fuzz/seeds/snapshot/" + name);
  }
  std::string folder_ = (fs::temp_directory_path() / ("tenon-snapshots-" + std::to_string(getpid()))).string();
  std::string path_ = folder_ + "/store";
};

TEST_F(SnapshotStores, say_what_the_files_say) {
  size_t seen = 0;
  for (const std::string& file : fixtures()) {
    SCOPED_TRACE(file);
    Shared fresh;
    try {
      fresh = read(file);
    } catch (const Error&) {  // those of PyTorch's own figures are no snapshots, some seeds are broken
      continue;
    }
    ++seen;
    const Shared back = stored(*fresh);
    ASSERT_TRUE(back);
    EXPECT_TRUE(back->from_cache());
    EXPECT_FALSE(fresh->from_cache());
    expect_same_columns(*fresh, *back);
    expect_same_segments(*fresh, *back);
    EXPECT_EQ(answers(fresh), answers(back));
    ASSERT_EQ(fresh->traces.size(), back->traces.size());
    for (size_t i = 0; i < fresh->traces.size(); ++i) expect_same_picture(*fresh, *back, i);
  }
  EXPECT_GT(seen, 25u);
}

TEST_F(SnapshotStores, given_as_a_file_are_the_snapshot) {
  const Shared s = seed("pools-2.15.pickle");
  write_store(*s, kSomeKey, path_);
  const Shared given = read_snapshot(path_);
  EXPECT_TRUE(given->from_cache());
  EXPECT_EQ(answers(given), answers(s));
  EXPECT_FALSE(read_beginning(path_, 1 << 20)) << "it opens at once";
  write_file(path_, read_file(path_).substr(0, 300));
  EXPECT_THROW(read_snapshot(path_), Error);
}

TEST_F(SnapshotStores, of_other_bytes_are_not_taken) {
  write_store(*seed("json.json"), kSomeKey, path_);
  for (int field = 0; field < 4; ++field) {
    traces::FileKey other = kSomeKey;
    if (field == 0) other.path += "x";
    if (field == 1) ++other.bytes;
    if (field == 2) ++other.changed_ns;
    if (field == 3) other.hash[0] ^= 1;
    EXPECT_FALSE(open_store(path_, other)) << field;
  }
  EXPECT_TRUE(open_store(path_, kSomeKey));
}

TEST_F(SnapshotStores, that_are_cut_short_or_damaged_are_refused) {
  write_store(*seed("training-2.15.pickle"), kSomeKey, path_);
  const std::string whole = read_file(path_);
  for (size_t n = 0; n < whole.size(); n += 131) {
    write_file(path_, whole.substr(0, n));
    EXPECT_FALSE(open_store(path_, kSomeKey)) << n;
  }
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string broken = whole;
    const size_t at = random() % broken.size();
    broken[at] = static_cast<char>(broken[at] ^ (1 << random() % 8));
    write_file(path_, broken);
    EXPECT_FALSE(open_store(path_, kSomeKey)) << at;
  }
}

TEST_F(SnapshotStores, made_to_do_harm_are_refused_or_harmless) {
  int taken = 0, tried = 0;
  for (const char* name : {"streams-2.3.pickle", "pools-2.15.pickle", "out_of_memory_expandable-2.15.pickle"}) {
    write_store(*seed(name), kSomeKey, path_);
    const std::string whole = read_file(path_);
    std::mt19937 random(7);
    for (int i = 0; i < 1000; ++i, ++tried) {
      std::string broken = whole;
      for (int k = 0; k < 1 + i % 3; ++k) broken[random() % broken.size()] = static_cast<char>(random());
      write_file(path_, sealed(broken));
      const Shared s = open_store(path_, kSomeKey);
      if (!s) continue;
      ++taken;  // the bytes hit what no rule binds: a time, a text, padding
      answers(s);
    }
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, tried);
}

/// Where the columns of a store lie in its file: begin and length.
std::vector<std::pair<size_t, size_t>> columns_of(const std::string& store) {
  uint64_t length = 0;
  std::memcpy(&length, store.data() + 8, sizeof length);
  const auto head = nlohmann::json::parse(store.substr(16, length));
  std::vector<std::pair<size_t, size_t>> all;
  size_t at = 16 + length;
  for (const auto& size : head.at("sections")) {
    at = (at + 63) / 64 * 64;
    all.emplace_back(at, size.get<size_t>());
    at += all.back().second;
  }
  return all;
}

constexpr size_t kOfLives = 9, kOfDivision = 4;

/// Seven places take turns.
Shared seven_places() {
  MadeSnapshot m;
  std::vector<uint64_t> held;
  for (int i = 0; i < 6000; ++i) {
    held.push_back(m.alloc("place" + std::to_string(i % 7) + ".py", 1000 + i % 11));
    if (i >= 50) m.free(held[static_cast<size_t>(i - 50)]);
  }
  m.segment(uint64_t{1} << 30, 4096, {{4096, true, "older.py"}});
  return m.done();
}

// Who made and freed what, what is alive when, and its sums: none of it can be another than the events say.
TEST_F(SnapshotStores, whose_lives_are_not_those_of_the_events_are_refused) {
  write_store(*seven_places(), kSomeKey, path_);
  const std::string whole = read_file(path_);
  const auto columns = columns_of(whole);
  size_t tried = 0;
  for (size_t c = columns.size() - kOfLives - kOfDivision; c < columns.size() - kOfDivision; ++c) {
    const auto [begin, size] = columns[c];
    for (size_t at = 0; at < size; at += 1 + size / 300) {
      std::string broken = whole;
      broken[begin + at] = static_cast<char>(broken[begin + at] ^ 1);
      write_file(path_, sealed(broken));
      EXPECT_FALSE(open_store(path_, kSomeKey)) << "column " << c << ", byte " << at;
      ++tried;
    }
  }
  EXPECT_GT(tried, 1000u);
  write_file(path_, sealed(whole));
  EXPECT_TRUE(open_store(path_, kSomeKey));
}

// What is alive is divided so that it adds up, at moments of the events, among bands that are there.
TEST_F(SnapshotStores, whose_memory_is_divided_otherwise_than_it_adds_up_are_refused) {
  write_store(*seven_places(), kSomeKey, path_);
  const std::string whole = read_file(path_);
  const auto columns = columns_of(whole);
  size_t tried = 0;
  for (size_t c = columns.size() - kOfDivision; c < columns.size(); ++c) {
    const auto [begin, size] = columns[c];
    ASSERT_GT(size, 0u);
    for (size_t at = 0; at < size; at += 1 + size / 150) {
      std::string broken = whole;
      broken[begin + at] = static_cast<char>(broken[begin + at] ^ (at % 2 ? 64 : 1));
      write_file(path_, sealed(broken));
      const Shared s = open_store(path_, kSomeKey);
      ++tried;
      if (!s) continue;
      // A key that nothing has may lead to another band, and a block's highest moment be another one that is as high.
      EXPECT_TRUE(c == columns.size() - kOfDivision || c == columns.size() - 1) << "column " << c << ", byte " << at;
      const Timeline t(*s, 0);
      const StackedUsage usage(s->divisions[0], *s, t);
      for (size_t e = 0; e < t.events(); e += 397) {
        const std::vector<int64_t> bands = usage.bytes(e);
        EXPECT_EQ(std::accumulate(bands.begin(), bands.end(), int64_t{0}), t.bytes(e));
        EXPECT_EQ(t.bytes(usage.highest(e, t.events()).event), usage.highest(e, t.events()).total);
      }
    }
  }
  EXPECT_GT(tried, 300u);
}

/// Large enough to be worth a store.
std::string large_snapshot() {
  MadeSnapshot m;
  for (int i = 0; i < 14000; ++i) m.free(m.alloc("model.py", 100 + i));
  return m.text();
}

class KeptStores : public SnapshotStores {
 protected:
  void SetUp() override {
    SnapshotStores::SetUp();
    const char* before = std::getenv("XDG_CACHE_HOME");
    if (before) caches_ = before;
    setenv("XDG_CACHE_HOME", (folder_ + "/cache").c_str(), 1);
    write_file(file_, large_snapshot());
    ASSERT_GT(fs::file_size(file_), traces::kWorthSaving);
  }
  void TearDown() override {
    caches_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", caches_.c_str(), 1);
    SnapshotStores::TearDown();
  }
  /// The store that was kept; empty where there is none.
  std::string kept() const {
    const std::string stores = folder_ + "/cache/tenon/snapshots";
    if (!fs::exists(stores) || fs::is_empty(stores)) return {};
    return fs::directory_iterator(stores)->path().string();
  }
  std::string caches_, file_ = folder_ + "/large.json";
};

TEST_F(KeptStores, are_what_the_second_opening_reads) {
  const Shared first = read_snapshot(file_), second = read_snapshot(file_);
  EXPECT_FALSE(first->from_cache());
  EXPECT_TRUE(second->from_cache());
  EXPECT_FALSE(kept().empty());
  EXPECT_FALSE(fs::exists(file_ + ".tenon-memory")) << "nothing is written beside the user's data";
  EXPECT_EQ(answers(first), answers(second));
  EXPECT_FALSE(read_beginning(file_, 1 << 20)) << "the whole opens at once";
  EXPECT_FALSE(read(file_)->from_cache());
}

TEST_F(KeptStores, are_written_when_it_is_asked_for) {
  const Shared s = read_snapshot(file_, {.write_cache = false});
  EXPECT_EQ(kept(), "");
  keep_store(*s);
  EXPECT_TRUE(read_snapshot(file_)->from_cache());
  fs::rename(kept(), file_ + ".tenon-memory");
  EXPECT_TRUE(read_snapshot(file_)->from_cache()) << "one that was put beside the file";
}

TEST_F(KeptStores, of_a_file_that_changed_are_not_used) {
  const Shared before = read_snapshot(file_, {.write_cache = false});
  keep_store(*before);
  // As long as it was, and in the middle: only the time of the change tells.
  std::string text = read_file(file_);
  const size_t at = text.find("\"size\":", text.size() / 2) + 7;
  text[at] = text[at] == '9' ? '8' : '9';
  write_file(file_, text);
  fs::last_write_time(file_, fs::last_write_time(file_) + std::chrono::seconds(2));
  const Shared after = read_snapshot(file_, {.write_cache = false});
  EXPECT_FALSE(after->from_cache());
  const auto sum = [](const Snapshot& s) {
    int64_t all = 0;
    for (size_t i = 0; i < s.events.size_(); ++i) all += s.events.size[i];
    return all;
  };
  EXPECT_NE(sum(*before), sum(*after));
  fs::remove(kept());
  keep_store(*before);
  EXPECT_EQ(kept(), "") << "nothing is kept for a file that is another by now";
}

TEST_F(KeptStores, go_to_the_cache_folder_or_nowhere) {
  read_snapshot(file_);
  EXPECT_TRUE(read_snapshot(file_)->from_cache());
  EXPECT_TRUE(fs::exists(folder_ + "/cache/tenon/snapshots"));
  fs::remove_all(folder_ + "/cache");
  write_file(folder_ + "/cache", "no folder");
  EXPECT_FALSE(read_snapshot(file_)->from_cache());
  EXPECT_FALSE(read_snapshot(file_)->from_cache());
}

TEST_F(KeptStores, in_the_cache_folder_stay_within_its_limit) {
  const Shared first = read_snapshot(file_);
  const cache::Held one = cache::held_in_all();
  ASSERT_EQ(one.files, 1);
  cache::set_limit(one.bytes + one.bytes / 2);
  // The second takes the place of the first, while nobody has that open.
  const std::string other = folder_ + "/other.json";
  fs::copy_file(file_, other);
  read_snapshot(other);
  EXPECT_EQ(cache::held_in_all().files, 1);
  EXPECT_FALSE(read_snapshot(file_, {.write_cache = false})->from_cache());
  const Shared open = read_snapshot(other);
  EXPECT_TRUE(open->from_cache());
  read_snapshot(file_);
  EXPECT_TRUE(read_snapshot(other)->from_cache()) << "it is open";
  EXPECT_FALSE(read_snapshot(file_, {.write_cache = false})->from_cache()) << "there was no room";
  cache::set_limit(cache::kUsualLimit);
}

TEST_F(KeptStores, that_are_damaged_are_written_anew) {
  const Shared first = read_snapshot(file_);
  std::string bytes = read_file(kept());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(kept(), bytes);
  const Shared second = read_snapshot(file_);
  EXPECT_FALSE(second->from_cache());
  EXPECT_EQ(answers(first), answers(second));
  EXPECT_TRUE(read_snapshot(file_)->from_cache());
}

}  // namespace
}  // namespace tenon::snapshot
