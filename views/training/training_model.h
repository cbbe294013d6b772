#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "projects/run_driver.h"
#include "views/shared/axis.h"
#include "views/shared/series.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"
#include "views/training/charts.h"
#include "views/training/curve_axis.h"

namespace tenon::views {

/// The curves of a run: charts of metrics, all over the same axis. Live while it trains. Whatever they stand over, a
/// click, the cursor and the selection mean a step.
class TrainingModel : public StepModel {
 public:
  enum HitKind { none, plot = 1, log_toggle, hide_button, watch_mark };

  /// Another run: forgets every point.
  void set_run(const std::string& name, int64_t total_steps);
  /// How the shown run counts its steps.
  void set_epoch(const projects::EpochLength& epoch);
  /// All its points so far.
  void set_series(std::map<std::string, Series> series);
  void add(const std::vector<projects::MetricRow>& rows);
  void set_status(const projects::RunStatus& s);
  /// Where the recipe of the shown run was changed, and how: "optimizer.lr 0.01 → 0.003".
  struct Change {
    int64_t step = 0;
    std::string text;
  };
  void set_changes(std::vector<Change> changes);
  /// Of a run, in words. Throws Error for a recipe that cannot be read, as of a plug-in that is not here. `surgery`: of
  /// a branch, what its model has other than its parent's.
  static std::vector<Change> changes_of(const projects::RunInfo& run, const std::string& surgery = {});
  const std::vector<Change>& changes() const { return changes_; }
  /// Where watches of the shown run began to hold, by step; a click on one leads to its step.
  struct Mark {
    int64_t step = 0;
    std::string text;
  };
  void set_marks(std::vector<Mark> marks);
  /// Those that are more than counted.
  static std::vector<Mark> marks_of(const std::vector<WatchHit>& hits);
  const std::vector<Mark>& marks() const { return marks_; }
  /// The curves of a run that is compared with the shown one.
  struct Compared {
    std::string run = {};
    std::map<std::string, Series> series = {};
    projects::EpochLength epoch = {};
    int64_t id = 0, steps = 0;  ///< of the run, and how many it had done when its points were read
  };
  /// Curves of other runs, in colours of their own (compared_ink, by their order), behind those of this one.
  void set_compared(std::vector<Compared> runs);
  /// Keeps the curves of the shown run, by its id, in grey behind those of others; again: lets them go. A part of
  /// state(): after set_state() its id is known, and its curves are to be read.
  void toggle_baseline(int64_t run);
  void set_baseline(Compared run);
  const Compared& baseline() const { return baseline_; }
  const std::vector<Compared>& compared() const { return compared_; }
  /// The same, to be given back.
  std::vector<Compared> take_compared() { return std::move(compared_); }
  void set_selection(const Selection& s) override;
  /// A picture for a page: no switches, and nothing that stands out under a hand.
  void set_still(bool still) { still_ = still; }
  void set_smoothing(double weight);
  double smoothing() const { return smoothing_; }

  /// What the curves stand over. What is seen of them stays, as far as both axes have it.
  void set_over(Over over);
  Over over() const { return over_; }
  /// The same, or steps where the shown run does not tell how its steps count up to that.
  Over shown_over() const;
  /// How many compared runs are not drawn, since they do not tell that.
  int left_out() const;

  const Charts& charts() const { return charts_; }
  void set_charts(Charts charts);
  void set_log(const std::string& chart, bool log);
  bool log(const std::string& chart) const { return charts_.log(chart); }
  /// The titles of the charts that are seen.
  std::vector<std::string> groups() const;
  /// The metrics of the shown run, by name.
  std::vector<std::string> metrics() const;

  /// What the project keeps of the view: smoothing, axis, charts. What is not there, or does not fit, is as usual.
  nlohmann::json state() const;
  void set_state(const nlohmann::json& state);
  /// Called when any of that was changed.
  std::function<void()> on_state;

  /// Values [from, to] of the axis fill the plots; the same value twice: all.
  void show(double from, double to);
  void fit() { show(0, 0); }

