#include <algorithm>
#include <fmt/format.h>

#include "core/error.h"
#include "tracing/snapshot/snapshot_keys.h"
#include "tracing/snapshot/snapshot_reader.h"

// Note [Rows, not objects]
// A snapshot is a list of millions of small dictionaries. Each is turned into a row of columns the moment it is put into its list, and its
// memory is used for the next. The memo of a pickle may still name it; such a name then finds that the object is gone (its serial number is
// another's), and counts as nothing. Lists of frames are what files really share: they get a number on first use and keep it.

namespace tenon::snapshot {

using Tag = Machine::Value::Tag;

namespace {
constexpr size_t kDeepest = 1 << 20;
constexpr uint64_t kSerial = (uint64_t{1} << 28) - 1;
}  // namespace

const char* name(Action a) {
  static constexpr const char* names[kActions] = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "oom", "user_defined", "annotate", "free", "other"};
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
  if (i >= memo_.size()) memo_.resize(i + 1);
  memo_[i] = packed(top());
}
uint64_t Machine::packed(const Value& v) {
  const bool fits = v.tag != Tag::integer && v.tag != Tag::real && v.tag != Tag::boolean;
  if (fits) return static_cast<uint64_t>(v.tag) << 60 | (v.serial & kSerial) << 32 | v.index;
  memo_other_.push_back(v);
  return uint64_t{15} << 60 | (memo_other_.size() - 1);
}
Machine::Value Machine::unpacked(uint64_t slot) const {
  if (slot >> 60 == 15) return memo_other_[slot & 0xffffffff];
  Value v;
  v.tag = static_cast<Tag>(slot >> 60);
  v.index = static_cast<uint32_t>(slot);
  v.serial = slot >> 32 & kSerial;
  return v;
}
void Machine::memo_get(uint64_t i) {
  if (i >= memo_.size()) throw Error(fmt::format("the file asks for entry {} of its memo, which has {}", i, memo_.size()));
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
// A size: no device has 4 TiB, so that sums of all that a file holds stay numbers whatever it claims. What failed may have been larger.
int64_t Machine::bytes_of(const Value* v, int64_t fallback, bool of_failure) const {
  return std::clamp<int64_t>(integer_of(v, fallback), fallback, int64_t{1} << (of_failure ? 60 : 42));
}
std::string Machine::text_of(const Value& v) const {
  switch (v.tag) {
    case Tag::text: return std::string(texts_[v.index]);
    case Tag::integer: return std::to_string(v.integer);
    case Tag::boolean: return v.integer ? "true" : "false";
    case Tag::real: return fmt::format("{}", v.real);
    case Tag::none: return "None";
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
    default: return "";
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

// What autograd keeps of the forward call: '  File "model.py", line 14, in forward\n    z = w * 2', the outermost call first.
uint32_t Machine::forward_frame(std::string_view text) {
  const size_t file = text.find("File \""), line = text.find("\", line "), in = text.find(", in ");
  if (file == std::string_view::npos || line == std::string_view::npos || in == std::string_view::npos || line < file + 6 || in < line + 8) return frame(kNone, texts_.own(std::string(text)), 0);
  int64_t number = 0;
  for (char c : text.substr(line + 8, in - line - 8))
    if (c >= '0' && c <= '9' && number < 1000000000) number = number * 10 + (c - '0');
  std::string_view function = text.substr(in + 5);
  function = function.substr(0, function.find('\n'));
  return frame(texts_.own(std::string(text.substr(file + 6, line - file - 6))), texts_.own(std::string(function)), number);
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
    if (f.tag == Tag::frame) frames.push_back(f.index);
    else if (f.tag == Tag::text) frames.insert(frames.begin(), forward_frame(texts_[f.index]));
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
  out_.stack_frames.insert(out_.stack_frames.end(), frames.begin(), frames.end());
  out_.stack_ends.push_back(out_.stack_frames.size());
  same.push_back(static_cast<uint32_t>(out_.stack_ends.size() - 1));
  return same.back();
}

void Machine::expect_rows(double share_read) {
  // Columns that double as they grow would for a moment be three times as large as they must.
  Events& e = out_.events;
  const size_t rows = e.size_();
  // Once, early; and again only where the file turns out denser than it began.
  if (rows < 50000 || share_read <= 0 || (expected_ && rows + rows / 10 < expected_)) return;
  const auto all = static_cast<size_t>(static_cast<double>(rows) / share_read * 1.02) + 1000;
  if (all <= expected_) return;
  expected_ = all;
  e.action.reserve(all);
  e.address.reserve(all);
  e.size.reserve(all);
  e.time_us.reserve(all);
  e.stream.reserve(all);
  e.stack.reserve(all);
  memo_.reserve(static_cast<size_t>(static_cast<double>(memo_.size()) / share_read * 1.02));
}

void Machine::add_event(const Container& d) {
  // The known keys are the first texts: one walk over the items finds them all.
  const Value* known[kKeys] = {};
  for (size_t i = 0; i + 1 < d.items.size(); i += 2)
    if (d.items[i].tag == Tag::text && d.items[i].index < kKeys) known[d.items[i].index] = &d.items[i + 1];
  Events& e = out_.events;
  const Value* address = known[kAddr] ? known[kAddr] : known[kDeviceFree];
  e.action.push_back(action_of(*known[kAction]));
  e.address.push_back(static_cast<uint64_t>(integer_of(address, 0)));
  e.size.push_back(bytes_of(known[kSize], 0, e.action.back() == Action::oom));
  e.time_us.push_back(integer_of(known[kTimeUs], -1));
  e.stream.push_back(stream_of(known[kStream]));
  e.stack.push_back(stack_with(stack_of(known[kFrames]), stack_of(known[kForwardFrames])));
  const size_t row = e.size_() - 1;
  auto tell = [&](std::vector<uint32_t>& column, uint32_t text) {
    column.resize(row, kNone);
    column.push_back(text);
  };
  if (known[kCompileContext] || known[kUserMetadata] || known[kInternalMetadata]) {
    std::string extra;
    for (Key k : {kCompileContext, kUserMetadata, kInternalMetadata})
      if (const Value* v = known[k]; v && v->tag == Tag::text && texts_[v->index] != "N/A" && !texts_[v->index].empty()) extra += (extra.empty() ? "" : "; ") + std::string(texts_[v->index]);
    if (!extra.empty()) tell(e.extra, texts_.own(extra));
  }
  if (const Value* category = known[kCategory]; category && category->tag == Tag::text) tell(e.category, category->index);
  if (const Value* pool = known[kPoolId])
    if (Container* p = container(*pool); p && p->items.size() == 2) {
      out_.pools_told = true;
      const PoolId id{integer_of(&p->items[0], 0), integer_of(&p->items[1], 0)};
      if (id != PoolId{}) tell(e.pool, pool_index(id));
    }
}

Action Machine::action_of(const Value& v) {
  if (v.tag != Tag::text) return Action::other;
  for (auto [text, action] : actions_)
    if (text == v.index) return action;
  Action a = Action::other;
  for (int i = 0; i < kActions; ++i)
    if (texts_[v.index] == snapshot::name(static_cast<Action>(i))) a = static_cast<Action>(i);
  if (actions_.size() < 64) actions_.emplace_back(v.index, a);
  return a;
}

void Machine::add_block(const Container& d) {
  Block b;
  b.address = static_cast<uint64_t>(integer_of(field(d, kAddress), 0));
  b.size = bytes_of(field(d, kSize), 0);
  b.requested = bytes_of(field(d, kRequestedSize), -1);
  const Value* state = field(d, kState);
  std::string_view s = state && state->tag == Tag::text ? texts_[state->index] : std::string_view();
  b.state = s == "active_allocated" ? State::active : s.starts_with("active_") ? State::pending_free : State::inactive;
  b.stack = stack_of(field(d, kFrames));
  // Until 2.0 a block had the history of its tenants instead; the last one is who is there.
  if (const Value* history = field(d, kHistory))
    if (Container* list = container(*history); list && !list->items.empty())
      if (Container* last = container(list->items.back())) {
        if (b.requested < 0) b.requested = bytes_of(field(*last, kRealSize), -1);
        if (b.stack == kNone) b.stack = stack_of(field(*last, kFrames));
        if (!b.address) b.address = static_cast<uint64_t>(integer_of(field(*last, kAddr), 0));
      }
  if (b.requested < 0) b.requested = b.state == State::inactive ? 0 : b.size;
  out_.blocks.push_back(b);
}

void Machine::add_segment(const Container& d) {
  Segment s;
  s.device = integer_of(field(d, kDevice), 0);
  s.address = static_cast<uint64_t>(integer_of(field(d, kAddress), 0));
  s.total = bytes_of(field(d, kTotalSize), 0);
  s.allocated = bytes_of(field(d, kAllocatedSize), 0);
  s.active = bytes_of(field(d, kActiveSize), 0);
  s.requested = bytes_of(field(d, kRequestedSize), -1);
  s.stream = stream_of(field(d, kStream));
  const Value* type = field(d, kSegmentType);
  s.large = type && type->tag == Tag::text && texts_[type->index] == "large";
  s.expandable = integer_of(field(d, kIsExpandable), 0) != 0;
  s.stack = stack_of(field(d, kFrames));
  if (const Value* pool = field(d, kSegmentPoolId))
    if (Container* p = container(*pool); p && p->items.size() == 2) {
      s.pool = {integer_of(&p->items[0], 0), integer_of(&p->items[1], 0)};
    }
  if (const Value* blocks = field(d, kBlocks))
    if (Container* list = container(*blocks); list && list->rows != kNone && rows_[list->rows].of == Rows::Of::blocks) {
      const Rows& r = rows_[list->rows];
      s.first_block = r.begin;
      s.blocks = r.end - r.begin;
    }
  // The oldest files give blocks no address: they lie one behind the other.
  uint64_t at = s.address;
  int64_t requested = 0;
  for (size_t i = s.first_block; i < s.first_block + s.blocks; ++i) {
    Block& b = out_.blocks[i];
    if (!b.address) b.address = at;
    at = b.address + static_cast<uint64_t>(b.size);
    if (b.state == State::active) requested += b.requested;
  }
  if (s.requested < 0) s.requested = requested;
  out_.segments.push_back(s);
}

void Machine::add_annotation(const Container& d) {
  Annotation a;
  a.start = text_of(*field(d, kStage)) == "START";
  if (const Value* n = field(d, kName)) a.name = text_of(*n);
  a.device = integer_of(field(d, kDevice), 0);
  a.time_us = integer_of(field(d, kTimeUs), -1);
  out_.annotations.push_back(std::move(a));
}

// Whether the item is one that a column has a row for; then it is one, and its memory is free.
bool Machine::become_row(Container& list, const Value& item) {
  if (item.tag != Tag::dict) return false;
  Container* d = container(item);
  if (!d) return true;  // gone already: it is a row elsewhere
  Rows::Of of;
  if (field(*d, kAction)) of = Rows::Of::events;
  else if (field(*d, kTotalSize)) of = Rows::Of::segments;
  else if (field(*d, kState)) of = Rows::Of::blocks;
  else if (field(*d, kStage)) of = Rows::Of::annotations;
  else return false;
  auto end = [&]() -> size_t {
    switch (of) {
      case Rows::Of::events: return out_.events.size_();
      case Rows::Of::segments: return out_.segments.size();
      case Rows::Of::blocks: return out_.blocks.size();
      default: return out_.annotations.size();
    }
  };
  if (list.rows == kNone) {
    list.rows = static_cast<uint32_t>(rows_.size());
    rows_.push_back({of, end(), end()});
    if (of == Rows::Of::events) device_lists_.push_back(list.rows);
  }
  switch (of) {
    case Rows::Of::events: add_event(*d); break;
    case Rows::Of::segments: add_segment(*d); break;
    case Rows::Of::blocks: add_block(*d); break;
    default: add_annotation(*d);
  }
  // A list of mixed rows: those of another kind are counted in another column.
  if (rows_[list.rows].of == of) rows_[list.rows].end = end();
  release(item);
  return true;
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
  if (!memo_.empty())
    for (size_t i = memo_.size(); i-- > 0 && memo_.size() - i < 16;)
      if (memo_[i] == packed(v)) memo_[i] = packed(frame);
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
