#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"
#include "tracing/snapshot/snapshot_keys.h"
#include "tracing/snapshot/snapshot_reader.h"

// Note [Rows, not objects]
// A snapshot is a list of millions of small dictionaries. Each is turned into a row of columns the moment it is put
// into its list, and its memory is used for the next. The memo of a pickle may still name it; such a name then finds
// that the object is gone (its serial number is another's), and counts as nothing. Lists of frames are what files
// really share: they get a number on first use and keep it.

namespace tenon::snapshot {

using Tag = Machine::Value::Tag;

void Machine::expect_rows(double share_read) {
  // Columns that double as they grow would for a moment be three times as large as they must.
  Events& e = out_.events;
  const size_t rows = e.size_();
  // Once, early, with room to spare, which takes no memory until it is written to; and again only where the file turns
  // out still denser than it began.
  if (rows < 50000 || share_read <= 0 || (expected_ && rows + rows / 32 < expected_)) return;
  const auto all = static_cast<size_t>(static_cast<double>(rows) / share_read * 1.2) + 1000;
  if (all <= expected_) return;
  expected_ = all;
  e.action.reserve(all);
  e.address.reserve(all);
  e.size.reserve(all);
  e.time_us.reserve(all);
  e.stream.reserve(all);
  e.stack.reserve(all);
}

void Machine::add_event(const Container& d) {
  // The known keys are the first texts: one walk over the items finds them all.
  const Value* known[kKeys] = {};
  for (size_t i = 0; i + 1 < d.items.size(); i += 2)
    if (d.items[i].tag == Tag::text && d.items[i].index < kKeys) known[d.items[i].index] = &d.items[i + 1];
  add_event(known);
}

void Machine::add_event(const Value* const* known) {
  Events& e = out_.events;
  const Value* address = known[kAddr] ? known[kAddr] : known[kDeviceFree];
  e.action.push_back(action_of(*known[kAction]));
  e.address.push_back(static_cast<uint64_t>(integer_of(address, 0)));
  e.size.push_back(bytes_of(known[kSize], 0, e.action.back() == Action::oom));
  e.time_us.push_back(integer_of(known[kTimeUs], -1));
  e.stream.push_back(stream_of(known[kStream]));
  e.stack.push_back(stack_with(stack_of(known[kFrames]), stack_of(known[kForwardFrames])));
  const size_t row = e.size_() - 1;
  auto tell = [&](Column<uint32_t>& column, uint32_t text) {
    column.resize(row, kNone);
    column.push_back(text);
  };
  if (known[kCompileContext] || known[kUserMetadata] || known[kInternalMetadata]) {
    std::string extra;
    for (Key k : {kCompileContext, kUserMetadata, kInternalMetadata})
      if (const Value* v = known[k]; v && v->tag == Tag::text && texts_[v->index] != "N/A" && !texts_[v->index].empty())
        extra += (extra.empty() ? "" : "; ") + std::string(texts_[v->index]);
    if (!extra.empty()) tell(e.extra, texts_.own(extra));
  }
  if (const Value* category = known[kCategory]; category && category->tag == Tag::text)
    tell(e.category, category->index);
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
  if (item.tag == Tag::gone) return true;
  if (item.tag != Tag::dict) return false;
  Container* d = container(item);
  if (!d) return true;  // gone already: it is a row elsewhere
  Rows::Of of;
  if (field(*d, kAction))
    of = Rows::Of::events;
  else if (field(*d, kTotalSize))
    of = Rows::Of::segments;
  else if (field(*d, kState))
    of = Rows::Of::blocks;
  else if (field(*d, kStage))
    of = Rows::Of::annotations;
  else
    return false;
  auto end = [&]() -> size_t {
    switch (of) {
      case Rows::Of::events:
        return out_.events.size_();
      case Rows::Of::segments:
        return out_.segments.size();
      case Rows::Of::blocks:
        return out_.blocks.size();
      default:
        return out_.annotations.size();
    }
  };
  if (list.rows == kNone) {
    list.rows = static_cast<uint32_t>(rows_.size());
    rows_.push_back({of, end(), end()});
    if (of == Rows::Of::events) device_lists_.push_back(list.rows);
  }
  switch (of) {
    case Rows::Of::events:
      add_event(*d);
      break;
    case Rows::Of::segments:
      add_segment(*d);
      break;
    case Rows::Of::blocks:
      add_block(*d);
      break;
    default:
      add_annotation(*d);
  }
  // A list of mixed rows: those of another kind are counted in another column.
  if (rows_[list.rows].of == of) rows_[list.rows].end = end();
  release(item);
  return true;
}

}  // namespace tenon::snapshot
