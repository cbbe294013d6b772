#include "views/frame/rank_box.h"

#include <QFileInfo>
#include <QSignalBlocker>

namespace tenon::views {

RankBox::RankBox(Bench& bench, const QString& name, QWidget* parent) : QComboBox(parent), bench_(bench) {
  setObjectName(name + ".rank");
  setAccessibleName(tr("The rank that the page is about"));
  setToolTip(tr("The rank that this page is about; an event that is selected brings its own"));
  setSizeAdjustPolicy(QComboBox::AdjustToContents);
  connect(this, &QComboBox::activated, this, [this](int i) {
    const Document* d = bench_.shown_document();
    if (d && i >= 0) bench_.choose_rank(d->id, static_cast<size_t>(i));
  });
  connect(&bench, &Bench::documents_changed, this, &RankBox::refresh);
  refresh();
}

void RankBox::refresh() {
  const QSignalBlocker quiet(this);
  const Document* d = bench_.shown_document();
  clear();
  for (size_t r = 0; d && r < d->ranks.size(); ++r) {
    addItem(QString::fromStdString(d->rank_title(r)));
    const QString path = QString::fromStdString(d->ranks[r].trace->path());
    setItemData(count() - 1, QFileInfo(path).fileName(), Qt::ToolTipRole);
  }
  if (count() > 0) setCurrentIndex(static_cast<int>(d->rank));
  setVisible(count() > 0);
}

}  // namespace tenon::views
