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
  enum class Shows : uint8_t { all_but_name, name };  ///< a view has a field of its own for the name; or heeds no more
  FilterBar(Bench& bench, Shows shows, QWidget* parent = nullptr);

 private:
  void refresh();
  Bench& bench_;
  Shows shows_;
  QHBoxLayout* row_;
};

/// What narrows what is looked at, from the selection, and the way back.
std::vector<Command> filter_commands(Bench& bench);

}  // namespace tenon::views
