#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"
#include "tracing/snapshot/snapshot_keys.h"
#include "tracing/snapshot/snapshot_reader.h"

namespace tenon::snapshot {

using Tag = Machine::Value::Tag;

namespace {
constexpr size_t kDeepest = 1 << 20;
constexpr uint64_t kSerial = (uint64_t{1} << 28) - 1;
}  // namespace

const char* name(Action a) {
  static constexpr const char* names[kActions] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                                  "segment_free", "segment_map",    "segment_unmap",  "snapshot",
                                                  "oom",          "user_defined",   "annotate",       "free",
                                                  "other"};
  return names[static_cast<int>(a)];
}

// The keys are the first texts, so a key's number is its place in the list.
Machine::Machine(Snapshot& out) : out_(out) {
  for (uint32_t i = 0; i < kKeys; ++i) keys_[i] = texts_.of(kKeyTexts[i]);
}

void Machine::push_integer(int64_t v) {
  Value x;
  x.tag = Tag::integer;
  x.integer = v;
  push(x);
}
void Machine::push_real(double v) {
  Value x;
  x.tag = Tag::real;
  x.real = v;
  push(x);
}
void Machine::push_boolean(bool v) {
  Value x;
  x.tag = Tag::boolean;
  x.integer = v;
  push(x);
}
void Machine::push_text(std::string_view text) {
  Value x;
  x.tag = Tag::text;
  x.index = texts_.own(std::string(text));
  push(x);
}
void Machine::push_container(Tag tag) {
  if (stack_.size() > kDeepest) throw Error("the file nests its values deeper than any snapshot");
  uint32_t i;
  if (free_.empty()) {
    i = static_cast<uint32_t>(containers_.size());
    containers_.emplace_back();
  } else {
    i = free_.back();
    free_.pop_back();
  }
  Container& c = containers_[i];
  c.items.clear();
  c.serial = ++serial_ & kSerial;
  if (c.serial == 0) c.serial = ++serial_ & kSerial;  // 0 is nobody's
  c.stack = c.rows = kNone;
  c.tag = tag;
  Value x;
  x.tag = tag;
  x.index = i;
  x.serial = c.serial;
  push(x);
}
void Machine::mark() {
  Value x;
  x.tag = Tag::mark;
  push(x);
  ++marks_;
}

Machine::Container* Machine::container(const Value& v) {
  if (v.tag != Tag::list && v.tag != Tag::dict && v.tag != Tag::tuple) return nullptr;
  Container& c = containers_[v.index];
  return c.serial == v.serial ? &c : nullptr;
}
void Machine::release(const Value& v) {
  Container* c = container(v);
  if (!c) return;
  c->serial = 0;
  if (c->items.capacity() > 64) std::vector<Value>().swap(c->items);
  free_.push_back(v.index);
}

Machine::Value& Machine::top() {
  if (stack_.empty()) throw Error("a value is missing where the file uses one");
  return stack_.back();
}
void Machine::pop() {
  if (top().tag == Tag::mark) --marks_;
  stack_.pop_back();
}
void Machine::memo_put(uint64_t i) {
  // An entry a put is what every pickler makes; a few bytes must not ask for megabytes again and again.
  if (i >= (uint64_t{1} << 20) + 2 * ++puts_) throw Error(fmt::format("the file's memo jumps to entry {}", i));
  if (i < memo_.size()) usual_keys_ = {};
  memo_.put(i, packed(top()));
}
uint64_t Machine::packed(const Value& v) {
  const bool fits = v.tag != Tag::integer && v.tag != Tag::real && v.tag != Tag::boolean;
  if (fits) return static_cast<uint64_t>(v.tag) << 60 | (v.serial & kSerial) << 32 | v.index;
  memo_other_.push_back(v);
  return uint64_t{15} << 60 | (memo_other_.size() - 1);
}
Machine::Value Machine::unpacked(uint64_t slot) const {
  Value v;
  if (slot == PickleMemo::kGone) {
    v.tag = Tag::gone;
    return v;
  }
  if (slot >> 60 == 15) return memo_other_[slot & 0xffffffff];
  v.tag = static_cast<Tag>(slot >> 60);
  v.index = static_cast<uint32_t>(slot);
  v.serial = slot >> 32 & kSerial;
  return v;
}
void Machine::memo_get(uint64_t i) {
  if (i >= memo_.size())
    throw Error(fmt::format("the file asks for entry {} of its memo, which has {}", i, memo_.size()));
  push(unpacked(memo_[i]));
}
size_t Machine::last_mark() const {
  for (size_t i = stack_.size(); marks_ && i-- > 0;)
    if (stack_[i].tag == Tag::mark) return i;
  throw Error("a mark is missing where the file uses one");
}

