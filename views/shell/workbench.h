#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "projects/shared_edits.h"
#include "views/builder/builder_model.h"
#include "views/frame/bench.h"
#include "views/training/training_model.h"

namespace tenon::data {
struct Remark;
}
namespace tenon::projects {
struct QuantizeOptions;
struct ShrinkOptions;
struct TrainedModel;
}  // namespace tenon::projects

namespace tenon::views {

/// Something to know that lasts as long as `holds` says; its button runs `act`.
struct Notice {
  QString title, message, button;
  std::function<void()> act;
  std::function<bool()> holds;
  bool result = false;  ///< of what was asked for last: it stands before an older problem
};

/// What the window works on: one project, the run that is shown, the step that is loaded, the run that trains. Keeps
/// the models of the views in step; owns no widget. Nothing here waits for a file, a lock or the training thread.
class Workbench : public Bench {
  Q_OBJECT
 public:
  explicit Workbench(QObject* parent = nullptr);
  ~Workbench() override;

  /// Opens a project in the place of the one that is open; a trace beside it, and a folder of traces as one. What a
  /// file is its content says.
  void open(const QString& given, bool start_training = false);
  void close_document(int id) override;
  /// Leaves the project: a run that trains ends with a checkpoint. What else is open stays.
  void close_project();
  /// A new project of a template at `path`, then opens it. Without a template its model has only an input. `data`: the
  /// file or folder that it learns from; empty: the template's own.
  /// A project of an ONNX model; `sizes` of one sample ("3x224x224") where the file leaves them open.
  void create_from_model(const QString& path, const QString& model, const QString& sizes = {});
  void create(const QString& path, const std::string& template_name, const QString& data = {});
  /// Writes the project as it is now, with every edit, into another file; a notice says the result.
  void save_copy(const QString& path, bool replaces);
  /// Puts a trace or a memory snapshot into the project, with what the analyses say of it; a notice says the result.
  void import_file(const QString& path);
  /// How the window was left when this project was last closed; null the first time.
  const nlohmann::json& window_state() const { return *window_state_; }

  // The run that is shown.
  void show_run(int64_t id);

  // The step that is loaded.
  void load_step(int64_t step);
  void show_step(const Links& links) override;

