#pragma once
#include "views/frame/view.h"

class QPlainTextEdit;

namespace tenon::views {

/// What happened in the window, line by line.
class LogView : public View {
  Q_OBJECT
 public:
  LogView(const ViewDef& def, Bench& bench, QWidget* parent);
  void set_theme(ThemeName theme) override;

 private:
  void add(const QString& line, bool bad);
  QPlainTextEdit* text_;
};

}  // namespace tenon::views
