#pragma once
#include <QWidget>
#include <vector>

#include "views/frame/bench.h"
#include "views/frame/commands.h"

class QHBoxLayout;

namespace tenon::views {

/// The conditions of the filter of what is shown, each with a cross; nothing where there is none. In the bar of every
/// view that the filter changes.
class FilterBar : public QWidget {
  Q_OBJECT
 public:
  /// `own_name`: the view has a field of its own for the name.
  FilterBar(Bench& bench, bool own_name, QWidget* parent = nullptr);

 private:
  void refresh();
  Bench& bench_;
  bool own_name_;
  QHBoxLayout* row_;
};

/// What narrows what is looked at, from the selection, and the way back.
std::vector<Command> filter_commands(Bench& bench);

}  // namespace tenon::views
