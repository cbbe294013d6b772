#pragma once
#include <map>
#include <string>
#include <vector>

#include "tracing/record/step_record.h"
#include "views/timeline/lane_model.h"

namespace tenon::views {

/// What happened over time: the lanes of an opened trace, or of the recorded step, with what is known of a step laid
/// over them: phases and modules above, its live memory below, arrows between forward and backward.
class TimelineModel : public LaneModel {
 public:
  void set_step(const Links& links) override;
  void set_document(const Document* document) override;
  void set_beginning(const Document* document) override;
  bool shows_beginning() const override { return trace_ && document_ == Document::kBeginning; }
  bool looks_into_beginning() const override { return shows_beginning() && !axis_.fitted(); }
  void set_selection(const Selection& s) override;
  void next_match(int direction) override;

  /// What was recorded of the same run elsewhere, under the counters of the document that is shown; empty: nothing.
  void set_beside(const Document& document, const std::vector<traces::CounterCurve>& beside);

  /// How a document was last seen.
  struct Sight {
    double lo = 0, hi = 0;
    float scroll = 0;
    std::vector<bool> folded;
    bool whole = false;  ///< all of it was seen
    std::vector<bool> pinned = {};
  };
  /// Of a document that was shown, or nothing; and the way back to it.
  Sight sight(int document) const;
  void set_sight(int document, const Sight& sight);

  bool empty() const { return !trace_; }
  /// A trace is shown, not the step.
  bool shows_document() const { return document_ != Document::kProject; }
  uint32_t selected() const { return selected_; }

  /// By kind of op: calls, time, share, work done.
  Table operators() const;
  /// By module path: forward and backward time.
  Table modules() const;
  /// One row an op, in order of time.
  Table events() const;

  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;
  Look look(traces::EventId e) const override;
  std::string tip(traces::EventId e) const override;
  const char* called() const override { return links_ ? tr_later("ops") : LaneModel::called(); }
  std::vector<traces::EventId> find(const Filter& f) const override;
  void click(Hit hit) override;
  bool selected_span(double& a, double& b) const override;
  void step_aside(int direction) override;
  std::string chosen_words() const override;

 private:
  struct Span {
    double a, b;
    std::string text;
    Ink ink;
    uint16_t module;
    Phase phase;
  };
  void look_as(const Sight& sight);
  void look_on(const traces::Trace& before, const Sight& sight);
  void show_step();
  void gather_spans();
  void select_op(int64_t seq);
  /// The filter leaves the op.
  bool leaves_op(const tracing::OpRecord& op) const;
  bool has_spans() const;  ///< the record names its phases itself, as spans around the ops
  void draw_spans(Scene& scene, const std::vector<Span>& spans, Box row, bool modules);
  void place_chosen(const std::map<uint32_t, Box>& rows);
  void draw_memory(Scene& scene, Box row);
  void draw_arrows(Scene& scene);
  /// The op of an event; null where it is none (loading data).
  const tracing::OpRecord* op_of(traces::EventId e) const;

  Links step_;   ///< that is loaded
  Links links_;  ///< the same while the step is what is shown; empty while a trace is
  std::vector<Span> phases_, modules_;
  std::vector<traces::EventId> outer_;  // events of the training thread that are ops and lie in no other op, by start
  std::vector<traces::EventId> event_of_;  // by seq
  std::vector<bool> chosen_;               // by seq: what the selection covers
  std::vector<bool> bad_;                  // by seq: its output was not finite
  std::map<uint32_t, Box> placed_;         // by seq, of the last frame: what is chosen and what arrows end at
  std::map<int, Sight> sights_;            // by document
  std::string begun_;                      // the file whose beginning is shown
  uint32_t selected_ = 0;
  Selection selection_;
};

}  // namespace tenon::views
