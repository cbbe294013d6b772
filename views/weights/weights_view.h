#pragma once
#include <QPointer>
#include <memory>
#include <vector>

#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/weights/weights_model.h"

class QComboBox;
class QGridLayout;
class QToolButton;

namespace tenon::views {

/// What the next run begins with: a file of weights, how its names meet the model's, and what is frozen. All of it are
/// keys of the recipe; the table beside them shows what they make of the file.
class WeightsView : public View {
  Q_OBJECT
 public:
  WeightsView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;

 protected:
  void came_into_sight() override { read(); }

 private:
  void build();
  void add_key(QGridLayout* grid, const char* key, const QString& label, int row, int column);
  void refresh();
  /// Reads the file anew, away from the UI thread, where anything that the table depends on has changed.
  void read();
  void take(WeightMap map, const std::string& from, const QString& error);
  void choose_file();
  void choose_row(const Table::Row& was);
  void refresh_row();
  void send();

  WeightsModel model_;
  std::string read_of_;  ///< what the table was made of; empty: it is to be made anew
  TableList* list_;
  ElidedLabel *said_, *row_;
  ViewBar* below_;
  QComboBox* target_;
  QToolButton *seed_, *use_rule_;
  std::vector<std::pair<const char*, QPointer<QWidget>>> editors_;
  int source_ = -1;  ///< the tensor of the file whose target is chosen; -1: none
};

}  // namespace tenon::views
