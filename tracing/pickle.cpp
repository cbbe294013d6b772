#include "tracing/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "core/error.h"

namespace tenon::tracing {
namespace {

enum Op : unsigned char {
  PROTO = 0x80, FRAME = 0x95, STOP = '.', MARK = '(', MEMOIZE = 0x94, BINPUT = 'q', LONG_BINPUT = 'r', BINGET = 'h', LONG_BINGET = 'j',
  EMPTY_DICT = '}', SETITEM = 's', SETITEMS = 'u', EMPTY_LIST = ']', APPEND = 'a', APPENDS = 'e', EMPTY_TUPLE = ')', TUPLE = 't', TUPLE1 = 0x85,
  TUPLE2 = 0x86, TUPLE3 = 0x87, BININT = 'J', BININT1 = 'K', BININT2 = 'M', LONG1 = 0x8a, LONG4 = 0x8b, BINFLOAT = 'G', SHORT_BINUNICODE = 0x8c,
  BINUNICODE = 'X', BINUNICODE8 = 0x8d, NONE = 'N', NEWTRUE = 0x88, NEWFALSE = 0x89,
};

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : in_(bytes), name_(name) {}

  std::unique_ptr<Pickle> read() {
    if (in_.size() < 2 || byte(in_[0]) != PROTO) fail("is no pickle");
    while (true) {
      const unsigned char op = byte(take(1)[0]);
      switch (op) {
        case PROTO: {
          const int version = byte(take(1)[0]);
          if (version < 2 || version > 5) fail(fmt::format("has pickle protocol {}; 2 to 5 are read", version));
          break;
        }
        case FRAME: take(8); break;
        case STOP: file_->root = pop(); return std::move(file_);
        case MARK: marks_.push_back(stack_.size()); break;
        case MEMOIZE: memo_[static_cast<uint32_t>(memo_.size())] = top(); break;
        case BINPUT: memo_[byte(take(1)[0])] = top(); break;
        case LONG_BINPUT: memo_[number<uint32_t>()] = top(); break;
        case BINGET: get(byte(take(1)[0])); break;
        case LONG_BINGET: get(number<uint32_t>()); break;
        case EMPTY_DICT: push({&file_->dicts.emplace_back()}); break;
        case EMPTY_LIST:
        case EMPTY_TUPLE: push({&file_->lists.emplace_back()}); break;
        case SETITEM: {
          PickleValue value = pop(), key = pop();
          dict().emplace_back(std::move(key), std::move(value));
          break;
        }
        case SETITEMS: {
          const std::vector<PickleValue> items = marked();
          if (items.size() % 2) fail("is damaged");
          auto& d = dict();
          for (size_t i = 0; i < items.size(); i += 2) d.emplace_back(items[i], items[i + 1]);
          break;
        }
        case APPEND: {
          PickleValue value = pop();
          list().push_back(std::move(value));
          break;
        }
        case APPENDS: {
          const std::vector<PickleValue> items = marked();
          auto& l = list();
          l.insert(l.end(), items.begin(), items.end());
          break;
        }
        case TUPLE: push({&file_->lists.emplace_back(marked())}); break;
        case TUPLE1: tuple(1); break;
        case TUPLE2: tuple(2); break;
        case TUPLE3: tuple(3); break;
        case BININT: push({static_cast<int64_t>(number<int32_t>())}); break;
        case BININT1: push({static_cast<int64_t>(byte(take(1)[0]))}); break;
        case BININT2: push({static_cast<int64_t>(number<uint16_t>())}); break;
        case LONG1: push({long_of(take(byte(take(1)[0])))}); break;
        case LONG4: push({long_of(take(number<uint32_t>()))}); break;
        case BINFLOAT: {
          uint64_t bits = 0;
          for (char c : take(8)) bits = bits << 8 | byte(c);
          push({std::bit_cast<double>(bits)});
          break;
        }
        case SHORT_BINUNICODE: text(byte(take(1)[0])); break;
        case BINUNICODE: text(number<uint32_t>()); break;
        case BINUNICODE8: text(number<uint64_t>()); break;
        case NONE: push({}); break;
        case NEWTRUE: push({true}); break;
        case NEWFALSE: push({false}); break;
        default: fail(fmt::format("is not a memory snapshot: it holds more than plain values (opcode 0x{:02x})", op));
      }
    }
  }

