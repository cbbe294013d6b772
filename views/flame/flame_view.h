#pragma once
#include <optional>

#include "views/frame/view.h"
#include "views/shared/flame_model.h"

class QToolButton;

namespace tenon::views {

/// Works out the flame graph of what is shown, once it is seen: of a trace or step the stretch that was selected last,
/// of a snapshot the moment.
class FlameView : public View {
  Q_OBJECT
 public:
  FlameView(const ViewDef& def, Bench& bench, QWidget* parent);

 protected:
  void came_into_sight() override { ask(); }

 private:
  struct Asked {
    int document = 0;
    std::shared_ptr<const traces::Trace> trace;
    traces::EventId first_event = 0;  ///< of it in the document
    int64_t origin = 0;               ///< its time where the document's axis begins
    std::shared_ptr<const snapshot::Timeline> timeline;
    std::shared_ptr<const snapshot::Snapshot> snapshot;
    double from = 0, to = 0;  ///< as Selection::range; to <= from: all of it
    int64_t row = -1;
    size_t moment = 0;
    bool operator==(const Asked&) const = default;
  };
  void follow(const Selection& s);
  void refresh();
  Asked wanted() const;
  void ask();
  void describe();
  std::string part_title(const Document& d) const;

  FlameModel& model_;
  ElidedLabel* subject_;
  QToolButton* whole_;
  Selection part_;  ///< the range or moment that is looked at; kind none: all of it, or the peak
  std::optional<Asked> asked_, shown_;
};

}  // namespace tenon::views
