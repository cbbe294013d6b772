#include "engine/formats/torch/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>

#include "core/error.h"

namespace tenon::formats {

class PickleReader {
 public:
  PickleReader(std::string_view bytes, PickleOf what) : b_(bytes), objects_(what == PickleOf::objects) {}

  Pickle run() {
    for (;;) {
      at_ = pos_;
      const auto op = static_cast<unsigned char>(take(1)[0]);
      if (op == '.') break;
      if (!plain(op) && !(objects_ && object(op))) {
        if (objects_) fail(fmt::format("opcode 0x{:02x}, which no such file has", op));
        fail(fmt::format("opcode 0x{:02x}, which builds no plain value", op));
      }
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("a stack of other than one value at the end");
    out_.root_ = stack_.back();
    out_.bytes_ = pos_;
    return std::move(out_);
  }

 private:
  using List = PyValue::List;
  using Dict = PyValue::Dict;

  bool plain(unsigned char op) {
    switch (op) {
      case 0x80:
        if (unsigned v = byte(); v > 5) fail(fmt::format("protocol {}", v));
        break;
      case 0x95:
        number<uint64_t>();
        break;  // FRAME
      case '(':
        marks_.push_back(stack_.size());
        break;
      case '0':
        pop();
        break;
      case '1':
        stack_.resize(stack_.size() - since_mark());
        break;
      case '2':
        stack_.push_back(top());
        break;
      case 0x94:
        memo_.push_back(top());
        break;
      case 'q':
        remember(byte());
        break;
      case 'r':
        remember(number<uint32_t>());
        break;
      case 'h':
        recall(byte());
        break;
      case 'j':
        recall(number<uint32_t>());
        break;
      case '}':
        make(Dict{});
        break;
      case ']':
        make(List{});
        break;
      case ')':
        tuple(0);
        break;
      case 's':
        set_items(2);
        break;
      case 'u':
        set_items(since_mark());
        break;
      case 'a':
        append(1);
        break;
      case 'e':
        append(since_mark());
        break;
      case 'l':
        list(since_mark());
        break;
      case 'd': {
        const size_t n = since_mark();
        out_.values_->emplace_back().value = Dict{};
        stack_.insert(stack_.end() - static_cast<std::ptrdiff_t>(n), &out_.values_->back());
        set_items(n);
        break;
      }
      case 't':
        tuple(since_mark());
        break;
      case 0x85:
        tuple(1);
        break;
      case 0x86:
        tuple(2);
        break;
      case 0x87:
        tuple(3);
        break;
      case 'J':
        make(int64_t{number<int32_t>()});
        break;
      case 'K':
        make(int64_t{byte()});
        break;
      case 'M':
        make(int64_t{number<uint16_t>()});
        break;
      case 0x8a:
        make(big(byte()));
        break;
      case 0x8b:
        make(big(number<uint32_t>()));
        break;
      case 'I':
      case 'L':
        decimal(line());
        break;
      case 'G': {
        uint64_t bits = 0;
        for (char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
        make(std::bit_cast<double>(bits));
        break;
      }
      case 0x8c:
        make(std::string(take(byte())));
        break;
      case 'X':
        make(std::string(take(number<uint32_t>())));
        break;
      case 0x8d:
        make(std::string(take(number<uint64_t>())));
        break;
      case 'U':
        make(std::string(take(byte())));
        break;  // a text of Python 2
      case 'T':
        make(std::string(take(number<uint32_t>())));
        break;
      case 'N':
        make(std::monostate{});
        break;
      case 0x88:
        make(true);
        break;
      case 0x89:
        make(false);
        break;
      default:
        return false;
    }
    return true;
  }

  bool object(unsigned char op) {
    switch (op) {
      case 'C':
        make(PyValue::Bytes{std::string(take(byte()))});
        break;
      case 'B':
        make(PyValue::Bytes{std::string(take(number<uint32_t>()))});
        break;
      case 0x8e:
      case 0x96:
        make(PyValue::Bytes{std::string(take(number<uint64_t>()))});
        break;
      case 0x8f:
        make(List{});
        break;  // a set, as a list
      case 0x90:
        append(since_mark());
        break;
      case 0x91:
        list(since_mark());
        break;
      case 'c': {
        const std::string module(line()), name(line());
        make(PyValue::Global{module, name});
        break;
      }
      case 0x93: {
        const PyRef name = pop(), module = pop();
        const auto *n = name->as<std::string>(), *m = module->as<std::string>();
        if (!n || !m) fail("a global whose name is no text");
        make(PyValue::Global{*m, *n});
        break;
      }
      case 'R':
      case 0x81: {
        const PyRef args = pop(), what = pop();
        made(op == 'R' ? PyValue::Object::Way::call : PyValue::Object::Way::create, what, args);
        break;
      }
      case 0x92: {  // the keyword arguments come to the same as a state
        const PyRef named = pop(), args = pop(), what = pop();
        made(PyValue::Object::Way::create, what, args).state = named;
        break;
      }
      case 'Q':
        made(PyValue::Object::Way::persistent, nullptr, pop());
        break;
      case 'b': {
        const PyRef state = pop();
        auto* o = std::get_if<std::unique_ptr<PyValue::Object>>(&top()->value);
        if (!o) fail("a state for what has none");
        (*o)->state = state;
        break;
      }
      default:
        return false;
    }
    return true;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("not a pickle of {}: {} at byte {}", objects_ ? "data" : "plain values", what, at_),
                "nothing in it was run");
  }
  std::string_view take(uint64_t n) {
    if (n > b_.size() - pos_) fail(fmt::format("{} bytes wanted where {} are left", n, b_.size() - pos_));
    auto s = b_.substr(pos_, n);
    pos_ += n;
    return s;
  }
  std::string_view line() {
    const size_t end = b_.find('\n', pos_);
    if (end == b_.npos) fail("a line without its end");
    const std::string_view s = take(end - pos_);
    take(1);
    return s;
  }
  unsigned byte() { return static_cast<unsigned char>(take(1)[0]); }
  template <class T>
  T number() {
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
      if (i < 8)
        v = (v & ~(uint64_t{0xff} << (8 * i))) | uint64_t{c} << (8 * i);
      else if (c != (negative ? 0xff : 0))
        return negative ? INT64_MIN : static_cast<int64_t>(v);
    }
    return static_cast<int64_t>(v);
  }
  void decimal(std::string_view s) {
    if (s == "00" || s == "01") return make(s == "01");
    if (!s.empty() && s.back() == 'L') s.remove_suffix(1);
    int64_t v = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    if (error != std::errc() || end != s.data() + s.size()) fail("a number that is none, or too large");
    make(v);
  }
  template <class T>
  void make(T v) {
    out_.values_->emplace_back().value = std::move(v);
    stack_.push_back(&out_.values_->back());
  }
  PyValue::Object& made(PyValue::Object::Way way, PyRef what, PyRef args) {
    auto o = std::make_unique<PyValue::Object>();
    o->way = way;
    o->what = what;
    o->args = args;
    make(std::move(o));
    return *std::get<std::unique_ptr<PyValue::Object>>(stack_.back()->value);
  }
  PyRef& top() {
    need(1);
    return stack_.back();
  }
  PyRef pop() {
    const PyRef v = top();
    stack_.pop_back();
    return v;
  }
  void remember(uint64_t i) {
    if (i > memo_.size() + 65536 || i >= b_.size()) fail(fmt::format("memo number {}", i));
    if (i >= memo_.size()) memo_.resize(i + 1);
    memo_[i] = top();
  }
  void recall(uint64_t i) {
    if (i >= memo_.size() || !memo_[i]) fail(fmt::format("memo number {} that was never set", i));
    stack_.push_back(memo_[i]);
  }
  size_t since_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) fail("a list without its mark");
    size_t n = stack_.size() - marks_.back();
    marks_.pop_back();
    return n;
  }
  void need(size_t n) const {
    if (stack_.size() < n || (!marks_.empty() && (marks_.back() > stack_.size() || stack_.size() - marks_.back() < n)))
      fail("too few values on the stack");
  }
  void list(size_t n) {
    need(n);
    List items(stack_.end() - static_cast<std::ptrdiff_t>(n), stack_.end());
    stack_.resize(stack_.size() - n);
    make(std::move(items));
  }
  void tuple(size_t n) {
    list(n);
    stack_.back()->tuple = true;
  }
  void append(size_t n) {
    need(n + 1);
    PyValue& to = *stack_[stack_.size() - n - 1];
    auto* list = std::get_if<List>(&to.value);
    if (auto* o = std::get_if<std::unique_ptr<PyValue::Object>>(&to.value)) list = &(*o)->appended;
    if (!list || to.tuple) fail("something appended to what is no list");
    list->insert(list->end(), stack_.end() - static_cast<std::ptrdiff_t>(n), stack_.end());
    stack_.resize(stack_.size() - n);
  }
  void set_items(size_t n) {
    if (n % 2) fail("a key without a value");
    need(n + 1);
    PyValue& to = *stack_[stack_.size() - n - 1];
    auto* dict = std::get_if<Dict>(&to.value);
    if (auto* o = std::get_if<std::unique_ptr<PyValue::Object>>(&to.value)) dict = &(*o)->items;
    if (!dict) fail("an item set in what is no dict");
    for (size_t i = stack_.size() - n; i < stack_.size(); i += 2) dict->emplace_back(stack_[i], stack_[i + 1]);
    stack_.resize(stack_.size() - n);
  }

  std::string_view b_;
  bool objects_;
  size_t pos_ = 0, at_ = 0;
  Pickle out_;
  std::vector<PyRef> stack_, memo_;
  std::vector<size_t> marks_;
};

