#pragma once
#include <QObject>
#include <QTimer>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "projects/run_driver.h"
#include "views/autograd/autograd_model.h"
#include "views/builder/builder_model.h"
#include "views/frame/jobs.h"
#include "views/memory/memory_model.h"
#include "views/nan/nan_model.h"
#include "views/project/project_model.h"
#include "views/tensor/tensor_model.h"
#include "views/timeline/timeline_model.h"
#include "views/training/training_model.h"

namespace tenon::views {

/// Something to know that lasts as long as `holds` says; its button runs `act`.
struct Notice {
  QString title, message, button;
  std::function<void()> act;
  std::function<bool()> holds;
};

/// What the window works on: one project, the run that is shown, the step that is loaded, the run that trains. Holds
/// the view-models and keeps them in step; owns no widget. Nothing here waits for a file, a lock or the training
/// thread.
class Workbench : public QObject {
  Q_OBJECT
 public:
  explicit Workbench(QObject* parent = nullptr);
  ~Workbench() override;

  void open(const QString& path, bool start_training = false);
  /// A new project of a template at `path`, then opens it.
  void create(const QString& path, const std::string& template_name);
  bool has_project() const { return project_ != nullptr; }
  const std::shared_ptr<projects::Project>& project() const { return project_; }
  QString file() const { return file_; }
  /// How the window was left when this project was last closed; null the first time.
  const nlohmann::json& window_state() const { return *window_state_; }

  // The run that is shown.
  void show_run(int64_t id);
  int64_t shown_run() const { return shown_run_; }
  const projects::RunInfo* shown() const { return project_model.run(shown_run_); }
  int64_t shown_steps() const;  ///< done so far

  // The step that is loaded.
  void load_step(int64_t step);
  bool loading_step() const { return jobs.has("step"); }
  const Links& links() const { return links_; }

  // Training.
  void train(const projects::TrainOptions& options = {});
  void pause();
  void resume();
  void step_once();
  void stop();
  void checkpoint();
  /// Goes on with a run that has ended before its last step, from its last checkpoint.
  void go_on(int64_t run);
  bool can_go_on(int64_t run) const;
  bool training() const { return driver_ != nullptr; }
  const projects::RunStatus& status() const { return status_; }

  void find_nan();

  void select(const Selection& s) { bus.select(s); }
  void log(const QString& line, bool bad = false);
  void fail(const QString& title, const QString& message, const QString& hint);
  /// What an event's handler threw (Note [The net under the event loop]): told, and the model on the canvas is saved at
  /// once.
  void caught(const QString& where, const QString& message, const QString& hint);
  /// No job runs or waits and nothing is on its way to the views.
  bool idle() const;
  /// Pictures and tests: no time of day in the log.
  void set_fixed_clock(bool fixed) { fixed_clock_ = fixed; }

  SelectionBus bus;
  Jobs jobs;   ///< replays and searches: seconds
  Jobs files;  ///< reads and writes of the project file: milliseconds
  BuilderModel builder;
  TrainingModel training_model;
  TensorModel tensor;
  AutogradModel autograd;
  MemoryModel memory;
  TimelineModel timeline;
  NanModel nan;
  ProjectModel project_model;

 signals:
  void project_changed();  ///< opened, or what it holds
  void run_changed();      ///< another run is shown
  void step_changed();     ///< another step is loaded
  void status_changed();   ///< training went on
  void selection_changed(const tenon::views::Selection& s);
  void state_changed();  ///< what commands look at
  void logged(const QString& line, bool bad);
  void problem(const QString& title, const QString& message, const QString& hint);
  /// Something to know, with a button that does something about it.
  void notice(const tenon::views::Notice& notice);

 private:
  struct Opened;
  void opened(std::shared_ptr<Opened> result, bool start_training);
  void refresh_project();
  void load_metrics();
  void tick();
  void let_go();
  void adopt(std::shared_ptr<projects::RunDriver> driver);
  void start_driver(projects::TrainOptions options, bool then_step);
  void save_model();
  void set_links(const Links& links);
  void tell_interrupted();
  void tell_blocked(const projects::RunStatus& before);

  std::shared_ptr<projects::Project> project_;
  std::shared_ptr<projects::RunDriver> driver_;
  QString file_;
  std::shared_ptr<const nlohmann::json> window_state_;
  int64_t shown_run_ = 0, batch_ = 1, wanted_step_ = 0;
  Links links_;
  projects::RunStatus status_;
  std::vector<projects::MetricRow> live_rows_;
  QTimer tick_, save_timer_;
  QTimer save_again_;         ///< a save that failed is tried again
  bool unsaved_ = false;      ///< the model on the canvas is newer than the file's
  bool save_failed_ = false;  ///< and that was told
  bool stopping_ = false;     ///< the run was asked to end
  bool fixed_clock_ = false;
};

}  // namespace tenon::views
