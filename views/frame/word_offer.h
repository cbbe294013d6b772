#pragma once
#include <QObject>
#include <QString>
#include <functional>
#include <string>
#include <vector>

class QCompleter;
class QFocusEvent;
class QKeyEvent;
class QRect;
class QStringListModel;
class QWidget;

namespace tenon::views {

/// Words that are offered below the cursor of a field as one types, or when Ctrl+Space asks: Tab or Enter takes the one
/// that is marked, Escape none. The field asks before and after each key, when it loses the focus, and before Tab leads
/// to the next one.
class WordOffer : public QObject {
  Q_OBJECT
 public:
  /// `name`: of the list. `offer`: finds the words and shows them; `asked` where Ctrl+Space was pressed. `take`: puts
  /// one in its place.
  WordOffer(QWidget* field, const QString& name, std::function<void(bool asked)> offer,
            std::function<void(const QString& word)> take);
  bool is_open() const;
  void hide();
  /// Below `at`, in which the cursor stands.
  void show(const std::vector<std::string>& words, QRect at);
  /// Whether the list takes this key, so that the field must ignore it.
  bool takes(const QKeyEvent* e);
  /// Ctrl+Space asked for words; the field does nothing with it.
  bool asks(const QKeyEvent* e);
  /// Behind a key that the field took: a letter, '_' or `opener` asks for words, others end the offer. `was_open`:
  /// before it.
  void typed(const QKeyEvent* e, QChar opener, bool was_open);
  void left(const QFocusEvent* e);

 private:
  QCompleter* completer_;
  QStringListModel* words_;
  std::function<void(bool)> offer_;
};

}  // namespace tenon::views
