#pragma once
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "views/findings/what_if_view.h"
#include "views/frame/finding_pane.h"
#include "views/frame/view.h"

namespace tenon::tracing {
struct TraceRequest;
}

class QComboBox;
class QListWidget;

namespace tenon::views {

class FigureRow;

/// What the analyses say of the trace or memory snapshot that is shown, or of the step that is loaded: every analysis
/// of one such by its name, its page beside the list. An analysis runs when it is chosen and the view is in sight; its
/// page is kept.
class FindingsView : public View {
  Q_OBJECT
 public:
  FindingsView(const ViewDef& def, Bench& bench, QWidget* parent);
  /// Shows the page of an analysis.
  void choose(const QString& analysis);
  /// The page that is shown; null while none is.
  const FindingPage* page() const { return pane_->page().get(); }
  void set_theme(ThemeName theme) override;
  bool idle() const override { return View::idle() && what_if_->idle(); }

 protected:
  void came_into_sight() override { ask(); }

 private:
  struct Asked {
    int document = 0;
    size_t rank = 0;
    std::string analysis;
    int64_t step = -1;
    WhatIfAsked what_if = {};  ///< of that analysis
    auto operator<=>(const Asked&) const = default;
  };
  /// What is looked at: one of them, or nothing.
  struct Source {
    std::shared_ptr<const traces::Trace> trace;
    std::shared_ptr<const snapshot::Snapshot> snapshot;
    explicit operator bool() const { return trace || snapshot; }
    bool operator==(const Source&) const = default;
  };
  Source shown() const;
  void build();
  void list_analyses(bool of_snapshot, bool of_ranks);
  void refresh();
  void refresh_steps();
  void ask();
  Asked asked() const;

  Source source_;
  std::optional<std::pair<bool, bool>> listed_;  ///< what the analyses in the list are of: a snapshot, several ranks
  /// What an analysis said; of a what-if also what it was worked out of.
  struct Answer {
    std::shared_ptr<const FindingPage> page;
    std::shared_ptr<const tracing::WhatIf> what_if = {};
  };
  static Answer answer_of(const Source& source, const Asked& what, const Subject& subject,
                          tracing::TraceRequest traces);
  void show_answer(const Answer& answer);
  void follow_form();
  std::map<Asked, Answer> pages_;
  std::map<int, WhatIfAsked> what_ifs_;  ///< by document
  int form_of_ = -1;                     ///< the document that the form is about
  QListWidget* analyses_;
  QComboBox* steps_;
  ElidedLabel* subject_;
  WhatIfForm* what_if_;
  FindingPane* pane_;
};

}  // namespace tenon::views
