#include "engine/graph/recompute.h"

#include <algorithm>
#include <vector>

namespace tenon {
namespace {

constexpr int kUntouched = -1;
constexpr size_t kMostAtOnce = 2;        // kernels that make one value again: a norm and what follows it
constexpr int kMostPasses = 16;          // the peak moves
constexpr int64_t kSmallestShare = 256;  // of the peak, as a fraction: a value that is worth a kernel

bool is_cheap_kernel(const StepTrace::Step& s) {
  return !s.again && s.op->writes == 0 && (s.op->info.kind == OpKind::pointwise || s.op->info.kind == OpKind::norm);
}

/// A block of memory over the steps.
struct BlockLife {
  int first = kUntouched, last = kUntouched;  ///< steps that touch it
  int writer = kUntouched;                    ///< the one that writes it
  int written = kUntouched;                   ///< the last that does
  int writers = 0;
  bool kept = false;  ///< it is a result
};

class Recomputer {
 public:
  explicit Recomputer(StepTrace& trace) : trace_(trace), second_(trace.blocks.size(), kUntouched) { look(); }
  /// Whether something is computed again for the sake of the peak.
  bool lower_peak();
  int64_t again() const { return again_; }

 private:
  void look();
  int find_peak() const;
  const BlockLife& life(int block) const { return lives_[static_cast<size_t>(block)]; }
  int64_t bytes(int block) const { return static_cast<int64_t>(trace_.blocks[static_cast<size_t>(block)].bytes); }
  int reader_behind(int block, int at) const;
  int held_in(const StepTrace::Window& w, int made, int at) const;
  bool gather(int block, int at, std::vector<int>& steps) const;
  bool make_again(int block, int peak);
  int64_t live_at(int at) const;

  StepTrace& trace_;
  std::vector<BlockLife> lives_;
  std::vector<int> second_;  ///< by block: the one that holds its value when it was made again
  int64_t again_ = 0;
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
      if (l.writer == kUntouched) l.writer = i;
      l.writers += l.written != i;
      l.written = i;
    };
    for (size_t k = 0; k < s.in.size(); ++k) touch(s.in[k], s.op->writes >> k & 1u);
    for (const StepTrace::Window& w : s.out) touch(w, true);
  }
  for (const StepTrace::Window& w : trace_.results)
    if (w.block >= 0) lives_[static_cast<size_t>(w.block)].kept = true;
}

int64_t Recomputer::live_at(int at) const {
  int64_t live = 0;
  for (size_t b = 0; b < lives_.size(); ++b) {
    const BlockLife& l = lives_[b];
    if (trace_.blocks[b].origin == StepTrace::Origin::made && !l.kept && l.first != kUntouched && l.first <= at &&
        at <= l.last)
      live += static_cast<int64_t>(trace_.blocks[b].bytes);
  }
  return live;
}

/// The step beside which most bytes are alive.
int Recomputer::find_peak() const {
  std::vector<int64_t> change(trace_.steps.size() + 1);
  for (size_t b = 0; b < lives_.size(); ++b) {
    const BlockLife& l = lives_[b];
    if (trace_.blocks[b].origin != StepTrace::Origin::made || l.kept || l.first == kUntouched) continue;
    change[static_cast<size_t>(l.first)] += static_cast<int64_t>(trace_.blocks[b].bytes);
    change[static_cast<size_t>(l.last) + 1] -= static_cast<int64_t>(trace_.blocks[b].bytes);
  }
  int peak = kUntouched;
  int64_t live = 0, most = 0;
  for (size_t i = 0; i < trace_.steps.size(); ++i) {
    live += change[i];
    if (live > most) most = live, peak = static_cast<int>(i);
  }
  return peak;
}

/// The first step after this one that reads the block.
int Recomputer::reader_behind(int block, int at) const {
  for (size_t i = static_cast<size_t>(at) + 1; i < trace_.steps.size(); ++i)
    for (const StepTrace::Window& w : trace_.steps[i].in)
      if (w.block == block) return static_cast<int>(i);
  return kUntouched;
}

