#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracing/snapshot/allocator_state.h"
#include "tracing/snapshot/regions.h"
#include "tracing/snapshot/stacked_usage.h"
#include "views/shared/axis.h"
#include "views/shared/document.h"
#include "views/shared/document_state.h"
#include "views/shared/table.h"

namespace tenon::views {

/// What is asked of a snapshot to be drawn, and what was worked out of it.
struct SnapshotHistory {
  struct Asked {
    int document = 0;
    size_t trace = 0;
    snapshot::UsageBy by = snapshot::UsageBy::place;
    std::string pinned;  ///< a group that has a band of its own
    bool operator==(const Asked&) const = default;
  };
  Asked asked;
  std::shared_ptr<const snapshot::Snapshot> snapshot;
  std::shared_ptr<const snapshot::Timeline> timeline;
  snapshot::StackedUsage usage;
  bool timed = false;                          ///< every event has a time, and none lies before the one before it
  std::vector<snapshot::Region> regions = {};  ///< that the program marked
};
/// Takes time with the number of events. Throws Error "cancelled" where `progress` returned false.
std::shared_ptr<const SnapshotHistory> read_history(
    const Document& document, const SnapshotHistory::Asked& asked,
    const std::function<bool(uint64_t done, uint64_t total)>& progress = {});

/// The memory of a device over a recording, stacked by who allocated it, with what lay where at a chosen moment: the
/// memory view's picture of a snapshot.
class SnapshotPlot {
 public:
  enum HitKind { none, plot = 1, block, region = 4, bookmark };  // 3 is the legend of a step

  /// Where the cursor stood and what was seen of it stays while the recording is the same, or begins with what was
  /// shown of it. Null: nothing is shown.
  void set_history(std::shared_ptr<const SnapshotHistory> history);
  const SnapshotHistory* history() const { return history_.get(); }
  const std::shared_ptr<const SnapshotHistory>& shared_history() const { return history_; }
  /// What lay where after the cursor's event; null: it is being worked out, or not known.
  void set_map(std::shared_ptr<const snapshot::AllocatorState> map);
  bool map() const { return map_ != nullptr; }
  void set_selection(const Selection& s);

  /// How a document is seen, or was last; nothing where it never was. And the way back to it.
  struct Sight {
    size_t trace = 0;
    snapshot::UsageBy by = snapshot::UsageBy::place;
    bool over_time = false, whole = true;
    double lo = 0, hi = 0;  ///< of the axis, where it is not `whole`
    size_t cursor = 0;
    bool usual = false;  ///< nobody changed anything of it
  };
  std::optional<Sight> sight(int document) const;
  void set_sight(int document, const Sight& sight) { sights_[document] = sight; }
  /// Where the cursor will stand in a document's device: where it was left, or at the peak.
  size_t begins_at(int document, size_t trace, const snapshot::Timeline& timeline) const;

  /// Moments of the document that is shown: events, counted through all its devices.
  const std::vector<Bookmark>& bookmarks() const { return bookmarks_; }
  void set_bookmarks(std::vector<Bookmark> bookmarks) { bookmarks_ = std::move(bookmarks); }
  /// That of the cursor.
  Bookmark bookmark_here() const;

  /// The event that the cursor stands on: what is told is what was after it.
  size_t cursor() const { return cursor_; }
  void set_cursor(size_t event);
  size_t events() const { return history_ ? history_->timeline->events() : 0; }
  bool over_time() const { return over_time_; }
  void set_over_time(bool on);
  Axis& axis() { return axis_; }
  /// Bytes alive at the cursor, and how many blocks.
  int64_t bytes() const { return bytes_; }
  size_t blocks_alive() const { return alive_.size(); }

  /// What is alive at the cursor, the largest first; no more than so many rows.
  static constexpr size_t kMostRows = 2000;
  Table blocks() const;
  /// The bands: at the cursor, and at the peak.
  Table groups() const;
  Ink ink_of_band(size_t band) const;
  /// "after event 1,204 (3.2 s)"
  std::string moment_text(size_t event) const;
  std::string summary() const;

  void draw(Scene& scene);
  bool pointer(const PointerEvent& e, const Scene& last);
  bool wheel(const WheelEvent& e) { return history_ && axis_.wheel(e); }
  bool key(const KeyEvent& e);

  std::function<void(const Selection&)> on_select;
  std::function<void()> on_cursor;  ///< the cursor moved

 private:
  using Column = snapshot::StackedUsage::Column;
  struct Seen {  ///< for which the columns were made
    double lo = 0, hi = 0;
    float w = 0;
    const SnapshotHistory* history = nullptr;
    bool operator==(const Seen&) const = default;
  };
  double place_of(size_t event) const;  ///< on the axis
  size_t first_at(double place) const;  ///< the first event that lies there or behind it
  size_t event_at(float x) const;       ///< whose state is seen at a pixel
  void fit_axis();
  Sight sight_now() const;
  const Sight* left_of(int document, size_t trace) const;  ///< null: it was not seen
  /// The first event of the shown device, counted through all of them.
  size_t first_event() const { return history_->snapshot->traces[history_->asked.trace].begin; }
  /// Of the same recording, but of more of it.
  bool goes_on_with(const SnapshotHistory& next) const;
  void make_columns();
  const Column* column_at(float x) const;
  int band_at(float x, float y) const;  ///< -1: none
  void look();                          ///< what is alive at the cursor
  bool next_band(int direction);
  void choose_band(int band);
  std::string element_text(uint32_t element) const;

  void draw_axes(Scene& scene, Box plot) const;
  void draw_stack(Scene& scene, Box plot) const;
  void draw_chosen(Scene& scene, Box plot, Box lane) const;
  void draw_hover(Scene& scene, Box plot) const;
  void draw_map(Scene& scene, Box row) const;
  void draw_regions(Scene& scene, Box rows) const;
  void draw_bookmarks(Scene& scene, Box header, float bottom) const;
  size_t region_rows() const;
  /// The cursor goes to where most is alive in it; `fill`: the picture shows it alone.
  void go_to_region(size_t which, bool fill);

  std::shared_ptr<const SnapshotHistory> history_;
  std::shared_ptr<const snapshot::AllocatorState> map_;
  std::vector<Ink> inks_;  // by band
  Axis axis_;
  bool over_time_ = false;
  size_t cursor_ = 0;
  int64_t bytes_ = 0;
  std::vector<uint32_t> alive_;  // at the cursor, by number
  std::unordered_map<uint64_t, uint32_t> at_address_;
  std::vector<int64_t> by_band_;
  std::vector<Column> columns_;  // by pixel
  Seen seen_;
  Box plot_;
  double top_ = 1;
  Selection selection_;
  std::map<int, Sight> sights_;  // by document, of those that are not shown
  std::vector<Bookmark> bookmarks_;
  Point hover_{-1, -1};
  bool dragging_ = false, panning_ = false;
  AxisPull pull_;
};

}  // namespace tenon::views
