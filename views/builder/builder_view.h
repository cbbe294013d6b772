#pragma once
#include "views/frame/picker.h"
#include "views/frame/view.h"

namespace tenon::views {

class BuilderView : public View {
  Q_OBJECT
 public:
  explicit BuilderView(Workbench& bench, QWidget* parent = nullptr);
  /// Opens the list of layers; an empty position: under the button.
  void open_palette(const QString& typed = {}, QPoint at = {-1, -1});
  Picker* picker() const { return picker_; }
  /// Asked to start a project from a template.
  std::function<void()> on_new;

 private:
  void refresh();
  Picker* picker_;
  QWidget* page_;
};

}  // namespace tenon::views
