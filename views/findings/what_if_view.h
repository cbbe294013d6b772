#pragma once
#include <QWidget>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "views/findings/what_if_model.h"
#include "views/frame/theme.h"

class QCheckBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QToolButton;

namespace tenon::views {

class FlowLayout;
class SceneCanvas;

/// What is asked of the allocator's what-if: the settings that are tried, each as PYTORCH_CUDA_ALLOC_CONF has it, and
/// what the device can give.
struct WhatIfAsked {
  std::vector<std::string> settings = tracing::usual_settings();
  double limit_gib = 0;  ///< 0: what the recording tells
  int64_t limit() const { return static_cast<int64_t>(limit_gib * (1 << 30)); }
  auto operator<=>(const WhatIfAsked&) const = default;
};

/// The form over the page what-if: settings as words or in fields, which say the same, are added to what is tried;
/// under it what is reserved under each, as curves.
class WhatIfForm : public QWidget {
  Q_OBJECT
 public:
  explicit WhatIfForm(QWidget* parent);
  /// What is asked of another snapshot; `own`: the settings it was recorded under.
  void begin(const WhatIfAsked& asked, const snapshot::AllocatorSettings& own);
  const WhatIfAsked& asked() const { return asked_; }
  std::function<void()> on_change;
  /// Null: it is worked out.
  void show_curves(std::shared_ptr<const tracing::WhatIf> what_if) { curves_.show(std::move(what_if)); }
  const WhatIfCurves& curves() const { return curves_; }
  void set_theme(ThemeName theme);
  bool idle() const;

 private:
  QWidget* build_words();
  QWidget* build_fields();
  void add_field(FlowLayout* to, const char* key, const char* holds, const char* help);
  void follow_words();
  void follow_fields();
  void add();
  void take_out(size_t which);
  void show_tried();
  void say(const std::string& text);
  void changed();

  WhatIfAsked asked_;
  snapshot::AllocatorSettings own_;
  WhatIfCurves curves_;
  QLineEdit* words_;
  QDoubleSpinBox* limit_;
  QCheckBox* expandable_;
  std::map<std::string, QLineEdit*> fields_;  ///< by key
  QLabel* said_;
  QWidget* tried_;
  FlowLayout* tried_flow_;
  QToolButton* usual_;
  SceneCanvas* picture_;
};

}  // namespace tenon::views
