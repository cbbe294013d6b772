#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "projects/run_driver.h"
#include "views/shared/axis.h"
#include "views/shared/series.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// The curves of a run: one plot a quantity, all on the same steps. Live while it trains.
class TrainingModel : public StepModel {
 public:
  enum HitKind { none, plot = 1, log_toggle };

  /// Another run: forgets every point.
  void set_run(const std::string& name, int64_t total_steps);
  void add(const std::vector<projects::MetricRow>& rows);
  void set_status(const projects::RunStatus& s);
  /// Where the recipe of the shown run was changed, and how: "optimizer.lr 0.01 → 0.003".
  struct Change {
    int64_t step = 0;
    std::string text;
  };
  void set_changes(std::vector<Change> changes);
  /// Of a run, in words. Throws Error for a recipe that cannot be read, as of a plug-in that is not here.
  static std::vector<Change> changes_of(const projects::RunInfo& run);
  const std::vector<Change>& changes() const { return changes_; }
  /// Keeps the curves of this run in grey behind those of others; again: lets them go.
  void toggle_baseline();
  const std::string& baseline() const { return baseline_name_; }
  /// The curves of a run that is compared with the shown one.
  struct Compared {
    std::string run;
    std::map<std::string, Series> series = {};
  };
  /// Curves of other runs, in colours of their own (compared_ink, by their order), behind those of this one.
  void set_compared(std::vector<Compared> runs);
  const std::vector<Compared>& compared() const { return compared_; }
  void set_selection(const Selection& s) override;
  /// A picture for a page: no switches, and nothing that stands out under a hand.
  void set_still(bool still) { still_ = still; }
  void set_smoothing(double weight);
  double smoothing() const { return smoothing_; }
  void set_log(const std::string& group, bool log);
  bool log(const std::string& group) const;
  /// Steps [from, to] fill the plots; the same value twice: all.
  void show_steps(double from, double to);
  void fit();

  bool empty() const { return series_.empty(); }
  const std::string& run() const { return run_; }
  const std::map<std::string, Series>& series() const { return series_; }
  std::vector<std::string> groups() const;
  int64_t last_step() const { return last_step_; }
  int64_t total_steps() const { return std::max(total_steps_, last_step_); }
  int64_t hovered_step() const { return hover_; }  ///< -1: none
  const Axis& axis() const { return axis_; }

  /// One row a metric: last, best, mean of the last tenth, how many were not finite.
  Table table() const;

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  struct Group {
    std::string title;
    std::vector<std::string> metrics;
  };
  struct Range {
    double lo, hi;
    bool log;
  };
  std::vector<Group> grouped() const;
  void draw_plot(Scene& scene, const Group& g, Box box);
  void draw_y(Scene& scene, const Group& g, const Range& r, Box area);
  void draw_x(Scene& scene, Box area, bool titled);
  void draw_series(Scene& scene, const Series& s, const Range& r, Box area, Ink ink, bool quiet, bool dense);
  void draw_compared(Scene& scene, const Group& g, const Range& r, Box area);
  /// Names of compared runs and their values at the hovered (or the last) step, from x on as far as there is room.
  void name_compared(Scene& scene, const Group& g, float x, float y, float right);
  void draw_changes(Scene& scene, Box area);
  void draw_marks(Scene& scene, const Group& g, const Range& r, Box area);
  Range range(const Group& g) const;
  void grow();
  float y_of(double v, const Range& r, const Box& area) const;

  std::string run_, baseline_name_;
  std::map<std::string, Series> series_, baseline_;
  std::map<std::string, bool> log_;
  std::vector<Compared> compared_;
  std::vector<Change> changes_;
  projects::RunStatus status_;
  Axis axis_;
  int64_t last_step_ = 0, total_steps_ = 0, selected_ = -1, hover_ = -1;
  double smoothing_ = 0.6;
  int focus_ = -1;                                  ///< the plot that the keys are on; -1: none yet
  std::vector<std::pair<Box, std::string>> areas_;  // plot areas of the last frame
  bool still_ = false;
  bool dragging_ = false, moved_ = false;
  float press_x_ = 0, drag_x_ = 0;
};

}  // namespace tenon::views
