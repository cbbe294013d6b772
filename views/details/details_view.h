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
  DetailsView(const ViewDef& def, Bench& bench, QWidget* parent);
  void set_theme(ThemeName theme) override;
  InspectorView* inspector() const { return inspector_; }
  static constexpr int kWidth = 300;

 private:
  const BuilderModel& builder_;
  void refresh();
  void fill(const Details& d);
  void read_arguments(const Selection& event);

  QScrollArea* scroll_;
  QWidget *page_, *body_ = nullptr;
  QVBoxLayout* box_;
  InspectorView* inspector_;
  std::string shown_;                 ///< the shape of what is shown
  std::vector<ElidedLabel*> values_;  ///< of the rows that are no error, in their order
  Selection arguments_of_;            ///< the event whose arguments are here, or on their way
  std::vector<std::pair<std::string, std::string>> arguments_;
};

}  // namespace tenon::views
