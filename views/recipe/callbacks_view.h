#pragma once
#include <functional>
#include <string>

#include "engine/train/callback.h"
#include "engine/train/recipe.h"
#include "views/recipe/row_list_view.h"

class QGridLayout;
class QPushButton;

namespace tenon::views {

/// The callbacks of a recipe: those that are on in the order in which they act, each with what it does, its settings
/// and the way to its keys; a menu of those that may be added.
class CallbacksView : public RowList {
  Q_OBJECT
 public:
  explicit CallbacksView(QWidget* parent);
  void set_recipe(const Recipe& recipe);
  std::function<void(const Recipe&)> on_edit;
  /// Leads to the editor of a key.
  std::function<void(const QString& key)> on_key;

 private:
  void fill(QGridLayout* grid);
  void add_row(QGridLayout* grid, int at, const CallbackRow& row);
  QWidget* make_settings(const CallbackRow& row, QWidget* parent);
  void add_buttons(class QHBoxLayout* box, const CallbackRow& row);
  QPushButton* make_add(QWidget* parent);

  Recipe recipe_;
  std::vector<CallbackRow> rows_;
  std::string shown_;  ///< what the rows say: they are made anew where that changes
};

}  // namespace tenon::views
