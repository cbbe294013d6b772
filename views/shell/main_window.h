#pragma once
#include <QComboBox>
#include <QMainWindow>
#include <QSlider>
#include <QTimer>

#include "views/frame/commands.h"
#include "views/frame/picker.h"
#include "views/shell/dock_layout.h"
#include "views/shell/workbench.h"

class QToolButton;

namespace tenon::views {

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
  void set_layout(const QString& name);
  QString layout_name() const { return layout_; }
  QSlider* step_slider() const { return slider_; }
  void open_palette();
  void open_keys();
  void open_goto(const QString& typed = {});
  /// What is opened from now on is among the recent files.
  void remember_files() { remembers_ = true; }
  /// No job, no pending frame, no timer that will change the picture.
  bool idle() const;

 protected:
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
  void choose_state(const QString& hint, std::function<void(int64_t run, int64_t step)> then);
  void choose_export(int64_t run, int64_t step);
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
  void choose_template();
  void choose_recent();
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
  Picker* picker_;
  QString layout_ = "Build";
  bool shown_once_ = false, keep_layout_ = false, remembers_ = false;

  QComboBox* runs_;
  QSlider* slider_;
  QLabel* step_label_;
  QTimer step_timer_;
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
