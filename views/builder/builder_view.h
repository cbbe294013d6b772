#pragma once
#include "views/builder/builder_model.h"
#include "views/frame/picker.h"
#include "views/frame/view.h"

namespace tenon::views {

class BuilderView : public View {
  Q_OBJECT
 public:
  BuilderView(const ViewDef& def, Bench& bench, QWidget* parent);
  /// Opens the list of layers; an empty position: under the button.
  void open_palette(const QString& typed = {}, QPoint at = {-1, -1});
  Picker* picker() const { return picker_; }
  ~BuilderView() override;
  std::vector<Command> commands() override;

 private:
  BuilderModel& model_;
  void refresh();
  Picker* picker_;
  QWidget* page_;
};

}  // namespace tenon::views