 private:
  static unsigned char byte(char c) { return static_cast<unsigned char>(c); }
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{} {}, at byte {}", name_, what, at_)); }
  std::string_view take(uint64_t n) {
    if (n > in_.size() - at_) fail("is cut short");
    at_ += n;
    return in_.substr(at_ - n, n);
  }
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  /// Little-endian two's complement of any length, into 64 bits with saturation: addresses of 2^63 and more do occur.
  int64_t long_of(std::string_view b) {
    if (b.empty()) return 0;
    const bool negative = byte(b.back()) & 0x80;
    uint64_t v = negative ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < b.size(); ++i) {
      const unsigned char c = byte(b[i]);
      if (i < 8)
        v = (v & ~(uint64_t{0xff} << (8 * i))) | uint64_t{c} << (8 * i);
      else if (c != (negative ? 0xff : 0))
        return negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    }
    const auto out = static_cast<int64_t>(v);
    if ((out < 0) != negative) return negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    return out;
  }
  void text(uint64_t n) { push({static_cast<const std::string*>(&file_->strings.emplace_back(take(n)))}); }
  void push(PickleValue v) { stack_.push_back(std::move(v)); }
  PickleValue& top() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("is damaged");
    return stack_.back();
  }
  PickleValue pop() {
    PickleValue v = top();
    stack_.pop_back();
    return v;
  }
  std::vector<PickleValue> marked() {
    if (marks_.empty()) fail("is damaged");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue> items(std::make_move_iterator(from), std::make_move_iterator(stack_.end()));
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }
  void tuple(size_t n) {
    PickleValue::List items(n);
    for (size_t i = n; i-- > 0;) items[i] = pop();
    push({&file_->lists.emplace_back(std::move(items))});
  }
  void get(uint32_t i) {
    const auto at = memo_.find(i);
    if (at == memo_.end()) fail("is damaged");
    push(at->second);
  }
  PickleValue::List& list() {
    auto* l = std::get_if<PickleValue::List*>(&top().v);
    if (!l) fail("is damaged");
    return **l;
  }
  PickleValue::Dict& dict() {
    auto* d = std::get_if<PickleValue::Dict*>(&top().v);
    if (!d) fail("is damaged");
    return **d;
  }

  std::string_view in_;
  const std::string& name_;
  size_t at_ = 0;
  std::unique_ptr<Pickle> file_ = std::make_unique<Pickle>();
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, PickleValue> memo_;
};

}  // namespace

const PickleValue::List* PickleValue::list() const {
  auto* p = std::get_if<List*>(&v);
  return p ? *p : nullptr;
}
const PickleValue::Dict* PickleValue::dict() const {
  auto* p = std::get_if<Dict*>(&v);
  return p ? *p : nullptr;
}
const PickleValue* PickleValue::find(std::string_view key) const {
  if (const Dict* d = dict())
    for (const auto& [k, value] : *d)
      if (auto* s = std::get_if<const std::string*>(&k.v); s && **s == key) return &value;
  return nullptr;
}
int64_t PickleValue::integer(std::string_view key, int64_t fallback) const {
  const PickleValue* p = find(key);
  if (!p) return fallback;
  if (auto* i = std::get_if<int64_t>(&p->v)) return *i;
  if (auto* d = std::get_if<double>(&p->v); d && std::abs(*d) < 9e18) return static_cast<int64_t>(*d);
  return fallback;
}
std::string PickleValue::text(std::string_view key, const std::string& fallback) const {
  const PickleValue* p = find(key);
  auto* s = p ? std::get_if<const std::string*>(&p->v) : nullptr;
  return s ? **s : fallback;
}

std::unique_ptr<Pickle> read_pickle(std::string_view bytes, const std::string& name) { return Reader(bytes, name).read(); }

PickleWriter::PickleWriter() { out_ = {static_cast<char>(PROTO), 4}; }
void PickleWriter::begin_dict() { out_ += {EMPTY_DICT, MARK}; }
void PickleWriter::begin_list() { out_ += {EMPTY_LIST, MARK}; }
void PickleWriter::end_dict() { out_ += SETITEMS; }
void PickleWriter::end_list() { out_ += APPENDS; }

void PickleWriter::text(const std::string& s) {
  const auto at = std::lower_bound(strings_.begin(), strings_.end(), s, [](const auto& a, const std::string& b) { return a.first < b; });
  if (at != strings_.end() && at->first == s) return again(at->second);
  if (s.size() < 256) {
    out_ += static_cast<char>(SHORT_BINUNICODE);
    out_ += static_cast<char>(s.size());
  } else {
    const auto n = static_cast<uint32_t>(s.size());
    out_ += BINUNICODE;
    out_.append(reinterpret_cast<const char*>(&n), 4);
  }
  out_ += s;
  strings_.insert(at, {s, remember()});
}

void PickleWriter::integer(int64_t n) {
  if (n >= std::numeric_limits<int32_t>::min() && n <= std::numeric_limits<int32_t>::max()) {
    const auto i = static_cast<int32_t>(n);
    out_ += BININT;
    out_.append(reinterpret_cast<const char*>(&i), 4);
  } else {
    out_ += {static_cast<char>(LONG1), 8};
    out_.append(reinterpret_cast<const char*>(&n), 8);
  }
}
void PickleWriter::real(double v) {
  const auto bits = std::bit_cast<uint64_t>(v);
  out_ += BINFLOAT;
  for (int i = 56; i >= 0; i -= 8) out_ += static_cast<char>(bits >> i & 0xff);
}
void PickleWriter::boolean(bool b) { out_ += static_cast<char>(b ? NEWTRUE : NEWFALSE); }
void PickleWriter::pair(int64_t a, int64_t b) {
  integer(a);
  integer(b);
  out_ += static_cast<char>(TUPLE2);
}
uint32_t PickleWriter::remember() {
  out_ += static_cast<char>(MEMOIZE);
  return memo_++;
}
void PickleWriter::again(uint32_t remembered) {
  if (remembered < 256) {
    out_ += BINGET;
    out_ += static_cast<char>(remembered);
  } else {
    out_ += LONG_BINGET;
    out_.append(reinterpret_cast<const char*>(&remembered), 4);
  }
}
std::string PickleWriter::finish() {
  out_ += STOP;
  return std::move(out_);
}

}  // namespace tenon::tracing
