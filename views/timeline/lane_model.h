#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tracing/trace/trace_store.h"
#include "views/shared/axis.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

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
  enum HitKind { none, op = 1, module, lane, memory, event };

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
  /// Of what the filter leaves, by name: calls, time.
  Table names() const;

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
  /// "events", "ops": what a run of several is called.
  virtual const char* called() const { return "events"; }
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
  void set_trace(std::shared_ptr<const traces::Trace> trace, int document, int64_t origin, int64_t length);
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

  struct Group {  ///< a row of the store
    std::string title, tip;
    uint32_t first = 0, depths = 0;  ///< its lanes there
  };
  std::shared_ptr<const traces::Trace> trace_;
  int document_ = Document::kProject;
  int64_t origin_ = 0;
  Axis axis_;
  std::vector<Group> groups_;
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
  void outline_chosen(Scene& scene, const std::map<uint32_t, Box>& rows) const;
  bool by_name() const { return !filter_.name.empty() || !filter_.module.empty(); }
  /// The filter leaves something of a lane's events that touch a stretch of time.
  bool found_within(uint32_t lane, int64_t from, int64_t to) const;
  /// The events of a lane that its thread and its time leave.
  std::pair<traces::EventId, traces::EventId> left_of(uint32_t lane) const;
  template <class F>
  void each_found(F&& f) const;

  bool dragging_ = false, moved_ = false, selecting_ = false;
  float press_x_ = 0, press_y_ = 0, view_height_ = 0, content_height_ = 0, drag_scroll_ = 0;
  double drag_lo_ = 0, drag_hi_ = 0;
};

/// One kind of event, one colour.
Ink ink_of(traces::EventKind kind);

}  // namespace tenon::views
