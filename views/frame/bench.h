#pragma once
#include <QObject>
#include <QStringList>
#include <memory>
#include <optional>
#include <vector>

#include "projects/results.h"
#include "projects/run_driver.h"
#include "projects/search/search_space.h"
#include "views/frame/jobs.h"
#include "views/shared/document.h"
#include "views/shared/filter.h"
#include "views/shared/project_contents.h"
#include "views/shared/selection.h"
#include "views/shared/step_model.h"

namespace tenon::tracing {
class TimeMatch;
}
namespace tenon::projects {
struct QuantizeOptions;
struct QuantizePlan;
struct QuantizeReport;
}  // namespace tenon::projects

namespace tenon::views {

/// What a view may know of the window it stands in: the project, the run and the step that are shown, the selection,
/// the queues of long work, and the models of all views. The workbench above the views fills it and carries out what
/// they ask for.
class Bench : public QObject {
  Q_OBJECT
 public:
  ~Bench() override;

  bool has_project() const { return project_ != nullptr; }
  const std::shared_ptr<projects::Project>& project() const { return project_; }
  QString file() const { return file_; }
  const ProjectContents& contents() const { return contents_; }

  // What is open beside the project.
  const std::vector<Document>& documents() const { return documents_; }
  const Document* document(int id) const;  ///< null where none has the id
  /// The one that is shown; null: the project.
  const Document* shown_document() const { return document(shown_document_); }
  virtual void close_document(int id) = 0;
  /// The events of what is shown: of the document, or of the step that is loaded; null: neither.
  std::shared_ptr<const traces::Trace> shown_trace() const;
  /// What of it pages are about: of a session the rank that is chosen.
  traces::TracePart shown_part() const;
  /// Of a session: the rank that its pages are about from now on.
  void choose_rank(int document, size_t rank);
  /// What of the shown document is looked at.
  const Filter& filter() const { return filters_.of(shown_document_); }
  void set_filter(const Filter& f, bool typed = false);
  bool can_undo_filter() const { return filters_.can_undo(shown_document_); }
  bool can_redo_filter() const { return filters_.can_redo(shown_document_); }
  void undo_filter();
  void redo_filter();
  /// What is seen of a trace or snapshot while it is read; null: nothing.
  const Document* beginning() const { return beginning_ ? &*beginning_ : nullptr; }
  static QString reading_tag(const Document& d) { return kReading + QString::fromStdString(d.path); }
  /// The titles of files that are being read.
  QStringList reading() const;
  static bool reads_document(const Jobs::State& job) { return job.tag.startsWith(kReading); }
  /// A file is on its way: looked at, or read.
  bool opens_file() const;

  /// Two traces whose timelines show the same time: the one that is shown next shows what was seen of the other.
  struct Together {
    int a = Document::kProject, b = Document::kProject;
    std::shared_ptr<const tracing::TimeMatch> times;
    bool operator==(const Together&) const = default;
  };
  const std::optional<Together>& together() const { return together_; }
  void set_together(std::optional<Together> together) { together_ = std::move(together); }

  /// The recipe of the next run; kept in the project.
  const Recipe& recipe() const { return contents_.recipe; }
  virtual void set_recipe(const Recipe& recipe) = 0;

  // The run that is shown.
  int64_t shown_run() const { return shown_run_; }
  const projects::RunInfo* shown() const { return contents_.run(shown_run_); }
  int64_t shown_steps() const;        ///< done so far
  int64_t shown_total_steps() const;  ///< that it is to do; not fewer than are done
  /// Where its watches began to hold, by step.
  const std::vector<WatchHit>& watch_hits() const { return watch_hits_; }
  /// What it did on its way, by step.
  const std::vector<projects::RunEvent>& run_events() const { return run_events_; }

  // The step that is loaded.
  const Links& links() const { return links_; }
  bool loading_step() const { return jobs.has("step"); }
  /// The test split under a state of a run, sample by sample, as it was evaluated last; null: not yet.
  const std::shared_ptr<const projects::Results>& results() const { return results_; }
  /// The export in fewer bits that was made last; null: none of this project yet.
  const std::shared_ptr<const projects::QuantizeReport>& quantized() const { return quantized_; }
  /// All exports of a state in fewer bits, as far as they are measured; null: none of this project yet.
  const std::shared_ptr<const projects::QuantizePlan>& quantize_plan() const { return quantize_plan_; }
  /// Measures them, one after the other; its job has the tag kQuantizePlan.
  virtual void plan_quantization(int64_t run, int64_t step) = 0;
  static constexpr const char* kQuantizePlan = "quantize plan";
  /// Has the person asked where the file goes, and writes it.
  void ask_for_quantized(int64_t run, int64_t step, const projects::QuantizeOptions& options) {
    emit quantized_asked(run, step, options);
  }
  /// Records everything about a sample of the test split under the state that the results are of, and shows it.
  virtual void look_into_sample(int64_t row) = 0;
  /// Shows a step that was recorded elsewhere than by its number.
  virtual void show_step(const Links& links) = 0;

