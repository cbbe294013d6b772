#pragma once
#include <memory>
#include <string>

#include "views/frame/view.h"
#include "views/shared/finding_page.h"

class QComboBox;
class QToolButton;

namespace tenon::views {

class CodeEditor;
class FindingPane;

/// An op looked into: one call of it followed from its inputs to its gradient, all its calls in the step, its
/// definition, and its source. It follows the selection, and stays with an op that is chosen by its name.
class OpsView : public View {
  Q_OBJECT
 public:
  OpsView(const ViewDef& def, Bench& bench, QWidget* parent);
  void set_theme(ThemeName theme) override;

 protected:
  void came_into_sight() override { ask(); }

 private:
  enum class Page : uint8_t { story, calls, definition, source };
  QWidget* build();
  void follow(const Selection& s);
  void choose(const std::string& op);
  void turn_to(Page page);
  void refresh();
  /// The page that is wanted, where it is in sight and not there yet.
  void ask();
  void show(const std::shared_ptr<const FindingPage>& page);

  std::string op_ = "conv2d";
  uint32_t call_ = 0;  ///< of the step that is loaded; 0: none
  Page page_ = Page::definition;
  bool asked_ = false;  ///< what is shown is what is wanted, or on its way
  QComboBox* names_;
  QToolButton* pages_[4];
  QStackedWidget* both_;
  FindingPane* pane_;
  CodeEditor* source_;
};

}  // namespace tenon::views
