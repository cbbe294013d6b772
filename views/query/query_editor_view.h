#pragma once
#include <functional>

#include "projects/query/query_table.h"
#include "views/frame/text_editor.h"
#include "views/frame/theme.h"

namespace tenon::views {

class WordOffer;

/// Where a query is typed. It completes words as one types, or when Ctrl+Space asks: Tab or Enter takes the one that is
/// marked. Ctrl+Enter asks the query.
class QueryEditor : public TextEditor {
  Q_OBJECT
 public:
  explicit QueryEditor(QWidget* parent = nullptr);
  void set_kind(projects::QueryKind kind) { kind_ = kind; }
  void set_theme(ThemeName theme);
  QString text() const { return toPlainText(); }
  /// In place of what stands there; Ctrl+Z brings that back.
  void replace_text(const QString& text);
  /// At the cursor.
  void insert_name(const QString& name);
  std::function<void()> on_run;
  QSize sizeHint() const override { return {400, 96}; }

 protected:
  void keyPressEvent(QKeyEvent* e) override;
  void focusOutEvent(QFocusEvent* e) override;
  /// Tab takes a word while words are offered, and goes on to the next control else.
  bool focusNextPrevChild(bool next) override;

 private:
  void offer(bool asked);
  void take(const QString& word);

  projects::QueryKind kind_ = projects::QueryKind::trace;
  WordOffer* words_;
};

}  // namespace tenon::views
