#pragma once
#include <QApplication>
#include <functional>

namespace tenon::views {

/// Qt's application with a net under its event loop: what a handler throws ends that event and nothing else.
///
/// Note [The net under the event loop]
/// Qt lets an exception that leaves a handler run out of main(), which ends the program and with it the run that
/// trains. Each event passes through notify(): what is thrown is caught there, next to the object that threw, so that
/// no frame of Qt's own loop is unwound. The window shows it as a banner and in the log; saving the model on the canvas
/// does not wait for a quiet moment; the training thread never knew of it.
class Application : public QApplication {
 public:
  using QApplication::QApplication;
  /// Told of what was thrown: where ("a click into details"), the message, and what to do.
  std::function<void(const QString& where, const QString& message, const QString& hint)> on_exception;
  bool notify(QObject* receiver, QEvent* event) override;

  /// Calls the application's on_exception for the exception that is being handled, from within a catch block.
  static void report(const QString& where);
};

}  // namespace tenon::views
