#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tracing/trace/trace_store.h"
#include "views/shared/axis.h"
#include "views/shared/document_state.h"
#include "views/shared/language.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"
#include "views/timeline/lane_layout.h"
#include "views/timeline/lane_names.h"

namespace tenon::tracing {
struct TraceStory;
}

namespace tenon::views {

/// The events of a trace over time: a lane a thread or stream and nesting depth. What is known of a trace beside its
/// events (the ops of a recorded step) is laid over it by who derives from this.
///
/// Note [Lanes of any size]
/// A picture asks each lane that is in sight for summaries, about two a pixel, which the store has ready at every
/// scale: millions of events cost what thousands do. Neighbours that no eye tells apart become one run, so that a lane
/// draws at most a rectangle a pixel column. What is searched for is a sorted list of events; a run asks it for its own
/// stretch.
class LaneModel : public StepModel {
 public:
  enum HitKind { none, op = 1, module, lane, memory, event, fold, piece, gap, overview, bookmark, pin };
  /// What the colour of an event of an opened trace tells.
  enum class ColourBy : uint8_t { kind, name, module };

  /// What the filter leaves stands out.
  void set_filter(const Filter& f) override;
  const Filter& filter() const { return filter_; }
  /// How many events the filter leaves.
  int64_t found() const;
  /// Selects the next (or previous) event that the filter leaves, or, without one, of the name of the selected one.
  virtual void next_match(int direction);
  void fit();
  void fit_selection();

  const traces::Trace* trace() const { return trace_.get(); }
  const Axis& axis() const { return axis_; }
  Axis& axis() { return axis_; }
  /// kNone: none is.
  traces::EventId selected_event() const { return chosen_event_; }
  /// How many of the events lie in sub-pixel runs in the last frame.
  int merged() const { return merged_; }
  /// By name, of what the filter leaves and the marked stretch of time holds: calls, time.
  Table names() const { return names_table(names_asked().sums()); }
  /// The same in two parts: what takes time with the events, for another thread, and the rows.
  LaneNames names_asked() const;
  Table names_table(const std::vector<NameSum>& sums) const;
  /// A stretch of time is marked: from, to, on the axis.
  bool marked(double& from, double& to) const;

  const LaneLayout& layout() const { return layout_; }
  void toggle(size_t band);
  /// A row or a counter of a trace stays at the top while the rest scrolls, or goes back to its place.
  void toggle_pin(size_t band);
  void unpin_all();
  /// The band of the selected event; -1: none is selected. Where its process is folded it has one too.
  int chosen_band() const;
  /// The band that the last frame shows at a height; -1: none.
  int band_at(float y) const;
  void colour_by(ColourBy by);
  ColourBy colour() const { return colour_; }
  /// The critical path and the gaps of the shown trace, or of the rank `of` of it; null: they are not known (yet).
  void set_story(std::shared_ptr<const tracing::TraceStory> story, std::string of = {});
  const std::shared_ptr<const tracing::TraceStory>& story() const { return story_; }
  void show_path(bool shown);
  void show_gaps(bool shown);
  bool shows_path() const { return show_path_; }
  bool shows_gaps() const { return show_gaps_; }
  void set_bookmarks(std::vector<Bookmark> bookmarks);
  const std::vector<Bookmark>& bookmarks() const { return bookmarks_; }
  /// The stretch that a bookmark made now would keep: what is marked, else the selected event's, else the moment in the
  /// middle of what is seen.
  Bookmark bookmark_here() const;
  /// What the selected event launched, what launched it, and its forward or backward half.
  const std::vector<traces::Link>& linked() const { return linked_; }

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;
  /// What the picture of an event says beside its name and time.
  struct Look {
    Ink ink = Ink::secondary;
    bool bad = false;
    Hit hit;
  };
  virtual Look look(traces::EventId e) const;
  virtual std::string tip(traces::EventId e) const;
  /// "events", "ops": what a run of several is called, to be given to tr().
  virtual const char* called() const { return tr_later("events"); }
  /// The events that have the filter's name and module, sorted.
  virtual std::vector<traces::EventId> find(const Filter& f) const;
  /// The filter leaves the event.
  bool leaves(traces::EventId e) const;
  /// What a click on a hit of one's own kind selects.
  virtual void click(Hit hit);
  /// The stretch of the selection; false where it has none.
  virtual bool selected_span(double& a, double& b) const;
  /// Selects the neighbour of what is selected.
  virtual void step_aside(int direction);
  void next_lane(int direction);
  /// "; chosen: ..." for those who cannot see it; empty where nothing is.
  virtual std::string chosen_words() const;

