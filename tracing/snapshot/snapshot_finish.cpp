#include "tracing/snapshot/snapshot_keys.h"
#include "tracing/snapshot/snapshot_reader.h"

// What is left when the file has been read, whole or in part.
namespace tenon::snapshot {

using Tag = Machine::Value::Tag;

void Machine::top_level(const Value& v) {
  Container* d = container(v);
  if (!d || d->tag != Tag::dict) return;
  if (const Value* settings = field(*d, kAllocatorSettings))
    if (Container* s = container(*settings))
      for (size_t i = 0; i + 1 < s->items.size(); i += 2)
        out_.settings.emplace_back(text_of(s->items[i]), text_of(s->items[i + 1]));
  const Value* traces = field(*d, kDeviceTraces);
  Container* devices = traces ? container(*traces) : nullptr;
  for (size_t i = 0; devices && i < devices->items.size(); ++i) {
    Container* list = container(devices->items[i]);
    if (!list || list->rows == kNone || rows_[list->rows].of != Rows::Of::events) continue;
    out_.traces.push_back({static_cast<int64_t>(i), rows_[list->rows].begin, rows_[list->rows].end});
  }
  // What pinned memory of the host did stands in a list of its own.
  if (const Value* host = field(*d, kHostTraces))
    if (Container* list = container(*host); list && list->rows != kNone && rows_[list->rows].of == Rows::Of::events)
      out_.traces.push_back({kHost, rows_[list->rows].begin, rows_[list->rows].end});
}

void Machine::finish(bool complete) {
  if (!complete) {
    // What lies between a mark and the end belongs to the list below the mark.
    out_.truncated = true;
    for (size_t m = stack_.size(); m-- > 1;) {
      if (stack_[m].tag != Tag::mark) continue;
      if (stack_[m - 1].tag == Tag::dict) {
        Container* d = container(stack_[m - 1]);
        if (d) {
          d->items.insert(d->items.end(), stack_.begin() + static_cast<long>(m) + 1, stack_.end());
          if (d->items.size() % 2) d->items.pop_back();
        }
      } else if (container(stack_[m - 1])) {
        for (size_t i = m + 1; i < stack_.size(); ++i)
          if (stack_[i].tag != Tag::mark) add_to_list(stack_[m - 1], stack_[i]);
      }
      stack_.resize(m);
    }
  }
  // JSON has no marks: each open value lies on the one that it belongs to.
  while (!complete && stack_.size() > 1) {
    const Value item = stack_.back();
    stack_.pop_back();
    Container* below = container(stack_.back());
    if (below && below->tag == Tag::list) {
      add_to_list(stack_.back(), item);
    } else if (stack_.back().tag == Tag::text && stack_.size() > 1) {
      if (Container* dict = container(stack_[stack_.size() - 2]); dict && dict->tag == Tag::dict) {
        dict->items.push_back(stack_.back());
        dict->items.push_back(item);
        stack_.pop_back();
      }
    }
  }
  if (!stack_.empty()) top_level(stack_[0]);
  if (out_.traces.empty()) {
    // Cut off before the lists of the devices were put together: they come in the order of the devices.
    for (size_t i = 0; i < device_lists_.size(); ++i) {
      const Rows& r = rows_[device_lists_[i]];
      out_.traces.push_back({static_cast<int64_t>(i), r.begin, r.end});
    }
  }
  for (std::string_view t : texts_.texts()) out_.texts.push_back(t);
  memo_.clear();
  std::vector<Container>().swap(containers_);
}

}  // namespace tenon::snapshot
