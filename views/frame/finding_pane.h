#pragma once
#include <QWidget>
#include <functional>
#include <memory>

#include "views/frame/theme.h"
#include "views/shared/finding_page.h"

class QLabel;
class QTabWidget;

namespace tenon::views {

class FigureRow;
class TableList;

/// A FindingPage as widgets: its sentence, its figures, its tables as tabs, and under them the words of a row that the
/// table has no room for.
class FindingPane : public QWidget {
  Q_OBJECT
 public:
  /// `name` begins the names of what is in it: "findings.sentence".
  FindingPane(const QString& name, QWidget* parent);
  /// Null: nothing.
  void set_page(std::shared_ptr<const FindingPage> page);
  const std::shared_ptr<const FindingPage>& page() const { return page_; }
  /// A sentence in the place of the page's.
  void say(const QString& sentence);
  /// A tab behind those of the tables, which is seen where `show_last` says so.
  void set_last(QWidget* tab, const QString& title);
  void show_last(bool shown);
  /// Brings that tab to the front, now or once it is seen.
  void open_last();

  void set_filter(const QString& text);
  void mark(const Selection& s);
  void set_theme(ThemeName theme);
  std::function<void(const Selection&)> on_select;

 private:
  void resizeEvent(QResizeEvent* e) override;
  QList<TableList*> lists() const;
  /// What the chosen row of the table in front says in sentences.
  void tell_row();

  QString name_, filter_;
  ThemeName theme_ = ThemeName::dark;
  Selection marked_;
  std::shared_ptr<const FindingPage> page_;
  QLabel *sentence_, *told_, *none_;
  FigureRow* figures_;
  QTabWidget* tabs_;
  QWidget* last_ = nullptr;
  bool on_last_ = false;
};

}  // namespace tenon::views
