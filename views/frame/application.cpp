#include "views/frame/application.h"

#include <QEvent>
#include <QMetaEnum>
#include <QPointer>

#include "core/error.h"

namespace tenon::views {

namespace {
QString words_for(const QPointer<QObject>& receiver, QEvent::Type type) {
  const char* kind = QMetaEnum::fromType<QEvent::Type>().valueToKey(type);
  QString name = "an object that is gone";
  if (receiver)
    name = receiver->objectName().isEmpty() ? QString(receiver->metaObject()->className()) : receiver->objectName();
  return QString("%1 in %2").arg(kind ? kind : "an event", name);
}
}  // namespace

bool Application::notify(QObject* receiver, QEvent* event) {
  const QEvent::Type type = event->type();
  const QPointer<QObject> who(receiver);  // may be gone once its handler has thrown
  try {
    return QApplication::notify(receiver, event);
  } catch (...) {
    report(words_for(who, type));
  }
  return false;
}

void Application::report(const QString& where) {
  const Error error = caught_error();
  const QString message = QString::fromStdString(error.message()), hint = QString::fromStdString(error.hint());
  // Told in a turn of its own: whoever threw may be in the middle of drawing.
  auto* app = dynamic_cast<Application*>(QCoreApplication::instance());
  if (!app || !app->on_exception) return qWarning("%s: %s", qPrintable(where), qPrintable(message));
  QMetaObject::invokeMethod(
      app,
      [app, where, message, hint] {
        try {
          if (app->on_exception) app->on_exception(where, message, hint);
        } catch (
            ...) {  // the report itself failed: told where nothing can throw, or it would report itself without end
          qWarning("%s: %s (and it could not be shown)", qPrintable(where), qPrintable(message));
        }
      },
      Qt::QueuedConnection);
}

}  // namespace tenon::views
