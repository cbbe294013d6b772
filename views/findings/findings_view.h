#pragma once
#include <map>
#include <memory>
#include <tuple>

#include "views/findings/finding_page.h"
#include "views/frame/view.h"

class QComboBox;
class QGridLayout;
class QListWidget;
class QTabWidget;

namespace tenon::views {

/// What the analyses say of the trace that is shown, or of the step that is loaded: every analysis of one trace by its
/// name, its page beside the list. An analysis runs when it is chosen and the view is in sight; its page is kept.
class FindingsView : public View {
  Q_OBJECT
 public:
  FindingsView(const ViewDef& def, Bench& bench, QWidget* parent);
  /// Shows the page of an analysis.
  void choose(const QString& analysis);
  /// The page that is shown; null while none is.
  const FindingPage* page() const { return page_.get(); }

 protected:
  void showEvent(QShowEvent* e) override;

 private:
  struct Asked {
    int document = 0;
    std::string analysis;
    int64_t step = -1;
    auto operator<=>(const Asked&) const = default;
  };
  void build();
  void refresh();
  void refresh_steps();
  void ask();
  void show_page(std::shared_ptr<const FindingPage> page);
  void show_figures();
  Asked asked() const;

  std::shared_ptr<const traces::Trace> trace_;  ///< that is looked at
  std::map<Asked, std::shared_ptr<const FindingPage>> pages_;
  std::shared_ptr<const FindingPage> page_;
  QListWidget* analyses_;
  QComboBox* steps_;
  ElidedLabel* subject_;
  QLabel *sentence_, *none_;
  QGridLayout* figures_;
  QTabWidget* tabs_;
};

}  // namespace tenon::views
