#include "tracing/trace/parts.h"

#include <charconv>
#include <cstring>

namespace tenon::traces {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  auto p = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(p) ^ static_cast<uint64_t>(p >> 64);
}

/// Eight bytes at a time, each folded in by a 128-bit product.
uint64_t hash_of(std::string_view t) {
  uint64_t h = 0x9E3779B97F4A7C15ull ^ t.size();
  const char* p = t.data();
  size_t n = t.size();
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t v;
    std::memcpy(&v, p, 8);
    h = mix(h ^ v, 0xD6E8FEB86659FD93ull);
  }
  uint64_t v = 0;
  if (n) std::memcpy(&v, p, n);  // an empty text may have no address
  return mix(h ^ v, 0xA0761D6478BD642Full) | 1;
}

}  // namespace

Interner::Slot& Interner::slot_of(std::string_view text, uint64_t hash) {
  size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    Slot& s = slots_[i];
    if (s.index == 0 || (s.hash == hash && texts_[s.index - 1] == text)) return s;
  }
}

void Interner::grow() {
  std::vector<Slot> old = std::move(slots_);
  slots_.assign(old.empty() ? 64 : old.size() * 2, {});
  size_t mask = slots_.size() - 1;
  for (const Slot& s : old) {
    if (s.index == 0) continue;
    size_t i = s.hash & mask;
    while (slots_[i].index) i = (i + 1) & mask;
    slots_[i] = s;
  }
}

uint32_t Interner::of(std::string_view text) {
  if ((texts_.size() + 1) * 2 > slots_.size()) grow();
  uint64_t h = hash_of(text);
  Slot& s = slot_of(text, h);
  if (s.index == 0) {
    texts_.push_back(text);
    s = {h, static_cast<uint32_t>(texts_.size())};
  }
  return s.index - 1;
}

uint32_t Interner::own(std::string_view text) {
  size_t before = texts_.size();
  uint32_t i = of(text);
  if (texts_.size() != before) texts_.back() = owned_.emplace_back(text);
  return i;
}

namespace {

/// What stands behind `"key":` in arguments; empty where the key is missing. Strings lose their quotes.
std::string_view argument_text(std::string_view args, std::string_view quoted_key) {
  for (size_t at = args.find(quoted_key); at != std::string_view::npos; at = args.find(quoted_key, at + 1)) {
    size_t i = at + quoted_key.size();
    while (i < args.size() && args[i] == ' ') ++i;
    if (i >= args.size() || args[i] != ':') continue;
    ++i;
    while (i < args.size() && args[i] == ' ') ++i;
    size_t end = i;
    if (i < args.size() && args[i] == '"') {
      end = args.find('"', ++i);
      if (end == std::string_view::npos) return {};
    } else {
      while (end < args.size() && args[end] != ',' && args[end] != '}' && args[end] != '\n') ++end;
    }
    return args.substr(i, end - i);
  }
  return {};
}

int64_t integer(std::string_view t, int64_t fallback) {
  if (t.empty() || t.size() > 31) return fallback;
  char copy[32] = {};
  std::memcpy(copy, t.data(), t.size());  // not empty
  char* end;
  int64_t v = std::strtoll(copy, &end, 10);
  return end == copy ? fallback : v;
}

class Reader {
 public:
  Reader(std::string_view text, Part& part) : text_(text), part_(part) {}

  void read(uint64_t begin, uint64_t stop) {
    EventScanner scanner(text_, part_.mended);
    part_.begin = begin;
    scanner.seek(begin);
    RawEvent e;
    for (;;) {
      auto result = scanner.next(e, stop);
      if (result != EventScanner::Result::event) {
        part_.array_ended = result == EventScanner::Result::end_of_array;
        break;
      }
      if (scanner.reached_stop()) break;
      end_ = scanner.at();
      take(e);
    }
    part_.next = scanner.at();
  }

 private:
  uint32_t row_of(std::string_view pid, std::string_view tid) {
    // Neighbours mostly lie in one row.
    if (last_row_ != kNone && part_.row_ids[last_row_].first == pid && part_.row_ids[last_row_].second == tid)
      return last_row_;
    uint64_t key = static_cast<uint64_t>(part_.row_texts.of(pid)) << 32 | part_.row_texts.of(tid);
    auto [it, fresh] = part_.row_by_key.emplace(key, static_cast<uint32_t>(part_.rows.size()));
    if (fresh) {
      part_.rows.emplace_back();
      part_.row_ids.emplace_back(pid, tid);
    }
    return last_row_ = it->second;
  }

  uint32_t name_of(const RawEvent& e) {
    uint32_t n = part_.names.of(e.name.raw);
    if (n >= part_.name_uses.size()) {
      part_.name_uses.resize(n + 1);
      part_.name_uses[n].first = e.at;
    }
    ++part_.name_uses[n].count;
    return n;
  }

