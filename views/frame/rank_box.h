#pragma once
#include <QComboBox>

#include "views/frame/bench.h"

namespace tenon::views {

/// Which rank of the session that is shown a page is about, to choose another; not there for what has no ranks.
class RankBox : public QComboBox {
  Q_OBJECT
 public:
  /// `name`: of the view, "findings".
  RankBox(Bench& bench, const QString& name, QWidget* parent = nullptr);

 private:
  void refresh();
  Bench& bench_;
};

}  // namespace tenon::views
