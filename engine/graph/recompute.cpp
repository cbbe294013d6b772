#include "engine/graph/recompute.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tenon {
namespace {

constexpr int kUntouched = -1;
constexpr size_t kMostAtOnce = 2;           // kernels that make one value again: a norm and what follows it
constexpr int64_t kValuesWithinPeak = 256;  // what takes a smaller part of the peak is not worth a kernel

bool is_cheap_kernel(const StepTrace::Step& s) {
  return !s.again && s.op->writes == 0 && (s.op->info.kind == OpKind::pointwise || s.op->info.kind == OpKind::norm);
}

/// The steps that touch a block of memory.
struct BlockLife {
  int first = kUntouched, last = kUntouched;
  int first_write = kUntouched, last_write = kUntouched;
  bool is_result = false;
  bool written_once() const { return first_write != kUntouched && first_write == last_write; }
};

struct Peak {
  int step = kUntouched;
  int64_t bytes = 0;
};

class Recomputer {
 public:
  explicit Recomputer(StepTrace& trace) : trace_(trace), second_(trace.blocks.size(), kUntouched) { look(); }
  void lower_peak();

 private:
  void look();
  Peak find_peak() const;
  const BlockLife& life(int block) const { return lives_[static_cast<size_t>(block)]; }
  int64_t bytes(int block) const { return static_cast<int64_t>(trace_.blocks[static_cast<size_t>(block)].bytes); }
  bool is_made(int block) const { return trace_.blocks[static_cast<size_t>(block)].origin == StepTrace::Origin::made; }
  std::vector<int> readers_behind(int at) const;
  int held_in(const StepTrace::Window& w, int made, int at) const;
  bool gather(int block, int at, std::vector<int>& steps) const;
  bool make_again(int block, int at);
  bool make_one_again(const Peak& peak);