  uint16_t category_of(std::string_view text) {
    uint32_t c = part_.categories.of(text);
    // More categories than a number has room for is no trace of anything; the last one stands for the rest.
    return static_cast<uint16_t>(std::min<uint32_t>(c, 65535));
  }

  void put(const RawEvent& e, uint32_t row, char phase, int64_t duration, uint8_t flags) {
    auto& list = part_.rows[row];
    if (e.correlation >= 0) part_.correlated.push_back({row, static_cast<uint32_t>(list.size()), e.correlation});
    if (e.repaired) flags |= kRepaired;
    // The exporter of PyTorch before 1.8 wrote no categories.
    std::string_view category = !e.cat.raw.empty()              ? e.cat.raw
                                : e.pid.raw == "CPU functions"  ? std::string_view("Operator")
                                : e.pid.raw == "CUDA functions" ? std::string_view("Kernel")
                                                                : std::string_view();
    list.push_back({e.ts, duration, e.at, name_of(e), category_of(category), flags, phase});
    ++part_.events;
  }

  /// The event's own text: as far as it was read, however its quotes may lie.
  std::string_view whole(const RawEvent& e) const { return text_.substr(e.at, end_ - e.at); }
  std::string_view args(const RawEvent& e) const {
    return e.args ? text_.substr(e.args, e.args_end - e.args) : std::string_view();
  }

  /// What an asynchronous slice or a flow is told by, and whether other processes mean the same by it. An "id" of
  /// slices is taken as its process's own: Chrome's document says otherwise, but writers number theirs from 1.
  static std::pair<std::string, bool> identity(const RawEvent& e) {
    if (e.id2.empty()) return {std::string(e.id.raw), false};
    std::string_view global = argument_text(e.id2, "\"global\"");
    if (!global.empty()) return {"global " + std::string(global), true};
    return {std::string(argument_text(e.id2, "\"local\"")), false};
  }

  void take_instant(const RawEvent& e) {
    put(e, row_of(e.pid.raw, e.tid.raw), 'i', 0, kInstant);
    if (e.name.raw != "[memory]") return;
    std::string_view a = args(e);
    MemoryEvent m;
    m.time = e.ts;
    m.bytes = integer(argument_text(a, "\"Bytes\""), 0);
    m.allocated = integer(argument_text(a, "\"Total Allocated\""), -1);
    m.reserved = integer(argument_text(a, "\"Total Reserved\""), -1);
    m.address = static_cast<uint64_t>(integer(argument_text(a, "\"Addr\""), 0));
    m.device_type = static_cast<int32_t>(integer(argument_text(a, "\"Device Type\""), 0));
    m.device = static_cast<int32_t>(integer(argument_text(a, "\"Device Id\""), 0));
    part_.memory.push_back(m);
  }

  void take_counter(const RawEvent& e) {
    for (auto& [key, value] : decode_arguments(whole(e))) {
      double v = 0;
      if (std::from_chars(value.data(), value.data() + value.size(), v).ec != std::errc()) continue;
      std::string series = std::string(e.pid.raw) + ": " + unescape(e.name.raw) + (key.empty() ? "" : " " + key);
      part_.counters.push_back({part_.series.own(series), e.ts, v});
    }
  }

  void take_metadata(const RawEvent& e) {
    static constexpr std::pair<std::string_view, char> kinds[] = {{"process_name", 'p'},
                                                                  {"thread_name", 't'},
                                                                  {"process_sort_index", 'P'},
                                                                  {"thread_sort_index", 'T'},
                                                                  {"process_labels", 'l'}};
    for (auto [what, letter] : kinds) {
      if (e.name.raw != what) continue;
      for (auto& [key, value] : decode_arguments(whole(e)))
        if (key == "name" || key == "sort_index" || key == "labels")
          part_.row_names.push_back(
              {row_of(e.pid.raw, letter == 'p' || letter == 'P' || letter == 'l' ? std::string_view() : e.tid.raw),
               letter, std::move(value)});
    }
  }

