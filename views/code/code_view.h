#pragma once
#include <QTimer>
#include <map>
#include <string>

#include "views/builder/builder_model.h"
#include "views/frame/view.h"

class QToolButton;

namespace tenon::views {

class CodeEditor;

/// The model of the builder as PyTorch source. What is typed becomes an edit of the model as soon as it can be read;
/// an edit of the graph writes the source anew.
class CodeView : public View {
  Q_OBJECT
 public:
  CodeView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  void set_theme(ThemeName theme) override;
  bool idle() const override { return View::idle() && !typed_.isActive(); }

 protected:
  void came_into_sight() override;

 private:
  void refresh();
  void write();
  void read();
  void say(const QString& text, bool bad, int line);
  void mark();
  void choose_line();
  void copy();
  void open();
  void save();

  BuilderModel& builder_;
  CodeEditor* editor_;
  ElidedLabel* said_;
  QToolButton *again_, *copy_, *save_;
  QTimer typed_;
  QString of_;             ///< the project's file
  int64_t revision_ = -1;  ///< of the model that the source says
  bool writing_ = false;
  bool own_ = false;  ///< what was typed is not in the model: it could not be read
  int bad_line_ = 0;
  std::map<std::string, int> lines_;  ///< by layer
};

}  // namespace tenon::views