  StepTrace& trace_;
  std::vector<BlockLife> lives_;
  std::vector<int> second_;  ///< by block: the one that holds its value when it was made again
};

void Recomputer::look() {
  lives_.assign(trace_.blocks.size(), {});
  for (int i = 0; i < static_cast<int>(trace_.steps.size()); ++i) {
    const StepTrace::Step& s = trace_.steps[static_cast<size_t>(i)];
    const auto touch = [&](const StepTrace::Window& w, bool writes) {
      if (w.block < 0) return;
      BlockLife& l = lives_[static_cast<size_t>(w.block)];
      if (l.first == kUntouched) l.first = i;
      l.last = i;
      if (!writes) return;
      if (l.first_write == kUntouched) l.first_write = i;
      l.last_write = i;
    };
    for (size_t k = 0; k < s.in.size(); ++k) touch(s.in[k], s.op->writes >> k & 1u);
    for (const StepTrace::Window& w : s.out) touch(w, true);
  }
  for (const StepTrace::Window& w : trace_.results)
    if (w.block >= 0) lives_[static_cast<size_t>(w.block)].is_result = true;
}

/// The first step beside which most bytes of made values are alive.
Peak Recomputer::find_peak() const {
  std::vector<int64_t> change(trace_.steps.size() + 1);
  for (size_t b = 0; b < lives_.size(); ++b) {
    const BlockLife& l = lives_[b];
    if (!is_made(static_cast<int>(b)) || l.is_result || l.first == kUntouched) continue;
    change[static_cast<size_t>(l.first)] += bytes(static_cast<int>(b));
    change[static_cast<size_t>(l.last) + 1] -= bytes(static_cast<int>(b));
  }
  Peak peak;
  int64_t live = 0;
  for (size_t i = 0; i < trace_.steps.size(); ++i) {
    live += change[i];
    if (live > peak.bytes) peak = {static_cast<int>(i), live};
  }
  return peak;
}

/// Of each block the first step after this one that reads it.
std::vector<int> Recomputer::readers_behind(int at) const {
  std::vector<int> readers(trace_.blocks.size(), kUntouched);
  for (int i = static_cast<int>(trace_.steps.size()) - 1; i > at; --i)
    for (const StepTrace::Window& w : trace_.steps[static_cast<size_t>(i)].in)
      if (w.block >= 0) readers[static_cast<size_t>(w.block)] = i;
  return readers;
}

/// The block that before step `at` still holds what step `made` read in the window, without being kept longer for that.
int Recomputer::held_in(const StepTrace::Window& w, int made, int at) const {
  const BlockLife& l = life(w.block);
  if (l.last_write <= made && (!is_made(w.block) || l.is_result || l.last >= at)) return w.block;
  const int second = second_[static_cast<size_t>(w.block)];
  return second != kUntouched && life(second).last_write < at && life(second).last >= at ? second : kUntouched;
}

/// The steps that make the block before step `at`, in their order; false: they would be too many, or are not cheap.
bool Recomputer::gather(int block, int at, std::vector<int>& steps) const {
  const BlockLife& l = life(block);
  if (l.is_result || !l.written_once() || !is_made(block)) return false;
  const StepTrace::Step& s = trace_.steps[static_cast<size_t>(l.first_write)];
  if (!is_cheap_kernel(s) || std::find(steps.begin(), steps.end(), l.first_write) != steps.end()) return false;
  const StepTrace::Window& out = s.out[0];
  if (out.block != block || out.layout.offset != 0 ||
      out.layout.size.product() * static_cast<int64_t>(itemsize(out.dtype)) != bytes(block))
    return false;
  for (const StepTrace::Window& w : s.out)
    if (w.block >= 0 && (!is_made(w.block) || !life(w.block).written_once())) return false;
  for (const StepTrace::Window& w : s.in)
    if (w.block >= 0 && held_in(w, l.first_write, at) == kUntouched &&
        (steps.size() + 1 >= kMostAtOnce || !gather(w.block, at, steps)))
      return false;
  steps.push_back(l.first_write);
  return steps.size() <= kMostAtOnce;
}

/// Makes the block's value again before step `at`, for it and for all behind it.
bool Recomputer::make_again(int block, int at) {
  std::vector<int> steps;
  if (!gather(block, at, steps)) return false;
  std::vector<int> fresh(trace_.blocks.size(), kUntouched);  // the blocks of the second time
  std::vector<StepTrace::Step> more;
  for (const int i : steps) {
    StepTrace::Step s = trace_.steps[static_cast<size_t>(i)];
    for (StepTrace::Window& w : s.in) {
      if (w.block < 0) continue;
      const int held = held_in(w, i, at);
      w.block = held != kUntouched ? held : fresh[static_cast<size_t>(w.block)];
    }
    for (StepTrace::Window& w : s.out) {
      if (w.block < 0) continue;
      fresh[static_cast<size_t>(w.block)] = static_cast<int>(trace_.blocks.size());
      trace_.blocks.push_back({StepTrace::Origin::made, -1, static_cast<size_t>(bytes(w.block))});
      w.block = static_cast<int>(trace_.blocks.size()) - 1;
    }
    s.again = true;
    s.origin.phase = trace_.steps[static_cast<size_t>(at)].origin.phase;
    more.push_back(std::move(s));
  }
  for (size_t i = static_cast<size_t>(at); i < trace_.steps.size(); ++i)
    for (StepTrace::Window& w : trace_.steps[i].in)
      if (w.block == block) w.block = fresh[static_cast<size_t>(block)];
  trace_.steps.insert(trace_.steps.begin() + at, more.begin(), more.end());
  second_.resize(trace_.blocks.size(), kUntouched);
  for (size_t b = 0; b < fresh.size(); ++b)
    if (fresh[b] != kUntouched) second_[b] = fresh[b];
  look();
  return true;
}

/// Of the values that only wait while the peak goes by, the one that is needed first behind it: what is made of others
/// is made again before them, so that each kernel runs once more at most.
bool Recomputer::make_one_again(const Peak& peak) {
  const std::vector<int> readers = readers_behind(peak.step);
  std::vector<std::pair<int, int>> waiting;  // its next reader, block
  for (int b = 0; b < static_cast<int>(lives_.size()); ++b) {
    const BlockLife& l = life(b);
    if (l.first == kUntouched || l.first >= peak.step || l.last <= peak.step ||
        bytes(b) * kValuesWithinPeak < peak.bytes)
      continue;
    const StepTrace::Step& s = trace_.steps[static_cast<size_t>(peak.step)];
    const auto is = [&](const StepTrace::Window& w) { return w.block == b; };
    if (std::any_of(s.in.begin(), s.in.end(), is) || std::any_of(s.out.begin(), s.out.end(), is)) continue;
    if (const int reader = readers[static_cast<size_t>(b)]; reader != kUntouched) waiting.emplace_back(reader, b);
  }
  std::sort(waiting.begin(), waiting.end());
  return std::any_of(waiting.begin(), waiting.end(), [&](const auto& w) { return make_again(w.second, w.first); });
}

/// Value by value for as long as there is one that only waits beside the peak; then back to where that was lowest.
void Recomputer::lower_peak() {
  Peak peak = find_peak();
  int64_t least = peak.bytes;
  std::vector<StepTrace::Step> best = trace_.steps;
  size_t blocks = trace_.blocks.size();
  while (peak.step != kUntouched && make_one_again(peak)) {
    peak = find_peak();
    if (peak.bytes >= least) continue;
    least = peak.bytes;
    best = trace_.steps;
    blocks = trace_.blocks.size();
  }
  trace_.steps = std::move(best);
  trace_.blocks.resize(blocks);
}

}  // namespace

int64_t compute_again(StepTrace& trace) {
  Recomputer(trace).lower_peak();
  return std::count_if(trace.steps.begin(), trace.steps.end(), [](const StepTrace::Step& s) { return s.again; });
}

}  // namespace tenon
