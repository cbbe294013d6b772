#include "tracing/record/pointer_walk.h"

#include <algorithm>
#include <utility>

#include "core/pool_block.h"
#include "core/tensor.h"

namespace tenon::tracing {

namespace {
constexpr uint64_t kFewBytes = 64 << 10;  // that are read at once
// Who has a block has the address of its beginning; one of a place within it more often stands there by chance.
constexpr int kWithin = 2;
}  // namespace

PointerWalk::PointerWalk(const MemoryImage& image, std::vector<Root> roots, std::vector<MemorySpan> skipped,
                         const std::vector<uint64_t>& targets, Parts parts, size_t remembered)
    : image_(image),
      roots_(std::move(roots)),
      skipped_(std::move(skipped)),
      parts_(std::move(parts)),
      remembered_(remembered) {
  pool_release_ = reinterpret_cast<uint64_t>(empty({1}).storage()->release);
  for (const uint64_t t : targets) targets_.emplace(t, Stop{});
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
      if (!std::exchange(s.done, true)) look_into(ahead_[d][i]);
    }
}

void PointerWalk::come_to(int stop) {
  const auto d = static_cast<size_t>(stops_[static_cast<size_t>(stop)].distance);
  if (ahead_.size() <= d) ahead_.resize(d + 1);
  ahead_[d].push_back(stop);
}

/// A block of the pool: numbers, not addresses. Its header stands at the block's beginning, or behind the filling that
/// brings a block with pages of its own to its alignment.
bool PointerWalk::is_tensor_memory(uint64_t begin, const std::vector<uint64_t>& head) const {
  for (const size_t skip : {0, 6})
    if (head.size() >= skip + 8 && head[skip + 4] == pool_release_ &&
        head[skip + 1] == begin + 8 * skip + kPoolHeaderBytes)
      return true;
  return false;
}

void PointerWalk::look_into(int stop) {
  const Stop here = stops_[static_cast<size_t>(stop)];
  const bool is_root = here.from < 0;
  constexpr uint64_t kHead = 128;
  const auto head_of = [&] {
    return image_.words({here.block.begin, std::min(here.block.end, here.block.begin + kHead)});
  };
  if (!is_root && here.block.bytes() > kFewBytes && is_tensor_memory(here.block.begin, head_of())) return;
  const std::vector<uint64_t> words = image_.words(here.block);
  if (!is_root && is_tensor_memory(here.block.begin, words)) return;
  const uint64_t first = (here.block.begin + 7) & ~uint64_t{7};
  std::vector<Part> parts;
  if (!is_root) parts = parts_(here, words);
  if (parts.empty()) parts.push_back({here.block, 0, 1});
  for (const Part& p : parts)
    for (size_t i = p.span.begin > first ? (p.span.begin - first) / 8 : 0;
         i < words.size() && first + 8 * i < p.span.end; ++i)
      look_at(first + 8 * i, words[i], stop, p);
}

void PointerWalk::look_at(uint64_t slot, uint64_t value, int stop, const Part& part) {
  if (value < 4096 || value >> 47) return;
  const int root = stops_[static_cast<size_t>(stop)].root;
  int distance = stops_[static_cast<size_t>(stop)].distance + part.step;
  Stop here{{}, slot, value, stop, root, part.leads_to, distance, false};
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
  const auto [at, fresh] = by_block_.emplace(to.begin, static_cast<int>(stops_.size()));
  if (fresh) {
    stops_.push_back(here);
    come_to(at->second);
  }
  Stop& known = stops_[static_cast<size_t>(at->second)];
  if (value == to.begin && to.bytes() >= remembered_ && to.bytes() <= remembered_ + 16)
    words_of_[value].push_back(here);
  if (fresh) return;
  if (known.done && part.leads_to > 0 && known.kind == 0 && known.from >= 0) {
    // A word led there by chance; now it is known what it is, and it is looked at anew.
    known.kind = part.leads_to;
    known.distance = distance;
    known.done = false;
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

std::vector<std::vector<PointerWalk::Stop>> PointerWalk::ways_to_block(uint64_t begin) const {
  std::vector<std::vector<Stop>> all;
  if (const auto at = words_of_.find(begin); at != words_of_.end())
    for (const Stop& s : at->second) all.push_back(way_from_root(s));
  return all;
}

}  // namespace tenon::tracing
