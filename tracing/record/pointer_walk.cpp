#include "tracing/record/pointer_walk.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tenon::tracing {

namespace {
constexpr uint64_t kAtOnce = 1 << 20;  // bytes that are read
// Who has a block has the address of its beginning; one of a place within it more often stands there by chance.
constexpr int kWithin = 2;
constexpr uint64_t kLeastAddress = 4096;  // nothing stands below, nor above what so many bits tell
constexpr int kAddressBits = 47;
}  // namespace

PointerWalk::PointerWalk(const MemoryImage& image, const MemoryImage& before, std::vector<Root> roots, const Ends& ends,
                         Parts parts)
    : image_(image), before_(before), roots_(std::move(roots)), skipped_(ends.skipped), parts_(std::move(parts)) {
  for (const uint64_t t : ends.targets) targets_.emplace(t, Stop{});
  for (size_t i = 0; i < roots_.size(); ++i) {
    Stop s;
    s.block = roots_[i].span;
    s.root = static_cast<int>(i);
    s.distance = roots_[i].distance;
    stops_.push_back(s);
    come_to(static_cast<int>(i));
    if (image_.block_of(s.block.begin).begin == s.block.begin) by_block_.emplace(s.block.begin, static_cast<int>(i));
  }
  // What is found behind a stop is as far away or farther, so a list may grow while it is worked off.
  for (size_t d = 0; d < ahead_.size(); ++d)
    for (size_t i = 0; i < ahead_[d].size(); ++i) {
      Stop& s = stops_[static_cast<size_t>(ahead_[d][i])];
      if (!std::exchange(s.done, true) || std::exchange(s.again, false)) look_into(ahead_[d][i]);
    }
}

void PointerWalk::come_to(int stop) {
  const auto d = static_cast<size_t>(stops_[static_cast<size_t>(stop)].distance);
  if (ahead_.size() <= d) ahead_.resize(d + 1);
  ahead_[d].push_back(stop);
}

void PointerWalk::look_into(int stop) {
  const Stop here = stops_[static_cast<size_t>(stop)];
  if (here.from < 0) return look_over(stop, {here.block, 0, 1});
  const HeapBlock block(image_, here.block);
  if (block.is_tensor_memory()) return;
  const std::vector<Part> parts = parts_(here, block);
  if (parts.empty()) look_over(stop, {here.block, 0, 1});
  for (const Part& p : parts) look_over(stop, p);
}

void PointerWalk::look_over(int stop, const Part& part) {
  for (uint64_t at = (part.span.begin + 7) & ~uint64_t{7}; at < part.span.end; at += kAtOnce) {
    const std::vector<uint64_t> words = image_.words({at, std::min(part.span.end, at + kAtOnce)});
    for (size_t i = 0; i < words.size(); ++i) look_at(at + 8 * i, words[i], stop, part);
  }
}

/// Whether a word is older than what it leads to: it stood there when no block was at its value, or another tensor had
/// the header. In a block that was taken since then nothing is older (CleanMemory), whatever its place had before: a
/// step that is computed again may well put the same addresses there.
bool PointerWalk::is_left_over(uint64_t slot, uint64_t value, const HeapBlock* header) const {
  if (const MemorySpan in = image_.block_of(slot); in.bytes() > 0 && before_.block_of(slot).begin != in.begin)
    return false;
  const TensorImpl* t = header ? header->tensor() : nullptr;
  const bool is_new = t && targets_.contains(address_of(t->storage.get()));
  if (!is_new && before_.block_of(value).bytes() > 0) return false;
  const std::vector<uint64_t> then = before_.words({slot, slot + 8});
  return !then.empty() && then[0] == value;
}

void PointerWalk::look_at(uint64_t slot, uint64_t value, int stop, const Part& part) {
  if (value < kLeastAddress || value >> kAddressBits) return;
  const int root = stops_[static_cast<size_t>(stop)].root;
  int distance = stops_[static_cast<size_t>(stop)].distance + part.step;
  Stop here{{}, slot, value, stop, root, part.leads_to, distance};
  if (const auto t = targets_.find(value); t != targets_.end()) {
    here.block = {value, value};
    if (t->second.from < 0 && part.leads_to == kTarget) t->second = here;
    return;
  }
  const MemorySpan to = here.block = image_.block_of(value);
  if (to.begin == to.end) return;
  if (value != to.begin) here.distance = distance += kWithin;
  if (std::any_of(skipped_.begin(), skipped_.end(),
                  [&](const MemorySpan& s) { return s.holds(slot) || to.holds(s.begin); }))
    return;
  const bool may_be_header =
      value == to.begin && to.bytes() >= tensor_header_bytes() && to.bytes() <= tensor_header_bytes() + kLeftOverBytes;
  const std::optional<HeapBlock> header = may_be_header ? std::optional<HeapBlock>({image_, to}) : std::nullopt;
  if (is_left_over(slot, value, header ? &*header : nullptr)) return;
  if (header && header->tensor()) words_of_[value].push_back(here);
  const auto [at, fresh] = by_block_.emplace(to.begin, static_cast<int>(stops_.size()));
  if (fresh) {
    stops_.push_back(here);
    come_to(at->second);
  }
  Stop& known = stops_[static_cast<size_t>(at->second)];
  if (fresh) return;
  if (known.done && part.leads_to > 0 && known.kind == 0 && known.from >= 0) {
    // A word led there by chance; now it is known what it is, and it is looked into anew. The way to it stays: this one
    // may come through it.
    known.kind = part.leads_to;
    known.distance = distance;
    known.again = true;
    come_to(at->second);
  } else if (!known.done && known.distance > distance) {
    known = here;
    come_to(at->second);
  }
}

std::vector<PointerWalk::Stop> PointerWalk::way_from_root(Stop last) const {
  std::vector<Stop> way{last};
  while (way.back().from >= 0) way.push_back(stops_[static_cast<size_t>(way.back().from)]);
  std::reverse(way.begin(), way.end());
  return way;
}

std::vector<PointerWalk::Stop> PointerWalk::way_to(uint64_t target) const {
  const auto at = targets_.find(target);
  return at == targets_.end() || at->second.from < 0 ? std::vector<Stop>() : way_from_root(at->second);
}

std::vector<std::vector<PointerWalk::Stop>> PointerWalk::ways_to_tensor(uint64_t header) const {
  std::vector<std::vector<Stop>> all;
  if (const auto at = words_of_.find(header); at != words_of_.end())
    for (const Stop& s : at->second) all.push_back(way_from_root(s));
  return all;
}

}  // namespace tenon::tracing
