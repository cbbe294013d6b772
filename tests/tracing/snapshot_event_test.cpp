#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "tracing/snapshot/address_map.h"
#include "tracing/snapshot/narrow_column.h"
#include "tracing/snapshot/pickle_memo.h"
#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {
namespace {

using nlohmann::json;

/// Plain data as Python's pickler writes it: dictionaries and lists in batches of a thousand, equal texts and lists of
/// frames by the memo. "pool_id" is a tuple.
class Pickled {
 public:
  /// `numbered`: as protocol 2 does, which says the number of every entry of the memo.
  Pickled(const json& data, bool numbered) : numbered_(numbered) {
    out_ = numbered ? std::string("\x80\x02", 2) : std::string("\x80\x04", 2);
    value(data, "");
    out_ += '.';
  }
  const std::string& bytes() const { return out_; }

 private:
  void little(uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(v >> 8 * i);
  }
  void memoize(const std::string& as = {}) {
    if (!as.empty()) memo_[as] = count_;
    if (!numbered_)
      out_ += '\x94';
    else if (count_ < 256)
      out_ += 'q', little(count_, 1);
    else
      out_ += 'r', little(count_, 4);
    ++count_;
  }
  bool recall(const std::string& as) {
    const auto at = memo_.find(as);
    if (at == memo_.end()) return false;
    if (at->second < 256)
      out_ += 'h', little(at->second, 1);
    else
      out_ += 'j', little(at->second, 4);
    return true;
  }
  void text(const std::string& t) {
    if (recall("text " + t)) return;
    out_ += 'X', little(t.size(), 4), out_ += t;
    memoize("text " + t);
  }
  void integer(int64_t v) {
    if (v >= 0 && v < 256) return out_ += 'K', little(static_cast<uint64_t>(v), 1);
    if (v >= 0 && v < 65536) return out_ += 'M', little(static_cast<uint64_t>(v), 2);
    if (v >= INT32_MIN && v <= INT32_MAX) return out_ += 'J', little(static_cast<uint64_t>(v), 4);
    int n = 5;  // as few bytes as hold it
    while (n < 8 && (v >> (8 * n - 1)) != 0 && (v >> (8 * n - 1)) != -1) ++n;
    out_ += '\x8a', little(static_cast<uint64_t>(n), 1), little(static_cast<uint64_t>(v), n);
  }
  template <class Each>
  void batches(size_t n, char one, char many, const Each& each) {
    for (size_t begin = 0; begin < n; begin += 1000) {
      const size_t end = std::min(n, begin + 1000);
      if (end - begin > 1) out_ += '(';
      for (size_t i = begin; i < end; ++i) each(i);
      out_ += end - begin > 1 ? many : one;
    }
  }
  void value(const json& v, const std::string& key) {
    if (v.is_null()) return void(out_ += 'N');
    if (v.is_boolean()) return void(out_ += v.get<bool>() ? '\x88' : '\x89');
    if (v.is_number_integer()) return integer(v.get<int64_t>());
    if (v.is_string()) return text(v.get<std::string>());
    if (v.is_object()) {
      out_ += '}';
      memoize();
      std::vector<std::string> keys;
      for (const auto& [k, item] : v.items()) keys.push_back(k);
      return batches(keys.size(), 's', 'u', [&](size_t i) { text(keys[i]), value(v[keys[i]], keys[i]); });
    }
    const std::string shared = key == "frames" && !v.empty() ? "list " + v.dump() : "";
    if (!shared.empty() && recall(shared)) return;
    if (key == "pool_id") {
      for (const json& item : v) integer(item.get<int64_t>());
      out_ += '\x86';
      return memoize();
    }
    out_ += ']';
    memoize(shared);
    batches(v.size(), 'a', 'e', [&](size_t i) { value(v[i], ""); });
  }

