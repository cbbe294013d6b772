#pragma once
#include <QApplication>
#include <QList>
#include <QPointer>
#include <functional>

class QTranslator;

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
  /// Speaks the language of the settings; TENON_LANGUAGE in the environment holds over them.
  Application(int& argc, char** argv);
  /// The language of windows that are made from now on: "de", "en"; false where there is none of that name: English.
  bool speak(const QString& language);
  /// Told of what was thrown: where ("a click into details"), the message, and what to do.
  std::function<void(const QString& where, const QString& message, const QString& hint)> on_exception;
  bool notify(QObject* receiver, QEvent* event) override;

  /// Calls the application's on_exception for the exception that is being handled, from within a catch block.
  static void report(const QString& where);

 private:
  /// The event, with the net under it.
  bool pass(QObject* receiver, QEvent* event);

  QList<QTranslator*> translators_;
  QPointer<QWidget> busy_text_;  ///< see Note [A drag within a drag]
};

}  // namespace tenon::views