/// The block that before step `at` still holds what step `made` read in the window, without being kept longer for that.
int Recomputer::held_in(const StepTrace::Window& w, int made, int at) const {
  const BlockLife& l = life(w.block);
  const bool made_in_step = trace_.blocks[static_cast<size_t>(w.block)].origin == StepTrace::Origin::made;
  if (l.written <= made && (!made_in_step || l.kept || l.last >= at)) return w.block;
  const int second = second_[static_cast<size_t>(w.block)];
  return second != kUntouched && life(second).writer < at && life(second).last >= at ? second : kUntouched;
}

/// The steps that make the block before step `at`, in their order; false: they would be too many, or are not cheap.
bool Recomputer::gather(int block, int at, std::vector<int>& steps) const {
  const BlockLife& l = life(block);
  if (l.kept || l.writers != 1 || trace_.blocks[static_cast<size_t>(block)].origin != StepTrace::Origin::made)
    return false;
  const StepTrace::Step& s = trace_.steps[static_cast<size_t>(l.writer)];
  if (!is_cheap_kernel(s) || std::find(steps.begin(), steps.end(), l.writer) != steps.end()) return false;
  const StepTrace::Window& out = s.out[0];
  if (out.block != block || out.layout.offset != 0 ||
      out.layout.size.product() * static_cast<int64_t>(itemsize(out.dtype)) != bytes(block))
    return false;
  for (const StepTrace::Window& w : s.in)
    if (w.block >= 0 && held_in(w, l.writer, at) == kUntouched &&
        (steps.size() + 1 >= kMostAtOnce || !gather(w.block, at, steps)))
      return false;
  steps.push_back(l.writer);
  return steps.size() <= kMostAtOnce;
}

bool Recomputer::make_again(int block, int peak) {
  const int at = reader_behind(block, peak);
  std::vector<int> steps;
  if (at == kUntouched || !gather(block, at, steps)) return false;
  std::vector<int> fresh(trace_.blocks.size(), kUntouched);  // the blocks of the second time
  std::vector<StepTrace::Step> more;
  for (const int i : steps) {
    StepTrace::Step s = trace_.steps[static_cast<size_t>(i)];
    for (StepTrace::Window& w : s.in) {
      if (w.block < 0) continue;
      const int now = fresh[static_cast<size_t>(w.block)];
      w.block = now != kUntouched ? now : held_in(w, i, at);
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
  fresh.resize(trace_.blocks.size(), kUntouched);
  second_.resize(trace_.blocks.size(), kUntouched);
  for (size_t b = 0; b < fresh.size(); ++b)
    if (fresh[b] != kUntouched) second_[b] = fresh[b];
  again_ += static_cast<int64_t>(more.size());
  look();
  return true;
}

bool Recomputer::lower_peak() {
  const int peak = find_peak();
  if (peak == kUntouched) return false;
  const int64_t before = live_at(peak);
  std::vector<int> across;  // blocks that are only waiting while the peak goes by
  for (size_t b = 0; b < lives_.size(); ++b) {
    const BlockLife& l = lives_[b];
    if (l.first == kUntouched || l.first >= peak || l.last <= peak ||
        bytes(static_cast<int>(b)) * kSmallestShare < before)
      continue;
    const StepTrace::Step& s = trace_.steps[static_cast<size_t>(peak)];
    const auto is = [&](const StepTrace::Window& w) { return w.block == static_cast<int>(b); };
    if (std::none_of(s.in.begin(), s.in.end(), is) && std::none_of(s.out.begin(), s.out.end(), is))
      across.push_back(static_cast<int>(b));
  }
  std::stable_sort(across.begin(), across.end(), [&](int a, int b) { return bytes(a) > bytes(b); });
  bool any = false;
  for (const int b : across) any |= make_again(b, peak);
  return any;
}

}  // namespace

int64_t compute_again(StepTrace& trace) {
  Recomputer r(trace);
  for (int pass = 0; pass < kMostPasses && r.lower_peak();) ++pass;
  return r.again();
}

}  // namespace tenon