namespace {

template <class T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof(T));
}

}  // namespace

const PyValue::Global* PyValue::Object::global() const { return what ? what->as<Global>() : nullptr; }
bool PyValue::Object::calls(std::string_view module, std::string_view name) const {
  const Global* g = way == Way::persistent ? nullptr : global();
  return g && g->module == module && g->name == name;
}
const PyValue::Object* PyValue::object() const {
  const auto* o = as<std::unique_ptr<Object>>();
  return o ? o->get() : nullptr;
}
const PyValue* PyValue::find(std::string_view key) const {
  if (const auto* d = std::get_if<Dict>(&value))
    for (const auto& [k, v] : *d)
      if (const auto* s = std::get_if<std::string>(&k->value); s && *s == key) return v;
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

Pickle read_pickle(std::string_view bytes, PickleOf what) {
  if (bytes.size() < 2 || static_cast<unsigned char>(bytes[0]) != 0x80)
    throw Error("not a pickle: it does not begin with a protocol mark");
  return PickleReader(bytes, what).run();
}

PickleWriter::PickleWriter(int protocol) : protocol_(protocol), out_("\x80") { out_ += static_cast<char>(protocol); }

void PickleWriter::global(std::string_view module, std::string_view name) {
  out_ += 'c';
  out_ += module;
  out_ += '\n';
  out_ += name;
  out_ += '\n';
}

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
  if (protocol_ > 2 && s.size() < 256) {
    out_ += '\x8c';
    out_ += static_cast<char>(s.size());
  } else {
    out_ += 'X';
    put(out_, static_cast<uint32_t>(s.size()));
  }
  out_ += s;
}

}  // namespace tenon::formats
