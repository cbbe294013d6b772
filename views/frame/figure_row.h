#pragma once
#include <QWidget>
#include <string>
#include <utility>
#include <vector>

namespace tenon::views {

class FlowLayout;

/// Figures with their names over them, as many to a row as there is room for.
class FigureRow : public QWidget {
  Q_OBJECT
 public:
  explicit FigureRow(QWidget* parent = nullptr);
  void set_figures(const std::vector<std::pair<std::string, std::string>>& figures);

 private:
  FlowLayout* flow_;
};

}  // namespace tenon::views
