#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tracing/trace/counter_curve.h"
#include "tracing/trace/trace_store.h"

namespace tenon::views {

/// What stands below each other in a timeline: processes, under each its threads and streams with a lane a depth, and
/// counters. A process folds to its heading, a thread to its outermost calls. A row that is pinned stands above all
/// that are not, folded process or not.
class LaneLayout {
 public:
  struct Band {
    enum class Kind : uint8_t { heading, row, counter };
    Kind kind = Kind::row;
    std::string title, tip;
    std::string full_title;          ///< where no heading stands above it
    uint32_t of = 0;                 ///< which row of the store, or which counter
    uint32_t first = 0, depths = 0;  ///< lanes of the store
    int under = -1;                  ///< the heading that hides it; -1: none does
    bool folded = false, pinned = false;
    bool pins() const { return kind != Kind::heading; }
    bool folds() const { return kind == Kind::heading || depths > 1; }
    uint32_t shown_depths() const { return folded ? 1 : std::max(1u, depths); }
  };
  struct Placed {
    size_t band;
    float y, h;
  };
  static constexpr float kGap = 8;  ///< below each band

  /// Rows that follow each other and fold together: a rank.
  struct Group {
    std::string title, tip;
    uint32_t first_row = 0;
  };
  /// Of a recorded step, threads without a name of a process; of a file, only rows that hold events. With `groups` each
  /// of these has a heading, else each process has.
  void set(const traces::Trace* trace, const std::vector<traces::CounterCurve>* curves, bool of_step,
           const std::vector<Group>& groups = {});
  const std::vector<Band>& bands() const { return bands_; }
  size_t rows() const { return rows_; }  ///< threads and streams
  void toggle(size_t band);
  /// The band that shows a lane, a lane of a folded thread too; -1: it is hidden with its process.
  int band_of(uint32_t lane) const;
  /// Unfolds what hides a lane.
  void reveal(uint32_t lane);
  /// Everything that can be folded is, or nothing.
  void fold_all(bool folded);
  bool any_unfolded() const;
  /// What is pinned, from `top` down, as far as it fits into `room`; rows are `row` high a depth.
  std::vector<Placed> place_pinned(float top, float row, float room) const;
  /// What is not hidden, from `top` down, without the first `stuck` of those that are pinned.
  std::vector<Placed> place(float top, float row, size_t stuck = 0) const;
  float height(float row, size_t stuck = 0) const;

  void toggle_pin(size_t band);
  void unpin_all();
  bool any_pinned() const;

  /// Which bands are folded, and which pinned, to come back to.
  std::vector<bool> state() const;
  void restore(const std::vector<bool>& state);
  std::vector<bool> pins() const;
  void restore_pins(const std::vector<bool>& pins);

 private:
  bool hidden(const Band& b) const { return !b.pinned && b.under >= 0 && bands_[static_cast<size_t>(b.under)].folded; }
  std::vector<Band> bands_;
  size_t rows_ = 0;
};

}  // namespace tenon::views
