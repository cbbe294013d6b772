#pragma once
#include <string>
#include <vector>

#include "tracing/record/step_record.h"
#include "views/memory/snapshot_plot.h"
#include "views/shared/axis.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// Live bytes of a step over time, stacked by category, with what is alive at a chosen moment; or those of a snapshot
/// that is open, see SnapshotPlot.
class MemoryModel : public StepModel {
 public:
  enum HitKind { none, plot = 1, block, legend };

  /// One block from when it was taken to when it was given back.
  struct Block {
    int64_t id = 0;
    uint64_t address = 0;
    int64_t bytes = 0;
    int64_t from = 0, to = 0;  ///< to: end of the step where it outlives it
    bool outlives = false;
    Origin origin;
  };
  struct Live {
    double total = 0;
    double by[kCategories] = {};
  };

  MemoryModel();
  /// The snapshot that is shown; null: the step.
  SnapshotPlot* snapshot() { return shows_snapshot_ ? &snapshot_ : nullptr; }
  const SnapshotPlot* snapshot() const { return shows_snapshot_ ? &snapshot_ : nullptr; }
  /// The picture of snapshots, also while none is shown.
  SnapshotPlot& snapshots() { return snapshot_; }
  /// Of the snapshot that is shown, once it is worked out.
  void set_history(std::shared_ptr<const SnapshotHistory> history);
  /// Of the snapshot that is shown: see SnapshotPlot.
  void set_bookmarks(std::vector<Bookmark> bookmarks);
  /// After the event at the cursor.
  void set_map(std::shared_ptr<const snapshot::AllocatorState> map);

  void set_step(const Links& links) override;
  void set_document(const Document* document) override;
  void set_beginning(const Document* document) override;
  bool shows_beginning() const override { return begins_; }
  void set_selection(const Selection& s) override;
  void set_cursor(double ns);
  double cursor() const { return cursor_; }
  bool empty() const { return !links_; }

  Live live_at(double ns) const;
  int64_t peak_bytes() const { return static_cast<int64_t>(peak_.total); }
  double peak_time() const { return peak_time_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const Axis& axis() const { return axis_; }

  /// What is alive at the cursor, largest first.
  Table live_table() const;
  /// By category: at the cursor, at the peak.
  Table categories() const;

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;
  /// Called when the cursor moved: tables follow.
  std::function<void()> on_cursor;

 protected:
  void draw(Scene& scene) override;

 private:
  struct State {
    int64_t time;
    Live live;
  };
  void draw_stack(Scene& scene, Box plot, double top);
  void draw_axes(Scene& scene, Box plot, double top);
  void draw_legend(Scene& scene, Box row);
  void draw_blocks(Scene& scene, Box row);
  void draw_selected(Scene& scene, Box plot, Box lane);
  std::string block_text(const Block& b) const;
  size_t state_at(double ns) const;
  bool select_at_cursor();
  bool next_block(int direction);

  SnapshotPlot snapshot_;
  bool shows_snapshot_ = false;
  bool begins_ = false;  ///< it is the beginning of one

  Links links_;
  Axis axis_;
  std::vector<State> states_;  // after each change, by time
  std::vector<Block> blocks_;  // by start
  Live peak_, most_;           ///< `most_`: of each category by itself
  double peak_time_ = 0, cursor_ = 0;
  Selection selection_;
  std::vector<int64_t> chosen_;  // block ids
  bool dragging_ = false, panning_ = false;
  AxisPull pull_;
};

}  // namespace tenon::views
