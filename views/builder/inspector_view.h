#pragma once
#include <QWidget>

#include "views/builder/builder_model.h"
#include "views/frame/bench.h"

class QFormLayout;

namespace tenon::views {

/// A form over the attributes of the builder's chosen layer; each change is an edit of the model that can be undone.
class InspectorView : public QWidget {
  Q_OBJECT
 public:
  explicit InspectorView(Bench& bench, QWidget* parent = nullptr);
  /// Shows the layer; empty where there is none of that name.
  void show_layer(const std::string& layer);
  const std::string& layer() const { return layer_; }

 private:
  void rebuild();
  void refresh_values();

  BuilderModel& builder_;
  QFormLayout* form_;
  std::string layer_, type_;
  bool filling_ = false;
};

}  // namespace tenon::views