  /// `document` is that of the selections that the lanes make; the axis goes from the time `origin` of the trace so
  /// many nanoseconds on.
  void set_trace(std::shared_ptr<const traces::Trace> trace, int document, int64_t origin, int64_t length,
                 std::shared_ptr<const std::vector<traces::CounterCurve>> curves = {},
                 const std::vector<LaneLayout::Group>& groups = {});
  /// Other counters under the same lanes: what is folded and pinned stays.
  void set_curves(std::shared_ptr<const std::vector<traces::CounterCurve>> curves,
                  const std::vector<LaneLayout::Group>& groups);
  /// Where a time of the trace lies on the axis. A trace counts from 1970, further than a double counts in nanoseconds.
  double at(int64_t time) const { return static_cast<double>(time - origin_); }
  /// Follows a selection of the trace's own: an event, a range.
  void follow(const Selection& s);
  void select_event(traces::EventId e);
  void reveal(double a, double b) { axis_.reveal(a, b); }

  float lanes_height() const;
  /// Draws the lanes between two heights; tells where each that is in sight lies.
  std::map<uint32_t, Box> draw_lanes(Scene& scene, float top, float bottom);
  void draw_range(Scene& scene, float top, float bottom);

  std::shared_ptr<const traces::Trace> trace_;
  int document_ = Document::kProject;
  int64_t origin_ = 0;
  Axis axis_;
  LaneLayout layout_;
  Filter filter_;
  std::vector<traces::EventId> matches_;  ///< of its name and module; not looked at where it has neither
  traces::EventId chosen_event_ = traces::kNone;
  double range_a_ = 0, range_b_ = 0;
  bool has_range_ = false;
  float gutter_ = 92, row_ = 22, scroll_ = 0;
  int merged_ = 0;

 private:
  void draw_row(Scene& scene, uint32_t lane, Box row);
  void draw_run(Scene& scene, Box box, traces::EventId longest, uint32_t count, bool found);
  void draw_label(Scene& scene, const LaneLayout::Placed& at);
  void draw_counter(Scene& scene, const LaneLayout::Band& band, Box row);
  void outline_chosen(Scene& scene) const;
  // Over and above the lanes: lane_overlays.cpp.
  void draw_overview(Scene& scene, Box strip);
  void draw_path_strip(Scene& scene, Box strip);
  void draw_gap_strip(Scene& scene, Box strip);
  void draw_path(Scene& scene) const;
  void draw_links(Scene& scene) const;
  void draw_bookmarks(Scene& scene, Box header, float bottom);
  void mark(double from, double to);
  void unmark();
  void gather_links();
  void fold_chosen();
  /// Where the last frame drew a lane, in sight or not; false where its process is folded.
  bool box_of(uint32_t lane, Box& box) const;
  /// A lane's box lies behind the rows that are pinned.
  bool behind_pins(uint32_t lane, Box box) const;
  void place_bands(float top, float bottom);
  void draw_band(Scene& scene, const LaneLayout::Placed& at, float top, float bottom, std::map<uint32_t, Box>& rows);
  Ink colour_of(traces::EventId e) const;
  uint32_t module_of(traces::EventId e) const;
  /// Moves what is seen to around a place of the overview.
  void look_at(float x);
  bool by_name() const { return !filter_.name.empty() || !filter_.module.empty(); }
  /// The filter leaves something of a lane's events that touch a stretch of time.
  bool found_within(uint32_t lane, int64_t from, int64_t to) const;
  /// The events of a lane that its thread and its time leave.
  std::pair<traces::EventId, traces::EventId> left_of(uint32_t lane) const;
  template <class F>
  void each_found(F&& f) const;

  std::shared_ptr<const std::vector<traces::CounterCurve>> curves_;
  std::shared_ptr<const tracing::TraceStory> story_;
  std::string story_of_;  ///< a rank
  bool show_path_ = false, show_gaps_ = false;
  ColourBy colour_ = ColourBy::kind;
  std::vector<traces::Link> linked_;
  std::vector<Bookmark> bookmarks_;
  std::vector<LaneLayout::Placed> placed_bands_;           // of the last frame, those that stay at the top first
  size_t stuck_ = 0;                                       // how many of them do
  float rest_top_ = 0;                                     // where what scrolls begins
  bool bring_chosen_ = false;                              // the next frame scrolls to the selected event
  mutable std::map<traces::EventId, uint32_t> module_of_;  // names by event, as they are asked for
  std::vector<float> overview_;                            // busy share a pixel column of the whole trace
  Box overview_box_;
  bool dragging_ = false, moved_ = false, selecting_ = false, looking_ = false;
  AxisPull pull_;
  float press_y_ = 0, view_height_ = 0, content_height_ = 0, drag_scroll_ = 0;
};

}  // namespace tenon::views
