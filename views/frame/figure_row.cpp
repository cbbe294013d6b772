#include "views/frame/figure_row.h"

#include <QVBoxLayout>

#include "views/frame/flow_layout.h"
#include "views/frame/widgets.h"

namespace tenon::views {

FigureRow::FigureRow(QWidget* parent) : QWidget(parent), flow_(new FlowLayout(4, this)) {
  setContentsMargins(14, 0, 14, 8);
}

void FigureRow::set_figures(const std::vector<std::pair<std::string, std::string>>& figures) {
  while (QLayoutItem* item = flow_->takeAt(0)) {
    discard(item->widget());
    delete item;
  }
  for (const auto& [name, value] : figures) {
    auto* both = new QWidget(this);
    auto* box = new QVBoxLayout(both);
    box->setContentsMargins(0, 0, 24, 2);
    box->setSpacing(0);
    auto* head = new ElidedLabel(QString::fromStdString(name), both);
    set_style(head, "voice", "small");
    box->addWidget(head);
    box->addWidget(new ElidedLabel(QString::fromStdString(value), both));
    flow_->addWidget(both);
  }
  updateGeometry();
}

}  // namespace tenon::views