  bool empty() const { return series_.empty(); }
  const std::string& run() const { return run_; }
  const std::map<std::string, Series>& series() const { return series_; }
  int64_t last_step() const { return last_step_; }
  int64_t total_steps() const { return std::max(total_steps_, last_step_); }
  int64_t hovered_step() const { return hover_; }  ///< -1: none
  const Axis& axis() const { return axis_; }
  /// Where a step of the shown run stands on the axis, and the step that stands nearest to a place on it.
  double x_of(int64_t step) const;
  int64_t step_at(double x) const;
  /// The step that is drawn at a place of the canvas; -1: none.
  int64_t step_of(float x, float y) const;

  /// One row a metric: last, best, mean of the last tenth, how many were not finite.
  Table table() const;

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  static constexpr double kUsualSmoothing = 0.6;
  struct Range {
    double lo, hi;
    bool log;
  };
  /// Values that are no numbers, in one place of a plot.
  struct Bad {
    float x = 0;
    int64_t count = 0, first_step = 0, last_step = 0;
    const std::string *run = nullptr, *metric = nullptr;
  };
  /// How a line is drawn.
  struct Pen {
    Ink ink = Ink::none;
    float width = 1.6f, alpha = 1;
    bool dots = false;  ///< on its points, where these are far from each other
    int column = 0;     ///< where there are more points: bands of so many pixels instead of lines; 0: none
  };
  std::vector<Chart> arranged() const;
  CurveScale scale() const { return {shown_over(), epoch_}; }
  CurveScale scale(const Compared& c) const { return {shown_over(), c.epoch}; }
  /// Runs behind the shown one that have a metric and a place on the axis.
  template <class F>
  void each_behind(const std::string& metric, F&& f) const;
  /// The metric with the most points: what tells the time of steps.
  const Series* clock() const;
  void draw_plot(Scene& scene, const Chart& c, Box box);
  void draw_header(Scene& scene, const Chart& c, Box box);
  void draw_y(Scene& scene, const Chart& c, const Range& r, Box area);
  void draw_x(Scene& scene, Box area, bool titled);
  void draw_curves(Scene& scene, const Chart& c, const Range& r, Box area);
  /// Where its values are no numbers is noted in `bad`.
  void draw_series(Scene& scene, const Series& s, const CurveScale& at, const Range& r, Box area, const Pen& pen,
                   std::vector<Bad>& bad) const;
  void draw_bands(Scene& scene, const Series& s, const CurveScale& at, const Range& r, Box area, const Pen& pen,
                  std::vector<Bad>& bad) const;
  /// Names of compared runs and their values at the hovered (or the last) step, from x on as far as there is room.
  void name_compared(Scene& scene, const Chart& c, float x, float y, float right);
  void draw_changes(Scene& scene, Box area);
  void draw_watch_marks(Scene& scene, Box area);
  void draw_bad(Scene& scene, Box area);
  void draw_marks(Scene& scene, const Chart& c, const Range& r, Box area);
  /// How many pixels of compared runs are drawn as one band, so that a frame keeps its time however many there are; 0:
  /// they are few enough for lines.
  int coarseness(const std::vector<Chart>& charts, float width) const;
  std::pair<size_t, size_t> visible(const Series& s, const CurveScale& at) const;
  Range range(const Chart& c) const;
  void grow();
  void told();
  float y_of(double v, const Range& r, const Box& area) const;

  std::string run_;
  projects::EpochLength epoch_;
  std::map<std::string, Series> series_;
  std::map<std::string, SmoothedSeries> smoothed_;
  Compared baseline_;
  std::vector<Compared> compared_;
  std::vector<Change> changes_;
  std::vector<Mark> marks_;
  projects::RunStatus status_;
  Axis axis_;
  Over over_ = Over::step;
  Charts charts_;
  int64_t last_step_ = 0, total_steps_ = 0, selected_ = -1, hover_ = -1;
  double smoothing_ = kUsualSmoothing;
  int focus_ = -1;                                  ///< the plot that the keys are on; -1: none yet
  int column_ = 0;                                  ///< see coarseness()
  std::vector<std::pair<Box, std::string>> areas_;  // plot areas of the last frame
  std::vector<Bad> bad_;                            ///< of the plot that is drawn
  bool still_ = false;
  bool dragging_ = false, moved_ = false;
  float press_x_ = 0, drag_x_ = 0;
};

}  // namespace tenon::views
