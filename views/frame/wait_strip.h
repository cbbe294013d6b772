#pragma once
#include <QFrame>
#include <QLabel>
#include <QTimer>

#include "views/frame/jobs.h"

namespace tenon::views {

/// One line over what a view still shows while a job works out what will take its place: what is seen, what comes, how
/// far it is, and Cancel.
class WaitStrip : public QFrame {
  Q_OBJECT
 public:
  explicit WaitStrip(QWidget* parent = nullptr);
  /// Until no job of this tag is left. `seen`: "step 40"; `cancelled` is called once the job was told.
  void wait_for(Jobs& jobs, const QString& tag, const QString& seen, std::function<void()> cancelled);
  /// What is shown now waits for nothing.
  void stop();
  QString text() const { return label_->text(); }

 private:
  void refresh();

  QLabel* label_;
  QTimer timer_;
  Jobs* jobs_ = nullptr;
  QString tag_, seen_;
  std::function<void()> cancelled_;
};

}  // namespace tenon::views
