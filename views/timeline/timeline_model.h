#pragma once
#include <map>
#include <string>
#include <vector>

#include "tracing/record/step_record.h"
#include "views/shared/axis.h"
#include "views/shared/table.h"

namespace tenon::views {

/// The ops of one step over time: a lane a thread and nesting depth, above them phases and modules, below the live
/// memory.
class TimelineModel : public CanvasModel {
 public:
  enum HitKind { none, op = 1, module, lane, memory };

  void set_step(const Links& links);
  void set_selection(const Selection& s);
  /// Ops whose name, module or attributes hold the text stand out; the number of them is returned.
  int set_search(const std::string& text);
  /// Selects the next (or previous) op that matches the search, or has the name of the selected one.
  void next_match(int direction);
  void fit();
  void fit_selection();

  bool empty() const { return !links_; }
  const Axis& axis() const { return axis_; }
  Axis& axis() { return axis_; }
  uint32_t selected() const { return selected_; }

  /// By kind of op: calls, time, share, work done.
  Table operators() const;
  /// By module path: forward and backward time.
  Table modules() const;
  /// One row an op, in order of time.
  Table events() const;
  /// How many of the events lie in sub-pixel runs in the last frame.
  int merged() const { return merged_; }

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  struct Lane {  ///< a row of the store
    std::string title;
    uint32_t first = 0, depths = 0;  ///< its lanes there
  };
  struct Span {
    double a, b;
    std::string text;
    Ink ink;
    uint16_t module;
    Phase phase;
  };
  bool has_spans() const;  ///< the record names its phases itself, as spans around the ops
  void draw_spans(Scene& scene, const std::vector<Span>& spans, Box row, bool modules);
  void draw_row(Scene& scene, uint32_t lane, Box row);
  void place_chosen(const std::map<uint32_t, Box>& rows);
  void draw_memory(Scene& scene, Box row);
  void draw_arrows(Scene& scene);
  void draw_range(Scene& scene, float top, float bottom);
  const traces::Trace& store() const { return *links_.record()->timeline.store; }
  /// The op of an event; null where it is none (loading data).
  const tracing::OpRecord* op_of(traces::EventId e) const;
  std::string tip(traces::EventId e) const;
  float lanes_height() const;

  Links links_;
  Axis axis_;
  std::vector<Lane> lanes_;
  std::vector<Span> phases_, modules_;
  std::vector<traces::EventId> outer_;  // events of the training thread that are ops and lie in no other op, by start
  std::vector<traces::EventId> event_of_;  // by seq
  std::vector<bool> match_;                // by seq
  std::vector<bool> chosen_;               // by seq: what the selection covers
  std::vector<bool> bad_;                  // by seq: its output was not finite
  std::map<uint32_t, Box> placed_;         // by seq, of the last frame: what is chosen and what arrows end at
  std::string search_;
  uint32_t selected_ = 0;
  Selection selection_;
  double range_a_ = 0, range_b_ = 0;
  bool has_range_ = false, dragging_ = false, moved_ = false, selecting_ = false;
  float press_x_ = 0, press_y_ = 0, scroll_ = 0, view_height_ = 0, content_height_ = 0, drag_scroll_ = 0, row_ = 22;
  double drag_lo_ = 0, drag_hi_ = 0;
  int merged_ = 0;
};

}  // namespace tenon::views
