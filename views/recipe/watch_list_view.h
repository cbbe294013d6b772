#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/train/recipe.h"
#include "engine/train/watch.h"
#include "views/recipe/row_list_view.h"

class QGridLayout;
class QPushButton;

namespace tenon::views {

/// The watches of a recipe: a line each with what it looks for, its fault where it is none, and what is done; a menu of
/// examples to begin with.
class WatchListView : public RowList {
  Q_OBJECT
 public:
  explicit WatchListView(QWidget* parent);
  void set_recipe(const Recipe& recipe, const std::vector<std::string>& layers);
  std::function<void(const Recipe&)> on_edit;

 private:
  void fill(QGridLayout* grid);
  void add_row(QGridLayout* grid, int place, const WatchRow& row);
  QPushButton* make_add(QWidget* parent);
  /// Where the watch of that condition stands; behind the last where there is none.
  size_t row_of(const std::string& condition) const;

  Recipe recipe_;
  std::vector<std::string> layers_;
  std::vector<WatchRow> rows_;
  std::string shown_;  ///< what the rows say: they are made anew where that changes
};

}  // namespace tenon::views
