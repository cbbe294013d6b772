#pragma once
#include <memory>
#include <optional>
#include <utility>

#include "views/compare/compare_model.h"
#include "views/frame/finding_pane.h"
#include "views/frame/view.h"

class QComboBox;
class QLineEdit;
class QStackedWidget;
class QToolButton;

namespace tenon::views {

/// Two of one kind, A and B, and what is different in B: a page with a sentence, figures and tables, and of traces and
/// snapshots their flame graphs in one. What is shown are the boxes of A and B and the page of the two.
class CompareView : public View {
  Q_OBJECT
 public:
  CompareView(const ViewDef& def, Bench& bench, QWidget* parent);
  ~CompareView() override;
  CompareModel& model() { return model_; }
  std::vector<Command> commands() override;
  void set_theme(ThemeName theme) override;

 protected:
  void came_into_sight() override { ask(); }

 private:
  using Sides = std::pair<CompareSide, CompareSide>;
  void build();
  QComboBox* add_box(ViewBar* bar, const char* name, const QString& label, const QString& tip);
  void refresh();
  void list_sides();
  void changed();
  void ask();
  void start(const Sides& sides);
  void say(const QString& sentence, const QString& button = {}, std::function<void()> run = {});
  void show_result();
  void compare_with(const Document* document = nullptr);
  void look_for_next();
  void tell_together();
  void show_other();

  CompareModel model_;
  std::optional<Sides> asked_;  ///< what is compared now, or was last
  QComboBox *a_, *b_;
  QToolButton *swap_, *other_, *together_;
  QLineEdit* search_;
  QStackedWidget* pages_;
  EmptyState* state_;
  FindingPane* pane_;
};

}  // namespace tenon::views
