#pragma once
#include <QFrame>
#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace tenon::views {

/// A field to type into and the best matches under it: the command palette, go-to and the list of layers are all this.
class Picker : public QFrame {
  Q_OBJECT
 public:
  struct Item {
    QString text, note, keys;
    std::function<void()> run;
  };
  /// What can be chosen for what was typed, best first.
  using Source = std::function<std::vector<Item>(const QString& typed)>;

  /// In sentences, where nothing fits what was typed: what was searched, and what can be typed.
  using Missed = std::function<QStringList(const QString& typed)>;

  explicit Picker(QWidget* parent);
  void open(const QString& hint, Source source, Missed missed, const QString& typed = {}, QPoint at = {-1, -1},
            int width = 560);
  QLineEdit* field() const { return field_; }
  QListWidget* list() const { return list_; }

 protected:
  bool eventFilter(QObject* o, QEvent* e) override;

 private:
  void fill();
  void fit_height();
  void choose(int row);
  QLineEdit* field_;
  QListWidget* list_;
  Source source_;
  Missed missed_;
  std::vector<Item> items_;
  int most_height_ = 420;
};

}  // namespace tenon::views
