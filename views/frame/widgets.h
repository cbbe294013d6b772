#pragma once
#include <QFrame>
#include <QLabel>
#include <QPushButton>
#include <QStackedLayout>
#include <QTimer>
#include <functional>

#include "views/frame/jobs.h"
#include "views/frame/theme.h"

class QDialog;
class QProgressBar;
class QToolButton;
class QVBoxLayout;

namespace tenon::views {

/// One sentence on what would be here, and the button that makes it so; or how far the work on it is.
class EmptyState : public QWidget {
  Q_OBJECT
 public:
  explicit EmptyState(QWidget* parent = nullptr);
  void set(const QString& sentence, const QString& button = {}, std::function<void()> run = {});
  /// The title of a job and what for, how far it is as a bar with its figures, and Cancel, which calls `cancelled` once
  /// the job was told. Until set() says something else.
  void wait_for(Jobs& jobs, std::function<bool(const Jobs::State&)> which, const QString& what,
                std::function<void()> cancelled = {});
  const QPushButton* button() const { return button_; }

 private:
  QLabel *label_, *figures_;
  QProgressBar* bar_;
  QPushButton* button_;
  std::function<void()> run_;
  QTimer progress_;
  Jobs* waits_for_ = nullptr;
  std::function<bool(const Jobs::State&)> which_;

  void say(const QString& sentence, const QString& button, std::function<void()> run);
  bool show_progress();
};

/// The last row of a dialog: Cancel, which leaves it, and the button that does what the dialog asks for, which comes
/// back. Neither is Enter's by itself.
QPushButton* add_dialog_buttons(QDialog* dialog, QVBoxLayout* box, const QString& name, const QString& text);

/// Hides a widget now and deletes it once no dialog, menu or drag turns the event loop within another: what led here
/// may be the widget's own click, or a drag of words out of it, which goes on with it when its loop ends.
void discard(QWidget* w);

/// A slim bar of controls over a view.
class ViewBar : public QFrame {
  Q_OBJECT
 public:
  explicit ViewBar(QWidget* parent = nullptr);
  void add(QWidget* w, int stretch = 0);
  void add_stretch();
  void add_label(const QString& text);
  QToolButton* add_button(const QString& name, const QString& text, const QString& tip,
                          const std::function<void()>& run);
  /// The button of one of a view's pages; which of them is checked is the view's.
  QToolButton* add_page(const QString& name, const QString& text, const QString& tip,
                        const std::function<void()>& show);
};

/// A label that shortens its text and has the whole as its tooltip: a sentence at its end, by whole parts where it has
/// such ("a · b"), a name or a path in the middle.
class ElidedLabel : public QLabel {
  Q_OBJECT
 public:
  explicit ElidedLabel(const QString& text = {}, QWidget* parent = nullptr);
  void set_text(const QString& text);
  QSize minimumSizeHint() const override { return {24, QLabel::minimumSizeHint().height()}; }
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* e) override;

 private:
  QString full_;
};

}  // namespace tenon::views
