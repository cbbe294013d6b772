#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "views/shared/document.h"
#include "views/shared/finding_page.h"
#include "views/shared/flame_model.h"

namespace tenon::tracing {
class TimeMatch;
}

namespace tenon::views {

struct ProjectContents;

/// One thing that can be compared: a file that is open, or a checkpoint of the project.
struct CompareSide {
  Document::Kind kind = Document::Kind::model;
  int document = Document::kProject;
  int64_t checkpoint = 0;  ///< of the project, where it is no document
  std::string title, tip;
  size_t rank = 0;  ///< of a session, each of whose ranks can be compared
  bool operator==(const CompareSide& o) const {
    return document == o.document && checkpoint == o.checkpoint && rank == o.rank;
  }
};
/// All that a window holds: its documents as they were opened, then the checkpoints run by run, the last step first; of
/// more than a thousand each run's last and best, the newest runs first.
std::vector<CompareSide> comparable_sides(const std::vector<Document>& documents, const ProjectContents& contents);

/// Which two are compared, what came of it, and what in B a row of A is.
class CompareModel {
 public:
  /// What there is now. A side that is gone is given up; exactly two documents of one kind are taken, of several such
  /// kinds that of the document that is shown, else of the one opened last. Returns whether A or B changed.
  bool set_offered(std::vector<CompareSide> sides, int shown_document);
  const std::vector<CompareSide>& offered() const { return offered_; }
  /// What B may be: of A's kind, and not A.
  std::vector<CompareSide> offered_b() const;
  const std::optional<CompareSide>& a() const { return a_; }
  const std::optional<CompareSide>& b() const { return b_; }
  bool ready() const { return a_ && b_; }
  /// There are two of a kind to choose from.
  bool can_choose() const;
  void choose_a(const CompareSide& side);
  void choose_b(const CompareSide& side);
  void swap();
  /// A is a document (of a session, a rank of it), and the next one of its kind that is opened is B.
  void compare_with_next(int document, size_t rank = 0);
  bool waits_for_next() const { return next_after_ > 0; }
  /// No file comes.
  void stop_waiting();
  /// What is to be done before anything can be compared.
  std::string missing() const;

  /// What came of the two; null: nothing yet.
  void set_result(std::shared_ptr<const FindingPage> page, std::shared_ptr<const tracing::FlamePair> flames,
                  std::shared_ptr<const tracing::TimeMatch> times = {});
  /// Of two traces that are documents of their own, which times of theirs belong together; null else.
  const std::shared_ptr<const tracing::TimeMatch>& times() const { return times_; }
  const std::shared_ptr<const FindingPage>& page() const { return page_; }
  FlameModel& flame() { return flame_; }

  /// What a row (or the box of the flame that is chosen) selects: its side in the document that is shown, A's before
  /// B's. The other side is remembered.
  Selection chosen(const Selection& row, int shown_document);
  Selection chosen_box(int shown_document);
  /// The counterpart of what is selected, of a stretch of time the same stretch; of kind none where it has none, or
  /// nothing of the comparison is selected.
  Selection other(const Selection& s) const;
  /// The row's own selection of what is selected in either.
  Selection row_of(const Selection& s) const;

 private:
  using Side = std::optional<CompareSide>;
  struct Pair {
    Selection a, b;
  };
  bool take_pairs(int shown_document);
  Selection choose_side(Pair pair, int shown_document);
  size_t documents_of(Document::Kind kind) const;

  std::vector<CompareSide> offered_;
  Side a_, b_;
  int next_after_ = 0;  ///< the last document there was when the next one became what B will be; 0: none is waited for
  std::shared_ptr<const FindingPage> page_;
  std::shared_ptr<const tracing::TimeMatch> times_;
  FlameModel flame_;
  std::vector<Pair> pairs_;  ///< of all rows that stand in both
  Pair last_;
};

}  // namespace tenon::views