  // Training.
  void set_recipe(const Recipe& recipe) override;
  void train(const projects::TrainOptions& options = {}) override;
  void pause();
  void resume();
  void step_once();
  void stop();
  void checkpoint();
  /// Goes on with a run that has ended before its last step, from its last checkpoint.
  void go_on(int64_t run);
  bool can_go_on(int64_t run) const;
  /// Goes on with a run that has ended, from its last checkpoint, with what of the recipe of the next run may change.
  void continue_run(int64_t run);
  bool can_continue(int64_t run) const;
  std::optional<Recipe> training_recipe() const override;
  void change_training() override;
  // Runs as a whole.
  void describe_run(int64_t run, const QString& name, const QString& note, const QStringList& tags);
  void delete_runs(const std::vector<int64_t>& runs) override;
  void restore_runs(const std::vector<int64_t>& runs);
  /// The test split under the state after a step of a run; a notice says the result.
  void evaluate(int64_t run, int64_t step);
  void look_into_sample(int64_t row) override;
  /// Writes that state in the format of the file's name and compares what is read back; a notice says the result.
  void export_run(int64_t run, int64_t step, const QString& path);
  /// Measures an exported file against a state of a run, and writes its certificate beside it.
  void certify(int64_t run, int64_t step, const QString& path);
  /// Tells whether a file still is what was certified, and what is not.
  void verify_certified(const QString& path);
  /// Writes that state as an ONNX model in fewer bits; a notice says what it costs, and the view Quantization of which
  /// layer.
  void export_quantized(int64_t run, int64_t step, const QString& path, const projects::QuantizeOptions& options);
  void plan_quantization(int64_t run, int64_t step) override;
  /// The weights of that state, once they are there.
  void read_model(int64_t run, int64_t step, std::function<void(std::shared_ptr<const projects::TrainedModel>)> then);
  /// Writes a project of the same model with fewer channels; a notice says what that costs, and opens it.
  void prune(int64_t run, int64_t step, const QString& path, const projects::ShrinkOptions& options);
  /// The digest of everything that later steps depend on, after a step of a run; a notice says it, to be copied.
  void tell_digest(int64_t run, int64_t step);
  /// Trains a step of the model and the recipe beside everything, with an eye on sizes that were broadcast to what is
  /// likely not meant; a notice says what was found.
  void find_broadcasts();
  /// Writes everything about a run and that state of it as one page; a notice says where.
  void write_report(int64_t run, int64_t step, const QString& path);
  /// The same of a trace, a snapshot or a model file that is open.
  void write_document_report(int document, const QString& path);
  bool training() const override { return driver_ != nullptr; }
  bool model_fits() const override;
  std::vector<projects::RunStatus> statuses() const override;
  bool trains(int64_t run) const override;
  void begin_sweep(const std::string& name, const projects::Settings& keys, const std::vector<Attr>& attrs) override;
  void resume_sweep(int64_t sweep) override;
  void stop_sweep() override;
  void rename_sweep(int64_t sweep, const std::string& name) override;
  void delete_sweep(int64_t sweep) override;
  void restore_sweep(int64_t sweep) override;
  void log(const QString& line, bool bad = false);
  /// A line each; warnings look like it.
  void log(const std::vector<data::Remark>& remarks);
  void fail(const QString& title, const QString& message, const QString& hint) override;
  /// What an event's handler threw (Note [The net under the event loop]): told, and the model on the canvas is saved at
  /// once.
  void caught(const QString& where, const QString& message, const QString& hint);
  /// No job runs or waits and nothing is on its way to the views.
  bool idle() const;
  /// Pictures and tests: no time of day in the log.
  void set_fixed_clock(bool fixed) { fixed_clock_ = fixed; }

  BuilderModel& builder;          ///< the model that is edited and trained
  TrainingModel& training_model;  ///< the curves of the run that is shown

 signals:
  void leaving();      ///< the project that is open, which another one or none takes the place of
  void open_failed();  ///< of the problem that was told last
  void first_read(tenon::views::Document::Kind kind);  ///< a file is read, and nothing is open yet
  void problem(const QString& title, const QString& message, const QString& hint);
  /// Something to know, with a button that does something about it.
  void notice(const tenon::views::Notice& notice);

