#include <cstring>

#include "tracing/snapshot/snapshot_keys.h"
#include "tracing/snapshot/snapshot_reader.h"

// Note [Events at once]
// Of a large snapshot nearly every byte belongs to an event: a dictionary in a list of events, its keys and its stack
// named by the memo, its values numbers. Such a one is read here in one go and becomes a row, without a value on the
// stack. The dictionaries that lie above the mark have become rows before it, so that the order stays. Whatever looks
// otherwise is left to the machine, from the dictionary's first byte on: what is read here is never more than what the
// machine would have made of the same bytes. That the memo names the event is forgotten, as by the machine, for which
// it is gone once it is a row. Events have their keys in one order, so each is first looked for where the event before
// had it, by the bytes that name it; these are forgotten when an entry of the memo becomes another.

namespace tenon::snapshot {
namespace {

/// No pair that is read here is longer, so that nothing in it must look for the end of the file.
constexpr size_t kLongestPair = 40;

template <class T>
T taken(const char*& p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  p += sizeof v;
  return v;
}

/// An opcode of a whole number that 64 bits hold; false where it is none, and nothing was read.
bool integer(const char*& p, int64_t& v) {
  switch (static_cast<unsigned char>(*p)) {
    case 'K':
      v = taken<uint8_t>(++p);
      return true;
    case 'M':
      v = taken<uint16_t>(++p);
      return true;
    case 'J':
      v = taken<int32_t>(++p);
      return true;
    case 0x8a: {
      const auto n = static_cast<unsigned char>(p[1]);
      if (n > 8) return false;
      p += 2;
      uint64_t bits;  // little-endian, as this machine is
      std::memcpy(&bits, p, sizeof bits);
      const int behind = 64 - 8 * n;  // bits of what follows, which go where the sign fills up
      v = n ? static_cast<int64_t>(bits << behind) >> behind : 0;
      p += n;
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

/// The rows of the list of events to which the next value will belong; kNone where it belongs to something else.
uint32_t Machine::open_events() {
  if (!marks_) return kNone;
  size_t m = stack_.size() - 1;  // a dictionary may lie between: one that was not read here
  for (size_t i = 0; stack_[m].tag != Value::Tag::mark; --m)
    if (m == 0 || ++i > 2) return kNone;
  if (m == 0) return kNone;
  const Value of = stack_[m - 1];
  const Container* list = container(of);
  if (!list || list->tag != Value::Tag::list || list->rows == kNone) return kNone;
  const uint32_t rows = list->rows;
  auto last = [&] { return rows_[rows].of == Rows::Of::events && rows_[rows].end == out_.events.size_(); };
  if (!last()) return kNone;
  for (size_t i = m + 1; i < stack_.size(); ++i) add_to_list(of, stack_[i]);
  stack_.resize(m + 1);
  return last() ? rows : kNone;
}

/// Every event without frames has an empty list of its own in the file, and the same here.
Machine::Value Machine::empty_list() {
  if (empty_list_.tag == Value::Tag::none) {
    push_container(Value::Tag::list);
    empty_list_ = stack_.back();
    stack_.pop_back();
  }
  return empty_list_;
}

Machine::Value Machine::pool_tuple(PoolId id) {
  auto [at, fresh] = pool_tuples_.emplace(id, Value{});
  if (fresh) {
    push_integer(id.a);
    push_integer(id.b);
    tuple(2);
    at->second = stack_.back();
    stack_.pop_back();
  }
  return at->second;
}

size_t Machine::events_at(std::string_view bytes) {
  const uint32_t rows = open_events();
  if (rows == kNone) return 0;
  constexpr size_t kLongest = 8 + kMostPairs * kLongestPair;
  size_t at = 0;
  while (bytes.size() - at >= kLongest && bytes[at] == '}') {
    const size_t n = event_at(bytes.data() + at);
    if (n == 0) break;
    at += n;
  }
  rows_[rows].end = out_.events.size_();
  return at;
}

/// How long it is; 0: it is none.
size_t Machine::event_at(const char* const begin) {
  const size_t memo = memo_.size();
  const char* p = begin + 1;  // behind the opcode that makes a dictionary
  auto memoized = [&](uint64_t slot) {
    const char* const before = p;
    uint64_t at = memo_.size();
    switch (static_cast<unsigned char>(*p)) {
      case 0x94:
        ++p;
        break;
      case 'q':
        at = taken<uint8_t>(++p);
        break;
      case 'r':
        at = taken<uint32_t>(++p);
        break;
      default:
        return true;
    }
    if (at != memo_.size()) {  // the machine looks whether such numbers are sound
      p = before;
      return false;
    }
    memo_.push_back(slot), ++puts_;
    return true;
  };
  auto recalled = [&](Value& v) {
    uint64_t at;
    if (*p == 'h')
      at = taken<uint8_t>(++p);
    else if (*p == 'j')
      at = taken<uint32_t>(++p);
    else
      return false;
    if (at >= memo_.size()) return false;
    v = unpacked(memo_[at]);
    return true;
  };
  const Value* known[kKeys] = {};
  Value values[kMostPairs];
  auto read = [&] {
    if (!memoized(PickleMemo::kGone) || *p++ != '(') return false;
    for (size_t k = 0; k < kMostPairs; ++k) {
      Value& v = values[k];
      EventKey& usual = usual_keys_[k];
      uint64_t next;
      std::memcpy(&next, p, sizeof next);
      if ((next & usual.mask) == usual.bytes && usual.length > 0) {
        p += usual.length;
      } else {
        const char* const named = p;
        Value key;
        if (!recalled(key) || key.tag != Value::Tag::text) return false;
        const auto length = static_cast<uint8_t>(p - named);
        const uint64_t mask = (uint64_t{1} << 8 * length) - 1;
        usual = {next & mask, mask, key.index, length};
      }
      int64_t n = 0, second = 0;
      if (integer(p, n)) {
        v.tag = Value::Tag::integer;
        v.integer = n;
        if (integer(p, second)) {
          if (static_cast<unsigned char>(*p++) != 0x86) return false;
          v = pool_tuple({n, second});
          if (!memoized(packed(v))) return false;
        }
      } else if (*p == 'N') {
        ++p;
      } else if (*p == ']') {
        ++p;
        v = empty_list();
        if (!memoized(packed(v)) || (*p != 'h' && *p != 'j' && *p != 'u')) return false;
      } else if (!recalled(v)) {
        return false;
      }
      if (usual.text < kKeys) known[usual.text] = &v;
      if (*p != 'u') continue;
      ++p;
      return known[kAction] != nullptr;
    }
    return false;
  };
  if (!read()) {
    memo_.shrink(memo);
    return 0;
  }
  add_event(known);
  return static_cast<size_t>(p - begin);
}

}  // namespace tenon::snapshot
