#pragma once
#include <QTimer>

#include "views/frame/view.h"
#include "views/memory/memory_model.h"

namespace tenon::views {

class MemoryView : public View {
  Q_OBJECT
 public:
  MemoryView(const ViewDef& def, Bench& bench, QWidget* parent);
  ~MemoryView() override;
  bool idle() const override { return View::idle() && !later_.isActive(); }

 private:
  MemoryModel& model_;
  void refresh();
  TableList *live_, *categories_;
  QLabel* at_;
  QTimer later_;
};

}  // namespace tenon::views