 private:
  struct Opened;
  /// A run that trains, as it was when it was last looked at.
  struct Trained {
    std::shared_ptr<projects::RunDriver> driver;
    projects::RunStatus status;
    std::vector<projects::MetricRow> rows;  ///< all that it has recorded since it was begun or gone on with
    std::vector<projects::RunEvent> events = {};
  };
  std::shared_future<void> arranged_for(Document::Kind kind);
  void read(const QString& path, Document::Kind kind);
  void was_read(const QString& path, Document document);
  // What is seen of a file while it is read: Note [Beginnings].
  void show_beginning(const QString& path, Document::Kind kind, int id, size_t bytes);
  void see_more();
  /// That of this file; of any where none is named.
  void drop_beginning(const QString& path);
  void reading_cancelled();
  void keep(int id);
  void tell_left_out(int id);
  void tell_mended(int id);
  void show_document(int id);
  void opened(std::shared_ptr<Opened> result, bool start_training);
  void leave_project();
  void show_project(std::shared_ptr<projects::Project> project, ProjectContents contents);
  void refresh_project();
  void take(ProjectContents contents, int edits);
  void load_metrics();
  void show_again();
  void tick();
  void let_go(std::shared_ptr<projects::RunDriver> driver, const projects::RunStatus& status);
  void let_go_of_all();
  void adopt(std::shared_ptr<projects::RunDriver> driver);
  void lead(Trained run);
  void tell_begins(const projects::RunDriver& driver);
  void tell_ended(const projects::RunStatus& status);
  void start_driver(projects::TrainOptions options, bool then_step);
  /// Calls `make` on the file thread, then trains what it gives; null: there is nothing to train.
  void start_driver(const QString& title, std::function<std::shared_ptr<projects::RunDriver>(const Jobs::Report&)> make,
                    bool then_step);
  void save_edits();
  void train_next_trial();
  void train_beside(std::shared_ptr<projects::RunDriver> driver);
  bool follow_beside();
  bool room_for_another() const;
  void trial_ended(projects::RunStatus::State how);
  void no_further_trial();
  void save_model();
  void save_recipe();
  void save_last_edits();
  // What others do to the project and to the files beside it (workbench_others.cpp).
  void look_at_documents();
  void tell_changed(int id, bool cut);
  void look_at_file();
  const projects::RunInfo* trained_elsewhere() const;
  bool ask_to_train_beside(const QString& title, std::function<void()> train);
  void take_recipe(Recipe recipe);
  void take_model(const ModelSpec& model);
  void tell_replaced_model();
  void tell_interrupted();
  void tell_changes(const projects::RunStatus& before);
  void write(const QString& title, std::function<void(projects::Project&)> work, std::function<void()> done);
  /// Offers to bring back what was deleted, while this project is open and it is `gone`.
  void tell_deleted(const QString& said, const QString& what_stays, std::function<void()> restore,
                    std::function<bool()> gone);
  void tell_blocked(const projects::RunStatus& before);
  void follow_watches(const projects::RunStatus& before);
  void show_watch_hits(std::vector<WatchHit> hits);
  /// `live`: those of the run so far.
  void follow_events(projects::RunDriver& driver, const projects::RunStatus& status,
                     std::vector<projects::RunEvent>& live);
  void show_events(std::vector<projects::RunEvent> events);
  void tell_done(const QString& title, const std::string& text, const QString& button = {},
                 std::function<void()> act = {});

  std::shared_ptr<projects::RunDriver> driver_;
  std::vector<Trained> beside_;  ///< further trials of the sweep; whenever driver_ ends, the first takes its place
  bool round_is_full_ = false;   ///< the sweep has no further trial until one of those at work has ended
  int64_t ended_trials_ = 0;     ///< of every sweep
  int64_t asked_after_ = 0;      ///< ended_trials_ when the sweep was last asked for a trial
  std::shared_ptr<projects::SharedEdits> edits_;
  Recipe file_recipe_;              ///< as the file had it when it was last read or written; contents_.recipe is edited
  int64_t others_seen_ = 0;         ///< Project::version_of_others() of what is seen
  std::set<int64_t> trained_here_;  ///< runs of the project
  bool beside_others_ = false;      ///< what is begun now may train beside a run of another window
  std::shared_ptr<const nlohmann::json> window_state_;
  int next_document_ = 1;
  QElapsedTimer read_clock_;    ///< since a file was last asked for
  QTimer more_;                 ///< for a longer beginning
  int begun_id_ = 0;            ///< that the document will have whose beginning is shown
  size_t begun_bytes_ = 0;      ///< of that beginning
  int64_t begun_after_ms_ = 0;  ///< when it was there
  bool takes_over_ = false;     ///< the whole is taking its place
  std::vector<projects::MetricRow> live_rows_;
  std::vector<WatchHit> live_hits_;              ///< where a watch of the run that trains began to hold
  std::vector<projects::RunEvent> live_events_;  ///< what the run that trains did on its way
  QTimer tick_, save_timer_;
  QTimer look_;               ///< for what others do to the project
  QTimer look_beside_;        ///< and to what is open beside it
  QTimer save_again_;         ///< a save that failed is tried again
  bool unsaved_ = false;      ///< the model on the canvas is newer than the file's
  bool save_failed_ = false;  ///< and that was told
  bool recipe_unsaved_ = false, recipe_save_failed_ = false;
  int recipe_edits_ = 0;
  bool stopping_ = false;                       ///< the run was asked to end
  std::optional<projects::TrainOptions> next_;  ///< a branch of the run that is being stopped for it
  bool sweep_begins_ = false;                   ///< its first trial is on the way
  bool fixed_clock_ = false;
};

}  // namespace tenon::views