  // The run that trains, and was trained last.
  virtual bool training() const = 0;
  virtual bool model_fits() const = 0;  ///< every shape of the model fits: it can be trained
  const projects::RunStatus& status() const { return status_; }
  /// Of every run that trains here: status(), then the trials of a sweep beside it.
  virtual std::vector<projects::RunStatus> statuses() const = 0;
  /// Whether this run trains here.
  virtual bool trains(int64_t run) const = 0;
  virtual void train(const projects::TrainOptions& options = {}) = 0;
  /// What the run that trains is told now; nothing where none trains.
  virtual std::optional<Recipe> training_recipe() const = 0;
  /// Gives the run that trains what of the recipe of the next run may change in one that has begun.
  virtual void change_training() = 0;

  /// The sweep whose trials are trained, one after the other or side by side, as its plan says; 0: none.
  int64_t sweeping() const { return sweeping_; }
  /// Keys with what they may be, and the attributes of a SweepPlan that are not their defaults.
  virtual void begin_sweep(const std::string& name, const projects::Settings& keys, const std::vector<Attr>& attrs) = 0;
  virtual void resume_sweep(int64_t sweep) = 0;
  /// The trials that train end with a checkpoint, and the sweep waits to be resumed.
  virtual void stop_sweep() = 0;
  virtual void rename_sweep(int64_t sweep, const std::string& name) = 0;
  /// Out of every list; its runs stay, and the notice that says so brings it back.
  virtual void delete_sweep(int64_t sweep) = 0;
  virtual void restore_sweep(int64_t sweep) = 0;

  /// The runs that are compared, in the order they were picked.
  const std::vector<int64_t>& picked() const { return picked_; }
  void pick(std::vector<int64_t> runs);
  /// The run that others are compared with; 0: none. Training keeps it with the project.
  int64_t baseline() const { return baseline_; }
  void set_baseline(int64_t run);
  /// Out of every list, but for one that trains; the notice that says so brings them back.
  virtual void delete_runs(const std::vector<int64_t>& runs) = 0;

  void select(const Selection& s) { bus.select(s); }
  /// Shows samples of the training set, by their rows, among the data of the recipe.
  void show_samples(const std::vector<int64_t>& rows) { emit samples_asked(rows); }
  /// Asks for a command by its id ("run.train", "view.memory"): the window carries it out where it is enabled.
  void ask(const QString& command) { emit asked(command); }
  virtual void fail(const QString& title, const QString& message, const QString& hint) = 0;

  /// The model of a view; every class of model is made once, by the views' list.
  template <class Model>
  Model& model() const {
    for (const auto& m : models_)
      if (auto* found = dynamic_cast<Model*>(m.get())) return *found;
    no_model(typeid(Model).name());
  }
  const std::vector<std::unique_ptr<StepModel>>& models() const { return models_; }

  SelectionBus bus;
  static constexpr int kWorkers = 2;
  Jobs jobs{kWorkers};  ///< replays and searches: seconds
  Jobs files;           ///< reads and writes of the project file: milliseconds

 signals:
  void project_changed();        ///< opened, or what it holds
  void recipe_changed();         ///< of the next run
  void documents_changed();      ///< opened, closed, or another one is shown
  void run_changed();            ///< another run is shown
  void watch_hits_changed();     ///< of the run that is shown
  void run_events_changed();     ///< of the run that is shown
  void step_changed();           ///< another step is loaded
  void status_changed();         ///< training went on
  void picked_changed();         ///< other runs are compared
  void baseline_changed();       ///< with another one, or with none
  void results_changed();        ///< evaluated anew, or gone with its project
  void quantized_changed();      ///< exported in fewer bits, or gone with its project
  void quantize_plan_changed();  ///< another way was measured, or gone with its project
  void quantized_asked(int64_t run, int64_t step, const tenon::projects::QuantizeOptions& options);
  void filter_changed();  ///< of the document that is shown, or another one is
  void selection_changed(const tenon::views::Selection& s);
  void state_changed();  ///< what commands look at
  void logged(const QString& line, bool bad);
  void asked(const QString& command);
  void samples_asked(const std::vector<int64_t>& rows);

 protected:
  /// With the models of every registered view.
  explicit Bench(QObject* parent = nullptr);

  std::shared_ptr<projects::Project> project_;
  QString file_;
  ProjectContents contents_;
  /// Of the jobs that read documents.
  static constexpr const char* kReading = "read ";
  /// Of the jobs that look what a file is, in `files`.
  static constexpr const char* kOpening = "open ";
  std::vector<Document> documents_;
  int shown_document_ = Document::kProject;
  std::optional<Document> beginning_;
  Filters filters_;
  void tell_filter();
  int64_t shown_run_ = 0;
  std::vector<WatchHit> watch_hits_;
  std::vector<projects::RunEvent> run_events_;
  std::vector<int64_t> picked_;
  int64_t baseline_ = 0;
  Links links_;
  projects::RunStatus status_;
  std::shared_ptr<const projects::Results> results_;
  std::shared_ptr<const projects::QuantizeReport> quantized_;
  std::shared_ptr<const projects::QuantizePlan> quantize_plan_;
  int64_t sweeping_ = 0;
  std::optional<Together> together_;

 private:
  [[noreturn]] static void no_model(const char* name);
  std::vector<std::unique_ptr<StepModel>> models_;
};

}  // namespace tenon::views
