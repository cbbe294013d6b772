#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracing/analyses/overview.h"
#include "views/shared/axis.h"
#include "views/shared/finding_page.h"
#include "views/shared/language.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// What is told of a trace: its overview, null where it has no events, and the same as tables whose rows select.
struct OverviewPage {
  std::shared_ptr<const tracing::Overview> overview;
  FindingPage page;
  Selection cause;  ///< the longest piece of what bounds the steps; kind none: there is none to show
  Subject subject;

  /// The table of the page that has this title; null where it has none.
  const Table* table(const std::string& title) const;
};
/// Takes time as the trace has events, or hardly any where its store keeps the overview.
std::shared_ptr<const OverviewPage> read_overview(std::shared_ptr<const traces::Trace> trace, const Subject& subject);
/// With so many rows of a table at most.
std::shared_ptr<const OverviewPage> read_overview(std::shared_ptr<const traces::Trace> trace, const Subject& subject,
                                                  size_t top);
/// The same with what is said of all ranks of the session that it is of: its sentence and, first, its table.
std::shared_ptr<const OverviewPage> with_ranks(const OverviewPage& page, const tracing::Finding& ranks);

/// What stands in the place of recommendations where there are none.
inline constexpr const char* kNoAdvice =
    tr_later("Nothing stands out: no figure is beyond the threshold from which there is a recommendation.");

/// A part has its colour in every picture.
Ink ink_of(tracing::StepPart part);

/// The steps of a trace as bars, each a stack of the parts of its time, with the parts' shares beside them. Where steps
/// are too many for a bar each, neighbours share one: their mean, and a line up to the longest of them.
class OverviewModel : public StepModel {
 public:
  enum HitKind { none, bar = 1, part };

  /// Steps [first, last) of the overview.
  struct Bar {
    size_t first = 0, last = 0;
    double mean = 0;  ///< nanoseconds
    int64_t longest = 0;
    size_t longest_step = 0;  ///< its place in the overview
  };

  /// Null: nothing is shown.
  void set_page(std::shared_ptr<const OverviewPage> page);
  const std::shared_ptr<const OverviewPage>& page() const { return page_; }
  /// Those of the last picture.
  const std::vector<Bar>& bars() const { return bars_; }
  const Axis& axis() const { return axis_; }
  /// The stretch that a bar's steps take together.
  Selection selection_of_bar(const Bar& b) const;
  /// "step 12: 8.1 ms" and its parts, a line each.
  std::string told_of(const Bar& b) const;

  void set_selection(const Selection& s) override;
  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

  /// What is selected is to be seen where it stands in time.
  std::function<void()> on_open;

 protected:
  void draw(Scene& scene) override;

 private:
  size_t steps() const { return page_ && page_->overview ? page_->overview->steps.size() : 0; }
  void make_bars(float width);
  bool marked(const Bar& b) const;
  void choose(size_t bar);
  void choose_part(tracing::StepPart p);
  bool go(int direction, bool to_end);
  std::string step_text(size_t step) const;
  void draw_legend(Scene& scene, Box box) const;
  void draw_axes(Scene& scene, Box plot, double top) const;
  void draw_bars(Scene& scene, Box plot, double top) const;
  void draw_numbers(Scene& scene, Box plot) const;

  std::shared_ptr<const OverviewPage> page_;
  Axis axis_;  // in steps
  std::vector<Bar> bars_;
  Selection selection_;
  std::optional<size_t> at_;  // the step that keys are on
};

}  // namespace tenon::views
