#pragma once
#include <vector>

#include "tracing/record/step_walk.h"
#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/shared/step_cursor.h"

class QLineEdit;
class QStackedWidget;
class QToolButton;

namespace tenon::views {

/// The step that is loaded, op by op: the op one stands at is the one that is selected in the whole window.
class WalkView : public View {
  Q_OBJECT
 public:
  WalkView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;

 private:
  QWidget* make_moves(QWidget* parent);
  QWidget* make_tables(QWidget* parent);
  QWidget* make_breaks(QWidget* parent);
  TableList* make_list(const QString& name, const QString& of, QWidget* parent);
  void refresh();
  void follow();
  void fill();
  bool walks() const { return static_cast<bool>(bench_.links()); }
  void go(uint32_t seq);
  void move(tracing::WalkMove how, bool back);
  /// What stands in the line, or why it is none.
  void judge();
  void run_on(bool back);
  void show_page(int page);

  StepCursor cursor_;
  std::vector<tracing::TensorLife> lives_;  ///< of the step that is loaded
  ElidedLabel *at_, *alive_text_, *answer_;
  TableList *ops_, *tensors_, *alive_;
  QStackedWidget* pages_;
  QToolButton *show_tensors_, *show_alive_;
  QLineEdit* breaks_;
  std::vector<QToolButton*> runs_;
};

}  // namespace tenon::views
