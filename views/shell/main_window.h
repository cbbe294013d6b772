#pragma once
#include <QComboBox>
#include <QMainWindow>
#include <QPointer>
#include <QSlider>
#include <QTimer>

#include "views/canvas/warm_up.h"
#include "views/frame/commands.h"
#include "views/frame/picker.h"
#include "views/shell/dock_layout.h"
#include "views/shell/workbench.h"

class QToolButton;

namespace tenon::views {

class HelpPanel;
class StartPage;
class Tour;

/// The window: docks round one workbench, one bar for run, device and time travel, commands for everything.
class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(Workbench& bench, ThemeName theme, QWidget* parent = nullptr);
  ~MainWindow() override;

  Workbench& bench() { return bench_; }
  Commands& commands() { return commands_; }
  Picker* picker() const { return picker_; }
  View* view(const QString& id) const;
  /// Brings a view to the front; false where there is none of that id.
  bool show_view(const QString& id);
  void set_theme(ThemeName theme);
  ThemeName theme() const { return theme_; }
  void front_below();
  void set_layout(const QString& name);
  QString layout_name() const { return layout_; }
  QSlider* step_slider() const { return slider_; }
  void open_palette();
  void open_keys();
  void open_goto(const QString& typed = {});
  /// What is opened from now on is among the recent files.
  void remember_files() { remembers_ = true; }
  /// Theme, size of letters and keys as the person wants them, from now on.
  void use_settings();
  /// The view that has the keys; else the one in front of the middle.
  View* current_view() const;
  StartPage* start_page() const { return start_; }
  Tour* tour() const { return tour_; }
  HelpPanel* help() const { return help_; }
  /// No job, no pending frame, no timer that will change the picture.
  bool idle() const;

 protected:
  bool event(QEvent* e) override;
  void contextMenuEvent(QContextMenuEvent* e) override;
  void closeEvent(QCloseEvent* e) override;
  void resizeEvent(QResizeEvent* e) override;
  void showEvent(QShowEvent* e) override;
  void dragEnterEvent(QDragEnterEvent* e) override;
  void dropEvent(QDropEvent* e) override;

 private:
  void add_commands();
  void add_view_commands();
  void add_finish_commands();
  void add_run_commands();
  void describe_run();
  void choose_deleted();
  void add_file_commands();
  void add_picture_commands();
  void add_help_commands();
  void choose_state(const QString& hint, std::function<void(int64_t run, int64_t step)> then);
  void choose_export(int64_t run, int64_t step);
  void choose_quantized(int64_t run, int64_t step, const projects::QuantizeOptions& options);
  void choose_prune(int64_t run, int64_t step);
  QString ask_for_model(const QString& title);
  void choose_report(int64_t run, int64_t step);
  void choose_document_report(int document);
  /// `kind`: takes the one that was chosen; null: the ending says it.
  QString ask_for_file(const projects::RunInfo& run, const QString& title, const QStringList& kinds,
                       const QStringList& endings, QString* kind = nullptr);
  QString ask_for_file(const QString& offered, const QString& title, const QStringList& kinds,
                       const QStringList& endings, QString* kind = nullptr);
  void build_menus();
  void build_bar();
  void build_status();
  void build_banner();
  void refresh_title();
  void refresh_bar();
  void refresh_status();
  void restore_window();
  void restore_from(const nlohmann::json& state);
  void save_window();
  void choose_file();
  void choose_folder();
  void choose_template();
  void choose_recent();
  void open_another_window();
  void choose_build();
  void choose_copy();
  void choose_import();
  /// Asks where a new project goes, and makes it. Without a template its model has only an input.
  void begin_project(const std::string& template_name, const QString& data = {});
  void choose_data(const std::string& template_name);
  /// A new project for a file or folder of one's own, whatever kind of data it is.
  void choose_own_data(bool folder);
  /// A name for a file to write; empty: none was given. `replaces`: where it is there the person is asked.
  QString ask_where(const QString& title, const QString& offered, const QStringList& kinds, bool replaces = true);
  void forget_file(const QString& path);
  /// Writes a setting; where that fails it is told, and what was set holds for this window alone.
  void keep(const std::function<void()>& write);
  /// Among the files of before, where they are kept.
  void remember(const std::string& path, const std::string& kind);
  void use_setting(const std::string& name);
  void empty_cache(const std::function<void()>& then);
  void set_text_size(int pixels);
  void open_settings();
  void open_help();
  void save_view_picture();
  void save_view_table();
  void copy_view_table();
  void open_view_menu(View* view, QPoint at);
  bool nothing_open() const { return !bench_.has_project() && bench_.documents().empty() && !bench_.beginning(); }
  void focus_view();  ///< the keys go to what is looked at
  void refresh_start();
  void fit_start();
  std::vector<Picker::Item> goto_items(const QString& typed);
  QStringList goto_missed(const QString& typed) const;
  void show_problem(const QString& title, const QString& message, const QString& hint);
  void show_notice(const Notice& notice);
  void fit_banner();
  void problem_over();
  void drop_notice();  ///< where what it says is over
  void show_banner(const QString& tone, const QString& text, const QString& button);
  QToolButton* tool(const QString& command, bool with_text);

  Workbench& bench_;
  ThemeName theme_;
  Commands commands_;
  QHash<QString, Dock*> docks_;
  QHash<QString, QStringList> view_commands_;  ///< the ids of each view's own
  StartPage* start_ = nullptr;
  Tour* tour_;
  HelpPanel* help_;
  QPointer<View> last_view_;  ///< that had the keys, or was asked for
  Picker* picker_;
  QString layout_ = "Build";
  /// The one that a file was looked at in while nothing else was open, and the one before it, for the project to come.
  QString file_layout_, before_file_;
  bool fronts_below_ = false;
  bool hid_below_ = false;  ///< nothing there shows a side of the file
  bool shown_once_ = false, keep_layout_ = false, remembers_ = false;
  bool start_aside_ = false;  ///< the person wants to see the views, though nothing is open

  QComboBox* runs_;
  QSlider* slider_;
  QLabel* step_label_;
  QTimer step_timer_;
  WarmUp warm_up_{*this};
  QList<QToolButton*> tools_, layout_buttons_;
  QList<QAction*> spare_words_;  ///< of the bar, which a small screen does without
  QToolBar* banner_;
  QFrame* banner_frame_;
  QLabel* banner_text_;
  QToolButton* banner_action_;
  Notice notice_;                 ///< in the banner, or under the problem in it; without a title: none is
  Notice result_;                 ///< in the banner, over the notice; without `holds`: none is
  bool problem_shown_ = false;    ///< the banner shows a problem
  bool problem_of_open_ = false;  ///< of a file that could not be opened
  bool warned_of_loss_ = false;
  QToolButton *train_button_, *jobs_button_, *warnings_button_;
  QLabel *state_label_, *epoch_label_, *speed_label_, *loss_label_, *live_label_, *peak_label_;
  int warnings_ = 0;
  size_t documents_ = 0;  ///< that were open before the last change of them
};

}  // namespace tenon::views
