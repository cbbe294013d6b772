#pragma once
#include <QTimer>

#include "views/frame/view.h"

namespace tenon::views {

class MemoryView : public View {
  Q_OBJECT
 public:
  explicit MemoryView(Workbench& bench, QWidget* parent = nullptr);
  bool idle() const override { return View::idle() && !later_.isActive(); }

 private:
  void refresh();
  TableList *live_, *categories_;
  QLabel* at_;
  QTimer later_;
};

}  // namespace tenon::views
