#pragma once
#include "views/builder/inspector_view.h"
#include "views/details/details_model.h"
#include "views/frame/view.h"

class QScrollArea;
class QVBoxLayout;

namespace tenon::views {

class DetailsView : public View {
  Q_OBJECT
 public:
  explicit DetailsView(Workbench& bench, QWidget* parent = nullptr);
  void set_theme(ThemeName theme) override;
  InspectorView* inspector() const { return inspector_; }
  /// Shows a view; set by the window.
  std::function<void(const QString& view)> on_jump;
  static constexpr int kWidth = 300;

 private:
  void refresh();
  void fill(const Details& d);

  QScrollArea* scroll_;
  QWidget *page_, *body_ = nullptr;
  QVBoxLayout* box_;
  InspectorView* inspector_;
  std::string shown_;
};

}  // namespace tenon::views
