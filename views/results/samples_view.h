#pragma once
#include <QListWidget>
#include <functional>
#include <memory>
#include <vector>

#include "projects/results.h"
#include "views/frame/bench.h"
#include "views/results/sample_sight.h"

namespace tenon::views {

/// Samples of the test split as they are: pictures in a grid, or a line of text each. Choosing one chooses its
/// selection, as its row in the table does.
class SampleGallery : public QListWidget {
  Q_OBJECT
 public:
  SampleGallery(Bench& bench, QWidget* parent);
  /// The first kShown of these rows; hidden where samples of this kind are nothing to look at. Reads them away from
  /// the UI thread; until then they are listed by their words.
  void show_samples(std::shared_ptr<const projects::Results> results, const std::vector<int64_t>& rows);
  static constexpr size_t kShown = projects::Results::kAnswers;
  /// Marks the sample of a selection without choosing it.
  void mark(const Selection& s);

 private:
  void fill(const std::vector<SampleSight>& sights);
  Bench& bench_;
  std::shared_ptr<const projects::Results> results_;
  std::vector<int64_t> rows_;
  bool marking_ = false;
};

}  // namespace tenon::views
