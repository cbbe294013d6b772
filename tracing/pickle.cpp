#include "tracing/pickle.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>

#include "core/error.h"

namespace tenon::tracing {
namespace {

template <class T> PyRef make(T v) {
  auto p = std::make_shared<PyValue>();
  p->value = std::move(v);
  return p;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : b_(bytes) {}

  PyRef run() {
    for (;;) {
      at_ = pos_;
      switch (auto op = static_cast<unsigned char>(take(1)[0]); op) {
        case 0x80:
          if (unsigned v = byte(); v > 5) fail(fmt::format("protocol {}", v));
          break;
        case 0x95: number<uint64_t>(); break;  // FRAME
        case '.':
          if (stack_.size() != 1) fail("a stack of other than one value at the end");
          return stack_.back();
        case '(': marks_.push_back(stack_.size()); break;
        case 0x94: memo_.push_back(top()); break;
        case 'q': remember(byte()); break;
        case 'r': remember(number<uint32_t>()); break;
        case 'h': recall(byte()); break;
        case 'j': recall(number<uint32_t>()); break;
        case '}': push(make(PyValue::Dict{})); break;
        case ']': push(make(PyValue::List{})); break;
        case ')': push(make(PyValue::List{})); break;
        case 's': set_items(2); break;
        case 'u': set_items(since_mark()); break;
        case 'a': append(1); break;
        case 'e': append(since_mark()); break;
        case 't': tuple(since_mark()); break;
        case 0x85: tuple(1); break;
        case 0x86: tuple(2); break;
        case 0x87: tuple(3); break;
        case 'J': push(make(int64_t{number<int32_t>()})); break;
        case 'K': push(make(int64_t{byte()})); break;
        case 'M': push(make(int64_t{number<uint16_t>()})); break;
        case 0x8a: push(make(big(byte()))); break;
        case 0x8b: push(make(big(number<uint32_t>()))); break;
        case 'G': {
          uint64_t bits = 0;
          for (char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
          push(make(std::bit_cast<double>(bits)));
          break;
        }
        case 0x8c: push(make(std::string(take(byte())))); break;
        case 'X': push(make(std::string(take(number<uint32_t>())))); break;
        case 0x8d: push(make(std::string(take(number<uint64_t>())))); break;
        case 'N': push(make(std::monostate{})); break;
        case 0x88: push(make(true)); break;
        case 0x89: push(make(false)); break;
        default: fail(fmt::format("opcode 0x{:02x}, which builds no plain value", op));
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("not a pickle of plain values: {} at byte {}", what, at_), "nothing in it was run");
  }
  std::string_view take(uint64_t n) {
    if (n > b_.size() - pos_) fail(fmt::format("{} bytes wanted where {} are left", n, b_.size() - pos_));
    auto s = b_.substr(pos_, n);
    pos_ += n;
    return s;
  }
  unsigned byte() { return static_cast<unsigned char>(take(1)[0]); }
  template <class T> T number() {
    T v;
    std::memcpy(&v, take(sizeof(T)).data(), sizeof(T));
    return v;
  }
  // Little-endian two's complement of any length, clamped to 64 bits: addresses above 2^63 occur.
  int64_t big(uint64_t n) {
    auto s = take(n);
    if (n == 0) return 0;
    bool negative = s.back() & 0x80;
    uint64_t v = negative ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < s.size(); ++i) {
      auto c = static_cast<unsigned char>(s[i]);
      if (i < 8) v = (v & ~(uint64_t{0xff} << (8 * i))) | uint64_t{c} << (8 * i);
      else if (c != (negative ? 0xff : 0)) return negative ? INT64_MIN : static_cast<int64_t>(v);
    }
    return static_cast<int64_t>(v);
  }
  void push(PyRef v) { stack_.push_back(std::move(v)); }
  PyRef& top() {
    if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) fail("an empty stack");
    return stack_.back();
  }
  void remember(uint64_t i) {
    if (i > memo_.size() + 65536 || i >= b_.size()) fail(fmt::format("memo number {}", i));
    if (i >= memo_.size()) memo_.resize(i + 1);
    memo_[i] = top();
  }
  void recall(uint64_t i) {
    if (i >= memo_.size() || !memo_[i]) fail(fmt::format("memo number {} that was never set", i));
    push(memo_[i]);
  }
  size_t since_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) fail("a list without its mark");
    size_t n = stack_.size() - marks_.back();
    marks_.pop_back();
    return n;
  }
  void need(size_t n) const {
    if (stack_.size() < n || (!marks_.empty() && stack_.size() - marks_.back() < n)) fail("too few values on the stack");
  }
  void tuple(size_t n) {
    need(n);
    PyValue::List items(std::make_move_iterator(stack_.end() - static_cast<long>(n)), std::make_move_iterator(stack_.end()));
    stack_.resize(stack_.size() - n);
    push(make(std::move(items)));
  }
  void append(size_t n) {
    need(n + 1);
    auto* list = std::get_if<PyValue::List>(&stack_[stack_.size() - n - 1]->value);
    if (!list) fail("something appended to what is no list");
    PyValue* self = stack_[stack_.size() - n - 1].get();
    for (size_t i = stack_.size() - n; i < stack_.size(); ++i) {
      if (stack_[i].get() == self) fail("a list that contains itself");
      list->push_back(std::move(stack_[i]));
    }
    stack_.resize(stack_.size() - n);
  }
  void set_items(size_t n) {
    if (n % 2) fail("a key without a value");
    need(n + 1);
    auto* dict = std::get_if<PyValue::Dict>(&stack_[stack_.size() - n - 1]->value);
    if (!dict) fail("an item set in what is no dict");
    PyValue* self = stack_[stack_.size() - n - 1].get();
    for (size_t i = stack_.size() - n; i < stack_.size(); i += 2) {
      if (stack_[i].get() == self || stack_[i + 1].get() == self) fail("a dict that contains itself");
      dict->emplace_back(std::move(stack_[i]), std::move(stack_[i + 1]));
    }
    stack_.resize(stack_.size() - n);
  }

