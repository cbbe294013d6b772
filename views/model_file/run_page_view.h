#pragma once
#include <QTimer>
#include <QWidget>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "views/frame/bench.h"
#include "views/frame/theme.h"
#include "views/model_file/run_outputs.h"

class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QSpinBox;
class QStackedWidget;
class QToolButton;

namespace tenon::views {

class EmptyState;
class SceneCanvas;
class TableList;
class ViewBar;

/// The page of a model file that runs it: a line an input with its shape and where its values come from, and what came
/// out. The model is read once the page is seen, and kept with what came out of it while the file is open.
class RunPage : public QWidget {
  Q_OBJECT
 public:
  using File = std::shared_ptr<const formats::ModelFile>;
  RunPage(Bench& bench, QWidget* parent);
  ~RunPage() override;
  /// Null: none.
  void show_file(int document, const File& file);
  /// Forgets the files that are not among these documents.
  void keep(const std::set<int>& documents);
  /// It is in sight: what it is about is read.
  void look();
  void run();
  bool can_run() const;
  void set_theme(ThemeName theme);
  bool idle() const;
  /// A node of the file's graph failed.
  std::function<void(int node)> on_fault;
  /// Leads to the node that failed.
  std::function<void()> on_show_fault;

 private:
  /// Of one input.
  struct Line {
    QLineEdit *shape, *file;
    QComboBox* from;
    QToolButton* choose;
  };
  struct Shown {
    File file;
    std::shared_ptr<const formats::OnnxModel> model;
    std::vector<formats::OnnxValue> inputs;
    NoRun no_run;
    std::vector<formats::OnnxFeed> feeds;
    std::vector<QString> shapes;  ///< as they were typed
    std::shared_ptr<const ModelRun> run;
    int fault = -1;  ///< the node that failed
  };
  QWidget* build_bar(QWidget* parent);
  void build();
  Shown* shown();
  void read_model();
  void build_lines();
  void take_lines();
  void follow_lines();
  std::vector<formats::OnnxFeed> feeds(Shown& s);
  void choose_file(size_t input);
  void end(int document, std::shared_ptr<const ModelRun> run);
  void stop();
  void refresh();
  void show_progress();
  void say(const QString& text, bool bad);
  void read_slice();
  void save();

  Bench& bench_;
  RunOutputs outputs_;
  std::map<int, Shown> states_;  ///< by document
  int document_ = -1;
  int running_ = -1;  ///< the document whose model runs
  QStackedWidget* pages_;
  EmptyState* empty_;
  QWidget* inputs_ = nullptr;
  QGridLayout* grid_;
  std::vector<Line> lines_;
  const formats::OnnxModel* lines_of_ = nullptr;
  QToolButton *run_, *stop_, *fault_, *save_;
  QSpinBox* seed_;
  QLabel* said_;
  TableList* list_;
  SceneCanvas* picture_;
  QTimer progress_;
};

}  // namespace tenon::views
