#pragma once
#include <QPointer>
#include <map>

#include "views/frame/view.h"
#include "views/recipe/recipe_model.h"

class QGridLayout;
class QLineEdit;
class QScrollArea;
class QToolButton;

namespace tenon::views {

class CallbacksView;
class MemoryStrip;
class WatchListView;

/// The recipe of the next run as a form over every key that has a meaning, from the one list of attributes. Each edit
/// is kept in the project at once, and can be taken back.
class RecipeView : public View {
  Q_OBJECT
 public:
  RecipeView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  bool idle() const override;

 protected:
  void came_into_sight() override;

 private:
  struct Row {
    QPointer<QWidget> editor;
    QPointer<ElidedLabel> note;
    QPointer<QToolButton> reset;
  };
  void build();
  void refresh();
  void refresh_last();
  void rebuild();
  void refresh_rows();
  void refresh_give();
  void add_callbacks(QWidget* form);
  void add_watches(QWidget* form);
  void fill_presets(class QMenu* menu);
  void show_key(const QString& key);
  void add_class_counts(QGridLayout* grid, int at);
  void count_classes();
  void add_row(QGridLayout* grid, int at, const RecipeModel::Key& key);
  void edit(const Recipe& next);
  void go_back_to(const Recipe& recipe);
  std::string shape() const;  ///< of the form: its keys, by name

  RecipeModel& model_;
  QScrollArea* scroll_;
  QPointer<QWidget> form_;
  MemoryStrip* memory_;
  QLineEdit* search_;
  ElidedLabel* said_;
  QToolButton *as_last_, *as_, *give_;
  std::map<std::string, Row> rows_;  ///< by key
  std::string shape_;
  std::string counted_;  ///< the classes of the data, in words; empty: not counted
  std::string counted_of_;
  QPointer<ElidedLabel> classes_;
  QPointer<CallbacksView> callbacks_;
  QPointer<WatchListView> watches_;
  bool compares_training_ = false;  ///< with the run that trains instead of the last one
  std::weak_ptr<projects::Project> of_;
};

}  // namespace tenon::views