  bool numbered_;
  std::string out_;
  std::map<std::string, uint64_t> memo_;
  uint64_t count_ = 0;
};

/// Events of every form: most as PyTorch writes them, some with what only few have.
json events(uint64_t seed, size_t count) {
  Philox random{seed, 5};
  uint64_t drawn = 0;
  auto draw = [&](uint64_t n) { return random.below(drawn++, n); };
  json list = json::array();
  int64_t time = 1700000000000000;
  for (size_t i = 0; i < count; ++i) {
    const char* const actions[] = {"alloc", "free_requested", "free_completed", "segment_alloc", "something new"};
    json e = {{"action", actions[draw(5)]},
              {"addr", int64_t{0x7f0000000000} + static_cast<int64_t>(draw(1 << 20)) * 512},
              {"size", static_cast<int64_t>(draw(2) ? draw(1000) : draw(uint64_t{1} << 40))},
              {"stream", static_cast<int64_t>(draw(3)) * 94000000000000},
              {"time_us", time += static_cast<int64_t>(draw(1 << 20))}};
    if (draw(10) == 0) time += int64_t{1} << 40;
    switch (draw(12)) {
      case 0:
        e["frames"] = json::array();
        break;
      case 1:
        break;
      case 2:
        e["frames"] = nullptr;
        break;
      default:
        e["frames"] = json::array();
        for (uint64_t f = 0, n = 1 + draw(3); f < n; ++f)
          e["frames"].push_back({{"filename", "model.py"}, {"line", draw(40)}, {"name", "f"}});
    }
    switch (draw(12)) {
      case 0:
        e["pool_id"] = {draw(2), draw(3)};
        break;
      case 1:
        e["category"] = draw(2) ? "gradient" : "parameter";
        break;
      case 2:
        e["compile_context"] = "context " + std::to_string(draw(500));
        break;
      case 3:
        e["whatever"] = {{"action", "inside"}, {"deep", {1, 2, {{"x", "y"}}}}};
        break;
      case 4:
        e = {{"action", "oom"}, {"device_free", 12345}, {"size", int64_t{1} << 45}, {"stream", 0}};
        break;
      case 5:
        e = {{"action", "snapshot"}};  // a single item
        break;
    }
    list.push_back(e);
  }
  return list;
}

json told(const Snapshot& s) {
  json out = json::array();
  const Events& e = s.events;
  auto pool = [&](size_t i) { return e.pool_of(i) == kNone ? PoolId{} : s.pools.at(e.pool_of(i)); };
  for (const DeviceTrace& t : s.traces)
    for (size_t i = t.begin; i < t.end; ++i) {
      std::string stack = e.stack[i] == kNone ? "none" : "";
      for (uint32_t f : s.stack(e.stack[i])) stack += s.frame_text(f) + ";";
      out.push_back({t.device, name(e.action[i]), e.address[i], e.size[i], e.time_us[i], s.streams.at(e.stream[i]),
                     stack, std::string(s.text(e.extra_of(i))), std::string(s.text(e.category_of(i))), pool(i).a,
                     pool(i).b});
    }
  return out;
}

TEST(SnapshotEvents, OfAPickleAreThoseOfTheSameJson) {
  for (uint64_t seed : {1, 2, 3}) {
    const json data = {{"segments", json::array()},
                       {"device_traces", {events(seed, 3500), json::array(), events(seed + 100, 2001), events(9, 1)}},
                       {"allocator_settings", {{"expandable_segments", false}}}};
    const json want = told(*parse_snapshot(data.dump()));
    ASSERT_EQ(want.size(), 5502u);
    for (bool numbered : {false, true}) {
      const auto got = parse_snapshot(Pickled(data, numbered).bytes());
      EXPECT_FALSE(got->truncated);
      EXPECT_EQ(got->settings.size(), 1u) << "what stands behind the events is read as well";
      const json is = told(*got);
      ASSERT_EQ(is.size(), want.size());
      for (size_t i = 0; i < is.size(); ++i) ASSERT_EQ(is[i], want[i]) << "row " << i << ", seed " << seed;
    }
  }
}

TEST(SnapshotEvents, OfAFileThatIsCutShortAreItsFirstOnes) {
  const json data = {{"segments", json::array()}, {"device_traces", {events(4, 2500)}}};
  const std::string whole = Pickled(data, false).bytes();
  const json all = told(*parse_snapshot(whole));
  size_t before = 0;
  for (size_t n = whole.size() / 2; n < whole.size(); n += 997) {
    const auto part = parse_snapshot(whole.substr(0, n));
    EXPECT_TRUE(part->truncated);
    const json is = told(*part);
    ASSERT_LE(is.size(), all.size());
    ASSERT_GE(is.size(), before);
    for (size_t i = before; i + 1 < is.size(); ++i) ASSERT_EQ(is[i], all[i]) << n;  // the last one may lack a field
    before = is.size();
  }
  EXPECT_GT(before, 2480u);
}

TEST(SnapshotEvents, WhatTheMemoNamesIsNeverAnEvent) {
  // A list of events whose memo entry is asked for again, as an item and as the frames of another.
  const json data = {{"segments", json::array()}, {"device_traces", {events(5, 1500)}}};
  std::string pickle = Pickled(data, false).bytes();
  const size_t rows = told(*parse_snapshot(pickle)).size();
  // Behind the last batch and its list: once more, with a number of the memo that names some event.
  const size_t end = pickle.size() - 2;
  for (int at : {40, 900, 5000, 9000}) {
    std::string again = std::string("j") + std::string(reinterpret_cast<const char*>(&at), 4);
    std::string text = pickle;
    text.insert(end, "h\x01" + again + "s");
    try {
      EXPECT_GE(told(*parse_snapshot(text)).size(), 0u);
    } catch (const Error&) {
    }
  }
  EXPECT_EQ(rows, 1500u);
}

TEST(NarrowColumn, GivesBackWhatItWasGiven) {
  Philox random{7, 1};
  std::vector<int64_t> values;
  for (uint64_t i = 0; i < 20000; ++i) {
    const int64_t base = i % 5000 < 40 ? static_cast<int64_t>(random.below(2 * i, ~uint64_t{0})) : 1 << 20;
    values.push_back(base + static_cast<int64_t>(random.below(2 * i + 1, 100000)) * (i % 7 ? 64 : 1));
  }
  for (int64_t extreme : {INT64_MIN, INT64_MAX, int64_t{0}, int64_t{-1}, int64_t{INT32_MIN}, int64_t{INT32_MAX}})
    values.push_back(extreme);
  NarrowColumn<int64_t> near;
  NarrowColumn<uint64_t, int32_t, 64> in_units;
  NarrowColumn<uint32_t, int16_t> small;
  for (int64_t v : values) {
    near.push_back(v);
    in_units.push_back(static_cast<uint64_t>(v));
    small.push_back(static_cast<uint32_t>(v));
  }
  ASSERT_EQ(near.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(near[i], values[i]) << i;
    ASSERT_EQ(in_units[i], static_cast<uint64_t>(values[i])) << i;
    ASSERT_EQ(small[i], static_cast<uint32_t>(values[i])) << i;
  }
}

TEST(NarrowColumn, says_where_values_ascend) {
  NarrowColumn<int64_t> times;
  for (int64_t i = 0; i < 20000; ++i)
    times.push_back(1'700'000'000'000'000 + i / 3 * 7 + (i > 9000 ? int64_t{1} << 40 : 0));
  EXPECT_TRUE(times.ascending(0, times.size())) << "also over what lies too far";
  for (const size_t at : {size_t{1}, size_t{4095}, size_t{4096}, size_t{9000}, size_t{9002}, size_t{19999}}) {
    NarrowColumn<int64_t> broken;
    for (size_t i = 0; i < times.size(); ++i) broken.push_back(times[i] - (i == at ? 100 : 0));
    EXPECT_FALSE(broken.ascending(0, broken.size())) << at;
    EXPECT_FALSE(broken.ascending(at - 1, at + 1)) << at;
    EXPECT_TRUE(broken.ascending(0, at)) << at;
    EXPECT_TRUE(broken.ascending(at, broken.size())) << at;
  }
  EXPECT_TRUE(times.ascending(5, 5));
}

TEST(PickleMemo, KeepsWhatIsThereAndForgetsFromTheEnd) {
  PickleMemo memo;
  for (uint64_t i = 0; i < 1000; ++i) memo.push_back(i % 100 == 3 ? i : PickleMemo::kGone);
  memo.put(1500, 7);
  ASSERT_EQ(memo.size(), 1501u);
  EXPECT_EQ(memo[1500], 7u);
  EXPECT_EQ(memo[1400], PickleMemo::kGone);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(memo[i], i % 100 == 3 ? i : PickleMemo::kGone);
  memo.shrink(104);
  ASSERT_EQ(memo.size(), 104u);
  EXPECT_EQ(memo[103], 103u);
  memo.shrink(103);
  memo.push_back(PickleMemo::kGone);
  EXPECT_EQ(memo[103], PickleMemo::kGone) << "what stood there before is forgotten";
}

TEST(AddressMap, IsAMap) {
  AddressMap map;
  std::map<uint64_t, uint32_t> want;
  Philox random{3, 1};
  for (uint64_t i = 0; i < 200000; ++i) {
    const uint64_t address = random.below(3 * i, 3000) * 512;
    const auto at = want.find(address);
    const uint32_t before = at == want.end() ? kNone : at->second;
    ASSERT_EQ(map.find(address), before);
    if (random.below(3 * i + 1, 2)) {
      ASSERT_EQ(map.take(address), before);
      want.erase(address);
    } else {
      ASSERT_EQ(map.put(address, static_cast<uint32_t>(i)), before);
      want[address] = static_cast<uint32_t>(i);
    }
  }
  for (const auto& [address, number] : want) ASSERT_EQ(map.find(address), number);
}

}  // namespace
}  // namespace tenon::snapshot
