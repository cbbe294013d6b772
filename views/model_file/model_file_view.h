#pragma once
#include <QTimer>

#include "views/frame/view.h"
#include "views/model_file/model_file_model.h"

class QLineEdit;
class QStackedWidget;
class QToolButton;

namespace tenon::views {

class CodePage;
class RunPage;

/// The model file that is shown. Its outline, layouts and slices are worked out between the short reads of the window,
/// statistics as a job of their own that can be cancelled.
class ModelFileView : public View {
  Q_OBJECT
 public:
  ModelFileView(const ViewDef& def, Bench& bench, QWidget* parent);
  ~ModelFileView() override;
  std::vector<Command> commands() override;
  void set_theme(ThemeName theme) override;
  bool idle() const override;

 protected:
  void contextMenuEvent(QContextMenuEvent* e) override;
  void came_into_sight() override;

 private:
  void build();
  void build_bar(ViewBar* bar);
  void refresh();
  void follow();
  void look_at_page();
  void outline();
  void lay_out(const ModelFileModel::File& file, std::set<int> open);
  /// The slice and the statistics of the chosen tensor, as far as they are not there.
  void read();
  void read_stats(const ModelFileModel::File& file, int tensor);
  void stop(const ModelFileModel::File& file, int tensor, const QString& why);
  void cancel();
  void show_progress();
  void show_page(ModelFileModel::Page page);
  void copy_name();

  ModelFileModel& model_;
  QLineEdit* search_;
  ElidedLabel* found_;
  QToolButton *tensors_, *graph_, *code_, *run_, *unfold_, *fold_, *weights_, *build_;
  QStackedWidget* pages_;
  CodePage* code_page_;
  RunPage* run_page_;
  QTimer progress_;
  ModelFileModel::File reading_;  ///< whose statistics were asked for last
  int reading_tensor_ = -1;
};

}  // namespace tenon::views
