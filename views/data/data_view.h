#pragma once
#include <QPointer>
#include <memory>
#include <utility>
#include <vector>

#include "views/data/data_fit.h"
#include "views/data/data_look.h"
#include "views/data/transforms_view.h"
#include "views/frame/table_list.h"
#include "views/frame/view.h"

class QComboBox;
class QPushButton;
class QToolButton;
class QVBoxLayout;

namespace tenon::views {

/// What the next run learns from: which files, how they were read, what looks wrong in them, classes and samples.
class DataView : public View {
  Q_OBJECT
 public:
  DataView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;

 protected:
  void came_into_sight() override {
    read(false);
    fit();
  }

 private:
  void build();
  QWidget* make_pages(QWidget* parent);
  void refresh();
  /// Opens the data anew where what they hang on has changed, away from the UI thread. `all` reads every sample,
  /// however many there are.
  void read(bool all);
  void read_samples();
  void take(std::shared_ptr<const DataLook> look);
  /// With a key of the recipe that would mend it, where there is one.
  void show_fault(const QString& fault, std::optional<OfferedKey> offer = {});
  void show_page(int page);
  void choose(bool folder);
  /// The next run learns from this file or folder, whatever kind of data it is.
  void learn_from(const QString& path);
  QWidget* make_fit(QWidget* parent);
  /// Holds the model beside the data, away from the UI thread, where either has changed and the page is looked at.
  void fit();
  void take_fit(std::shared_ptr<const DataFit> fit);
  void mend_model();
  void begin_with(const std::string& template_name);
  /// The samples of the step that is chosen, or of the last one, in the epoch in which it saw them: of the data that
  /// the run learnt from, until the recipe or the project is another.
  void show_batch();
  int64_t chosen_step() const;
  const Recipe& recipe() const { return of_run_ ? *of_run_ : bench_.recipe(); }
  /// Lists these rows of the training set first, and brings the first one into sight.
  void show_samples(const std::vector<int64_t>& rows);

  std::shared_ptr<const DataLook> look_;
  std::string read_of_;  ///< what look_ was made of; empty: it is to be made anew
  bool read_all_ = false;
  std::shared_ptr<const Recipe> of_run_;  ///< instead of the next run's
  QString batch_;                         ///< whose samples are listed first: "step 12 of run r, epoch 0"
  std::vector<int64_t> asked_;            ///< rows of the training set that are listed first
  std::shared_ptr<const DataFit> fit_;
  std::shared_ptr<const DataLook> fit_of_look_;  ///< what fit_ was made of, with these
  std::string fit_of_keys_;
  ModelSpec fit_of_model_;
  std::optional<OfferedKey> offered_;
  QWidget *fit_row_, *fault_row_;
  ElidedLabel *said_, *divided_, *fault_, *fits_;
  QPushButton *mend_, *begin_, *offer_;
  QToolButton* others_;
  TableList *splits_, *remarks_, *classes_, *samples_;
  TransformsPage* transforms_;
  QStackedWidget* pages_;
  QToolButton *all_, *of_classes_;
  std::vector<QToolButton*> page_buttons_;
};

}  // namespace tenon::views
