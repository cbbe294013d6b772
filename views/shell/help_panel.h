#pragma once
#include <QFrame>
#include <QPointer>

#include "views/frame/commands.h"
#include "views/frame/view.h"

class QVBoxLayout;

namespace tenon::views {

/// What F1 opens: what a view shows, what mouse and keys do in it, and its commands. Stands over the window beside the
/// view until Escape or F1.
class HelpPanel : public QFrame {
  Q_OBJECT
 public:
  HelpPanel(Commands& commands, QWidget* window);
  /// `commands`: the ids of the view's own.
  void open(View* view, const QStringList& commands);
  void close_help();
  View* view() const { return view_; }

 protected:
  void keyPressEvent(QKeyEvent* e) override;

 private:
  /// `head`: tr_later()
  void add(const char* head, const QString& text);
  void place();

  Commands& commands_;
  QPointer<View> view_;
  QPointer<QWidget> before_;  ///< had the keys
  QWidget* page_ = nullptr;
  QVBoxLayout* box_;
};

}  // namespace tenon::views
