#include "views/frame/finding_pane.h"

#include <QLabel>
#include <QTabWidget>
#include <QVBoxLayout>

#include "views/frame/figure_row.h"
#include "views/frame/table_list.h"
#include "views/frame/widgets.h"

namespace tenon::views {

FindingPane::FindingPane(const QString& name, QWidget* parent) : QWidget(parent), name_(name) {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  sentence_ = new QLabel(this);
  sentence_->setObjectName(name + ".sentence");
  sentence_->setWordWrap(true);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  auto* around = new QVBoxLayout;  // a style sheet takes the margins of a label
  around->setContentsMargins(14, 10, 14, 6);
  around->addWidget(sentence_);
  box->addLayout(around);
  figures_ = new FigureRow(this);
  box->addWidget(figures_);
  tabs_ = new QTabWidget(this);
  tabs_->setDocumentMode(true);
  tabs_->setObjectName(name + ".tables");
  box->addWidget(tabs_, 1);
  connect(tabs_, &QTabWidget::currentChanged, this, &FindingPane::tell_row);
  told_ = new QLabel(this);
  told_->setObjectName(name + ".told");
  told_->setWordWrap(true);
  told_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  told_->setContentsMargins(14, 6, 14, 8);
  told_->hide();
  box->addWidget(told_);
  none_ = new QLabel(this);
  box->addWidget(none_, 1);  // takes the room where there are no tables
  tabs_->hide();
}

void FindingPane::say(const QString& sentence) { sentence_->setText(sentence); }

void FindingPane::set_last(QWidget* tab, const QString& title) {
  last_ = tab;
  tabs_->addTab(tab, title);
  show_last(false);
}

void FindingPane::show_last(bool shown) {
  if (!last_) return;
  tabs_->setTabVisible(tabs_->indexOf(last_), shown);
  if (shown && on_last_) tabs_->setCurrentWidget(last_);
}

void FindingPane::open_last() {
  on_last_ = last_ != nullptr;
  if (last_ && tabs_->isTabVisible(tabs_->indexOf(last_))) tabs_->setCurrentWidget(last_);
}

QList<TableList*> FindingPane::lists() const {
  QList<TableList*> out;
  for (int i = 0; i < tabs_->count(); ++i)
    if (tabs_->widget(i) != last_) out << static_cast<TableList*>(tabs_->widget(i));
  return out;
}

void FindingPane::set_page(std::shared_ptr<const FindingPage> page) {
  if (page && page == page_) return;
  // The next page is shown as this one was, also where there is none for a while.
  if (page_) on_last_ = last_ && tabs_->currentWidget() == last_;
  page_ = std::move(page);
  sentence_->setText(page_ ? QString::fromStdString(page_->sentence) : QString());
  figures_->set_figures(page_ ? page_->figures : std::vector<std::pair<std::string, std::string>>());
  for (TableList* table : lists()) {
    tabs_->removeTab(tabs_->indexOf(table));
    discard(table);
  }
  int at = 0;
  for (const FindingPage::Part& part : page_ ? page_->tables : std::vector<FindingPage::Part>()) {
    auto* list = new TableList(tabs_);
    list->setObjectName(name_ + "." + QString::fromStdString(part.title));
    list->setAccessibleName(QString::fromStdString(part.title));
    list->on_select = [this](const Selection& s) {
      if (on_select) on_select(s);
    };
    list->set_theme(theme_);
    list->set_table(part.table);
    list->set_filter(filter_);
    list->mark(marked_);
    connect(list->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &FindingPane::tell_row);
    tabs_->insertTab(at++, list, QString::fromStdString(part.title));
  }
  if (at > 0 && !on_last_) tabs_->setCurrentIndex(0);
  tabs_->setVisible(at > 0);
  none_->setVisible(at == 0);
  tell_row();
}

/// In a low dock the table has the room, and a row's tooltip the words.
void FindingPane::tell_row() {
  constexpr int kRoomForWords = 320;
  const int at = tabs_->currentIndex();
  std::string words;
  if (page_ && at >= 0 && at < static_cast<int>(page_->tables.size()) && tabs_->widget(at) != last_ &&
      height() >= kRoomForWords) {
    const FindingPage::Part& part = page_->tables[static_cast<size_t>(at)];
    const auto* list = static_cast<TableList*>(tabs_->widget(at));
    const Table shown = list->shown();
    const int row = list->currentIndex().row();
    if (row >= 0 ? row < static_cast<int>(shown.rows.size()) : part.tells_first && !shown.rows.empty())
      words = part.words(shown.rows[static_cast<size_t>(std::max(row, 0))]);
  }
  told_->setText(QString::fromStdString(words));
  told_->setVisible(!words.empty());
}

void FindingPane::resizeEvent(QResizeEvent* e) {
  QWidget::resizeEvent(e);
  tell_row();
}

void FindingPane::set_filter(const QString& text) {
  filter_ = text;
  for (TableList* list : lists()) list->set_filter(text);
}

void FindingPane::mark(const Selection& s) {
  marked_ = s;
  for (TableList* list : lists()) list->mark(s);
}

void FindingPane::set_theme(ThemeName theme) {
  theme_ = theme;
  for (TableList* list : lists()) list->set_theme(theme);
}

}  // namespace tenon::views