void Machine::tuple(size_t count) {
  if (stack_.size() < count) throw Error("values are missing where the file makes a tuple");
  std::vector<Value> items(stack_.end() - static_cast<long>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  push_container(Tag::tuple);
  containers_[top().index].items = std::move(items);
}
void Machine::tuple_to_mark() {
  size_t m = last_mark();
  std::vector<Value> items(stack_.begin() + static_cast<long>(m) + 1, stack_.end());
  stack_.resize(m);
  --marks_;
  push_container(Tag::tuple);
  containers_[top().index].items = std::move(items);
}

const Machine::Value* Machine::field(const Container& dict, uint32_t key) const {
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2)
    if (dict.items[i].tag == Tag::text && dict.items[i].index == keys_[key]) return &dict.items[i + 1];
  return nullptr;
}
int64_t Machine::integer_of(const Value* v, int64_t fallback) const {
  if (!v) return fallback;
  if (v->tag == Tag::integer || v->tag == Tag::boolean) return v->integer;
  if (v->tag == Tag::real && v->real > -9e18 && v->real < 9e18) return static_cast<int64_t>(v->real);
  return fallback;
}
// A size: no device has 4 TiB, so that sums of all that a file holds stay numbers whatever it claims. What failed may
// have been larger.
int64_t Machine::bytes_of(const Value* v, int64_t fallback, bool of_failure) const {
  return std::clamp<int64_t>(integer_of(v, fallback), fallback, int64_t{1} << (of_failure ? 60 : 42));
}
std::string Machine::text_of(const Value& v) const {
  switch (v.tag) {
    case Tag::text:
      return std::string(texts_[v.index]);
    case Tag::integer:
      return std::to_string(v.integer);
    case Tag::boolean:
      return v.integer ? "true" : "false";
    case Tag::real:
      return fmt::format("{}", v.real);
    case Tag::none:
      return "None";
    case Tag::list:
    case Tag::tuple:
    case Tag::dict: {
      const Container& c = containers_[v.index];
      if (c.serial != v.serial) return "";
      std::string s = v.tag == Tag::dict ? "{" : "[";
      for (size_t i = 0; i < std::min<size_t>(c.items.size(), 64); ++i) {
        const Value& item = c.items[i];
        bool nested = item.tag == Tag::list || item.tag == Tag::tuple || item.tag == Tag::dict;
        s += (i ? (v.tag == Tag::dict && i % 2 ? ": " : ", ") : "") + (nested ? std::string("...") : text_of(item));
      }
      return s + (v.tag == Tag::dict ? "}" : "]");
    }
    default:
      return "";
  }
}

uint32_t Machine::stream_of(const Value* v) {
  const int64_t stream = integer_of(v, 0);
  if (last_stream_ < out_.streams.size() && out_.streams[last_stream_] == stream) return last_stream_;
  auto [it, fresh] = stream_index_.emplace(stream, static_cast<uint32_t>(out_.streams.size()));
  if (fresh) out_.streams.push_back(stream);
  return last_stream_ = it->second;
}

uint32_t Machine::pool_index(PoolId id) {
  auto [it, fresh] = pool_index_.emplace(id, static_cast<uint32_t>(out_.pools.size()));
  if (fresh) out_.pools.push_back(id);
  return it->second;
}

// What autograd keeps of the forward call: '  File "model.py", line 14, in forward\n    z = w * 2', the outermost call
// first.
uint32_t Machine::forward_frame(std::string_view text) {
  const size_t file = text.find("File \""), line = text.find("\", line "), in = text.find(", in ");
  if (file == std::string_view::npos || line == std::string_view::npos || in == std::string_view::npos ||
      line < file + 6 || in < line + 8)
    return frame(kNone, texts_.own(std::string(text)), 0);
  int64_t number = 0;
  for (char c : text.substr(line + 8, in - line - 8))
    if (c >= '0' && c <= '9' && number < 1000000000) number = number * 10 + (c - '0');
  std::string_view function = text.substr(in + 5);
  function = function.substr(0, function.find('\n'));
  return frame(texts_.own(std::string(text.substr(file + 6, line - file - 6))), texts_.own(std::string(function)),
               number);
}
uint32_t Machine::frame(uint32_t file, uint32_t function, int64_t line) {
  auto [it, fresh] = frame_index_.emplace(std::tuple(file, function, line), static_cast<uint32_t>(out_.frames.size()));
  if (fresh) out_.frames.push_back({file, function, line});
  return it->second;
}

