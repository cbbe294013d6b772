#pragma once
#include <QTimer>

#include "views/frame/view.h"

class QGridLayout;

namespace tenon::views {

/// Running and waiting jobs with their progress and a way to cancel them.
class JobsView : public View {
  Q_OBJECT
 public:
  JobsView(const ViewDef& def, Bench& bench, QWidget* parent);

 private:
  void refresh();
  QWidget* page_;
  QWidget* rows_ = nullptr;
  QTimer timer_;
  std::vector<int> shown_;
};

}  // namespace tenon::views