  void take(RawEvent& e) {
    // Begins, ends, flows and counters are subtracted from each other too: no two times may be further apart than a
    // time can tell.
    if (e.ts > INT64_MAX / 4 || e.ts < INT64_MIN / 4)
      part_.mended.add(Mend::bad_number, e.at), e.ts = 0, e.repaired = true;
    switch (e.phase) {
      case 'X':
        if (!e.has_ts) part_.mended.add(Mend::missing_time, e.at);
        if (e.dur < 0) {
          part_.mended.add(Mend::negative_duration, e.at);
          e.dur = 0;
          e.repaired = true;
        }
        if (e.dur > INT64_MAX / 4) part_.mended.add(Mend::bad_number, e.at), e.dur = 0, e.repaired = true;
        return put(e, row_of(e.pid.raw, e.tid.raw), 'X', e.dur, 0);
      case 'B':
      case 'E':
        return put(e, row_of(e.pid.raw, e.tid.raw), e.phase, 0, 0);
      case 'i':
      case 'I':
      case 'R':
      case 'P':
        return take_instant(e);
      case 's':
      case 't':
      case 'f': {
        auto [own, everywhere] = identity(e);
        std::string id = std::string(e.cat.raw) + '\0' + std::string(e.name.raw) + '\0' + own;
        if (!e.id2.empty() && !everywhere) id += '\0' + std::string(e.pid.raw);
        part_.flows.push_back({e.ts, row_of(e.pid.raw, e.tid.raw), part_.flow_ids.own(id), e.phase == 's'});
        return;
      }
      case 'b':
      case 'e':
      case 'n':
      case 'S':
      case 'F':
      case 'T':
      case 'p': {
        char phase = e.phase == 'S' || e.phase == 'b' ? 'b' : e.phase == 'F' || e.phase == 'e' ? 'e' : 'n';
        auto [own, everywhere] = identity(e);
        std::string id = std::string(e.cat.raw) + '\0' + own +
                         (e.phase == 'b' || e.phase == 'e' ? '\0' + std::string(e.name.raw) : "");
        std::string tid = "async " + std::string(e.cat.raw);
        part_.asyncs.push_back({e.ts, e.at, row_of(e.pid.raw, part_.row_texts[part_.row_texts.own(tid)]), name_of(e),
                                part_.flow_ids.own(id), category_of(e.cat.raw), phase, everywhere});
        ++part_.events;
        return;
      }
      case 'M':
        return take_metadata(e);
      case 'C':
        return take_counter(e);
      case 'N':
      case 'O':
      case 'D':
      case 'V':
      case 'v':
        return part_.mended.add(Mend::object_event, e.at);
      default:
        part_.mended.add(e.phase ? Mend::unknown_phase : Mend::skipped_event, e.at);
    }
  }

  std::string_view text_;
  Part& part_;
  uint64_t end_ = 0;  ///< behind the event that is taken
  uint32_t last_row_ = kNone;
};

}  // namespace

int64_t argument_number(std::string_view text, uint64_t at, std::string_view quoted_key) {
  Mended ignored;
  EventScanner scanner(text, ignored);
  scanner.seek(at);
  RawEvent e;
  if (scanner.next(e, UINT64_MAX) != EventScanner::Result::event || e.at != at || !e.args) return -1;
  return integer(argument_text(text.substr(e.args, e.args_end - e.args), quoted_key), -1);
}

void read_part(std::string_view text, uint64_t begin, uint64_t stop, Part& part) {
  Reader(text, part).read(begin, stop);
}

EventKind kind_of(std::string_view c) {
  struct Named {
    std::string_view category;
    EventKind kind;
  };
  // Today's names, then those of PyTorch 1.8 to 1.10.
  static constexpr Named table[] = {
      {"cpu_op", EventKind::cpu_op},
      {"Operator", EventKind::cpu_op},
      {"hpu_op", EventKind::cpu_op},
      {"user_annotation", EventKind::annotation},
      {"Trace", EventKind::other},
      {"python_function", EventKind::python},
      {"cuda_runtime", EventKind::runtime},
      {"Runtime", EventKind::runtime},
      {"cuda_driver", EventKind::runtime},
      {"hip_runtime", EventKind::runtime},
      {"mtia_runtime", EventKind::runtime},
      {"glow_runtime", EventKind::runtime},
      {"xpu_runtime", EventKind::runtime},
      {"xpu_driver", EventKind::runtime},
      {"privateuse1_runtime", EventKind::runtime},
      {"privateuse1_driver", EventKind::runtime},
      {"kernel", EventKind::kernel},
      {"Kernel", EventKind::kernel},
      {"mtia_ccp_events", EventKind::kernel},
      {"gpu_memcpy", EventKind::memcpy},
      {"Memcpy", EventKind::memcpy},
      {"gpu_memset", EventKind::memset},
      {"Memset", EventKind::memset},
      {"gpu_user_annotation", EventKind::gpu_annotation},
      {"cuda_sync", EventKind::gpu_sync},
      {"cuda_event", EventKind::gpu_sync},
      {"xpu_sync", EventKind::gpu_sync},
      {"overhead", EventKind::overhead},
      {"cpu_instant_event", EventKind::instant},
      {"Memory", EventKind::instant},
  };
  for (const Named& n : table)
    if (n.category == c) return n.kind;
  return EventKind::other;
}

}  // namespace tenon::traces