uint32_t Machine::stack_of(const Value* v) {
  Container* list = v ? container(*v) : nullptr;
  // No dictionary: one that names itself as its frames would lose its fields while they are read.
  if (!list || list->tag == Tag::dict) return kNone;
  if (list->stack != kNone) return list->stack;
  std::vector<uint32_t> frames;
  for (const Value& f : list->items) {
    if (f.tag == Tag::frame)
      frames.push_back(f.index);
    else if (f.tag == Tag::text)
      frames.insert(frames.begin(), forward_frame(texts_[f.index]));
  }
  std::vector<Value>().swap(list->items);  // from here on it is a number
  return list->stack = number(frames);
}

/// The stack of the forward call behind that of the call itself.
uint32_t Machine::stack_with(uint32_t stack, uint32_t forward) {
  if (forward == kNone || out_.stack(forward).empty()) return stack;
  const uint64_t pair = static_cast<uint64_t>(stack) << 32 | forward;
  auto [it, fresh] = joined_.emplace(pair, 0);
  if (fresh) {
    auto own = out_.stack(stack), more = out_.stack(forward);
    std::vector<uint32_t> frames(own.begin(), own.end());
    frames.insert(frames.end(), more.begin(), more.end());
    it->second = number(frames);
  }
  return it->second;
}

uint32_t Machine::number(const std::vector<uint32_t>& frames) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (uint32_t frame : frames) hash = (hash ^ frame) * 0x100000001b3ull;
  auto& same = stacks_by_hash_[hash];
  for (uint32_t id : same) {
    auto have = out_.stack(id);
    if (std::equal(have.begin(), have.end(), frames.begin(), frames.end())) return id;
  }
  out_.stack_frames.append(frames);
  out_.stack_ends.push_back(out_.stack_frames.size());
  same.push_back(static_cast<uint32_t>(out_.stack_ends.size() - 1));
  return same.back();
}

void Machine::add_to_list(Value list, Value item) {
  Container* c = container(list);
  if (!c || c->tag != Tag::list) throw Error("the file appends to what is no list");
  if (!become_row(*c, item)) containers_[list.index].items.push_back(item);
}

void Machine::append() {
  if (stack_.size() < 2) throw Error("a value is missing where the file appends one");
  Value item = stack_.back();
  stack_.pop_back();
  add_to_list(top(), item);
}
void Machine::appends() {
  size_t m = last_mark();
  if (m == 0) throw Error("a list is missing where the file appends to one");
  Value list = stack_[m - 1];
  for (size_t i = m + 1; i < stack_.size(); ++i) add_to_list(list, stack_[i]);
  stack_.resize(m);
  --marks_;
}

// A dictionary of a file name, a line and a function is a frame.
void Machine::dict_complete(Value& v) {
  Container* d = container(v);
  if (!d || d->items.size() != 6) return;
  const Value *file = field(*d, kFilename), *line = field(*d, kLine), *function = field(*d, kName);
  if (!file || !line || !function || file->tag != Tag::text || function->tag != Tag::text) return;
  const int64_t number = integer_of(line, 0);
  Value frame;
  frame.tag = Tag::frame;
  frame.index = this->frame(file->index, function->index, number);
  // The memo names the dictionary by its place: it is to find the frame there.
  for (size_t i = memo_.size(); i-- > 0 && memo_.size() - i < 16;)
    if (memo_[i] == packed(v)) memo_.put(i, packed(frame));
  release(v);
  v = frame;
}

void Machine::set_item() {
  if (stack_.size() < 3) throw Error("values are missing where the file sets an item");
  Value value = stack_.back();
  stack_.pop_back();
  Value key = stack_.back();
  stack_.pop_back();
  Container* d = container(top());
  if (!d || d->tag != Tag::dict) throw Error("the file sets an item of what is no dictionary");
  d->items.push_back(key);
  d->items.push_back(value);
  dict_complete(top());
}
void Machine::set_items() {
  size_t m = last_mark();
  if (m == 0) throw Error("a dictionary is missing where the file sets its items");
  Container* d = container(stack_[m - 1]);
  if (!d || d->tag != Tag::dict) throw Error("the file sets items of what is no dictionary");
  d->items.insert(d->items.end(), stack_.begin() + static_cast<long>(m) + 1, stack_.end());
  if (d->items.size() % 2) d->items.pop_back();
  stack_.resize(m);
  --marks_;
  dict_complete(top());
}

}  // namespace tenon::snapshot