  std::string_view b_;
  size_t pos_ = 0, at_ = 0;
  std::vector<PyRef> stack_, memo_;
  std::vector<size_t> marks_;
};

template <class T> void put(std::string& out, T v) { out.append(reinterpret_cast<const char*>(&v), sizeof(T)); }

}  // namespace

PyValue::~PyValue() {
  std::vector<PyRef> last;  // values that nobody else holds, still to be taken apart
  auto take = [&](PyValue& v) {
    auto one = [&](PyRef& r) {
      if (r && r.use_count() == 1) last.push_back(std::move(r));
    };
    if (auto* list = std::get_if<List>(&v.value))
      for (PyRef& r : *list) one(r);
    if (auto* dict = std::get_if<Dict>(&v.value))
      for (auto& [key, item] : *dict) one(key), one(item);
  };
  take(*this);
  while (!last.empty()) {
    const PyRef v = std::move(last.back());
    last.pop_back();
    take(*v);
  }
}

const PyValue* PyValue::find(std::string_view key) const {
  if (const auto* d = std::get_if<Dict>(&value))
    for (const auto& [k, v] : *d)
      if (const auto* s = std::get_if<std::string>(&k->value); s && *s == key) return v.get();
  return nullptr;
}
int64_t PyValue::integer(std::string_view key, int64_t fallback) const {
  const PyValue* v = find(key);
  const auto* i = v ? std::get_if<int64_t>(&v->value) : nullptr;
  return i ? *i : fallback;
}
std::string PyValue::text(std::string_view key, const std::string& fallback) const {
  const PyValue* v = find(key);
  const auto* s = v ? std::get_if<std::string>(&v->value) : nullptr;
  return s ? *s : fallback;
}
const PyValue::List* PyValue::list(std::string_view key) const {
  const PyValue* v = find(key);
  return v ? std::get_if<List>(&v->value) : nullptr;
}

PyRef read_pickle(std::string_view bytes) {
  if (bytes.size() < 2 || static_cast<unsigned char>(bytes[0]) != 0x80) throw Error("not a pickle: it does not begin with a protocol mark");
  return Reader(bytes).run();
}

PickleWriter::PickleWriter() : out_("\x80\x04", 2) {}

void PickleWriter::integer(int64_t v) {
  if (v >= 0 && v < 256) {
    out_ += 'K';
    out_ += static_cast<char>(v);
  } else if (v >= INT32_MIN && v <= INT32_MAX) {
    out_ += 'J';
    put(out_, static_cast<int32_t>(v));
  } else {
    out_ += '\x8a';
    out_ += '\x08';
    put(out_, v);
  }
}
void PickleWriter::number(double v) {
  out_ += 'G';
  auto bits = std::bit_cast<uint64_t>(v);
  for (int i = 7; i >= 0; --i) out_ += static_cast<char>(bits >> (8 * i));
}
void PickleWriter::text(std::string_view s) {
  if (s.size() < 256) {
    out_ += '\x8c';
    out_ += static_cast<char>(s.size());
  } else {
    out_ += 'X';
    put(out_, static_cast<uint32_t>(s.size()));
  }
  out_ += s;
}

}  // namespace tenon::tracing
