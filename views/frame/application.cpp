#include "views/frame/application.h"

#include <QAction>
#include <QEvent>
#include <QFile>
#include <QKeyEvent>
#include <QLabel>
#include <QLibraryInfo>
#include <QLineEdit>
#include <QLocale>
#include <QMetaEnum>
#include <QPlainTextEdit>
#include <QPointer>
#include <QRegularExpression>
#include <QTextEdit>
#include <QTranslator>
#include <utility>

#include "core/error.h"
#include "views/shared/language.h"
#include "views/shared/settings.h"

namespace tenon::views {

namespace {
QString words_for(const QPointer<QObject>& receiver, QEvent::Type type) {
  const char* kind = QMetaEnum::fromType<QEvent::Type>().valueToKey(type);
  QString name = QObject::tr("an object that is gone");
  if (receiver)
    name = receiver->objectName().isEmpty() ? QString(receiver->metaObject()->className()) : receiver->objectName();
  return QObject::tr("%1 in %2").arg(kind ? kind : QObject::tr("an event"), name);
}

/// What QObject::tr() asks: the one catalogue, whatever class the text is said in.
class Texts : public QTranslator {
 public:
  using QTranslator::QTranslator;
  QString translate(const char*, const char* english, const char*, int) const override {
    const std::string* words = translation(english);
    return words ? QString::fromStdString(*words) : QString();
  }
  bool isEmpty() const override { return false; }
};

/// "de" of the settings or of the desktop; "en" where there is no such language.
QString wanted_language() {
  QString wanted = qEnvironmentVariable("TENON_LANGUAGE");
  if (wanted.isEmpty()) wanted = QString::fromStdString(settings::text("language"));
  if (wanted == "system") wanted = QLocale::system().name();
  return wanted.section(QRegularExpression("[_.-]"), 0, 0).toLower();
}
}  // namespace

Application::Application(int& argc, char** argv) : QApplication(argc, argv) { speak(wanted_language()); }

bool Application::speak(const QString& language) {
  for (QTranslator* t : std::exchange(translators_, {})) delete t;  // which takes it out
  set_language({});
  QFile file(":/languages/" + language + ".mo");
  if (!file.open(QIODevice::ReadOnly)) return language == "en";
  const QByteArray bytes = file.readAll();
  set_language(Catalogue::of_mo({bytes.constData(), static_cast<size_t>(bytes.size())}));
  translators_ << new Texts(this);
  // Qt's own words, of its buttons and file dialogs, where the distribution's package is installed.
  if (auto* words = new QTranslator(this);
      words->load("qtbase_" + language, QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
    translators_.prepend(words);
  for (QTranslator* t : translators_) installTranslator(t);
  return true;
}

// Note [A drag within a drag]
// Words that are dragged past the edge of a text scroll it by a timer, whose handler is that of a moved mouse: it
// begins the drag anew, within the loop of the first one. Qt 6.4 then ends with a drag that is gone, and the program
// with it. So while a text handles a move or a timer it gets no timer.
static QWidget* text_of(QObject* receiver) {
  for (QObject* o : {receiver, receiver->parent()})
    if (qobject_cast<QPlainTextEdit*>(o) || qobject_cast<QTextEdit*>(o)) return static_cast<QWidget*>(o);
  return nullptr;
}

// Note [Keys of a field, keys of a command]
// Qt's text fields take letters with Ctrl that editors of long ago moved by (on X11 Ctrl+E is "to the end of the line",
// Ctrl+K deletes to there), and a command with these keys would do nothing wherever the cursor stands in a field. A
// field keeps what everybody knows of fields: the clipboard, undo, and all of it selected. Every other letter with Ctrl
// is the command's that says so in its menu.
static bool is_of_command(QObject* receiver, const QKeyEvent& e) {
  auto* field = qobject_cast<QWidget*>(receiver);
  if (!qobject_cast<QLineEdit*>(field) && !text_of(receiver)) return false;
  if (!e.modifiers().testFlag(Qt::ControlModifier) || e.key() < Qt::Key_A || e.key() > Qt::Key_Z) return false;
  for (const auto known : {QKeySequence::Copy, QKeySequence::Cut, QKeySequence::Paste, QKeySequence::Undo,
                           QKeySequence::Redo, QKeySequence::SelectAll})
    if (e.matches(known)) return false;
  const QKeySequence keys(e.keyCombination());
  for (QWidget* w = field; w; w = w->parentWidget())
    for (const QAction* a : w->actions())
      if (a->isEnabled() && a->shortcuts().contains(keys)) return true;
  return false;
}

/// Labels and tooltips show names out of files. Qt would take one with a "<b>" in it for a page, and load its images.
static void take_words_as_they_are(QObject* receiver) {
  if (auto* label = qobject_cast<QLabel*>(receiver); label && label->textFormat() == Qt::AutoText)
    label->setTextFormat(Qt::PlainText);
}

bool Application::notify(QObject* receiver, QEvent* event) {
  const QEvent::Type type = event->type();
  if (type == QEvent::Polish) take_words_as_they_are(receiver);
  if (type == QEvent::ShortcutOverride && is_of_command(receiver, *static_cast<QKeyEvent*>(event))) {
    event->ignore();
    return true;
  }
  if (type != QEvent::Timer && type != QEvent::MouseMove) return pass(receiver, event);
  QWidget* text = text_of(receiver);
  if (!text) return pass(receiver, event);
  if (type == QEvent::Timer && busy_text_ == text) return true;
  const QPointer<QWidget> before = std::exchange(busy_text_, text);
  const bool taken = pass(receiver, event);
  busy_text_ = before;
  return taken;
}

bool Application::pass(QObject* receiver, QEvent* event) {
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
