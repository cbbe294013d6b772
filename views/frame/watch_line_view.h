#pragma once
#include <QLineEdit>
#include <string>
#include <vector>

namespace tenon::views {

class WordOffer;

/// A line for the text of a watch, or of a condition alone, that offers what may stand where one types. Ctrl+Space asks
/// for it.
class WatchLine : public QLineEdit {
  Q_OBJECT
 public:
  explicit WatchLine(QWidget* parent);
  /// Of the model, by name.
  void set_layers(std::vector<std::string> layers) { layers_ = std::move(layers); }

 protected:
  void keyPressEvent(QKeyEvent* e) override;
  void focusOutEvent(QFocusEvent* e) override;
  bool focusNextPrevChild(bool next) override;

 private:
  void offer(bool asked);
  void take(const QString& word);

  WordOffer* words_;
  std::vector<std::string> layers_;
};

}  // namespace tenon::views
