#pragma once
#include <QListWidget>
#include <memory>

#include "views/data/data_look.h"
#include "views/data/transform_look.h"
#include "views/frame/view.h"

class QComboBox;
class QSpinBox;

namespace tenon::views {

/// A page of the data's view: one sample as a picture, as it is and behind each transform of the recipe. Another epoch
/// draws what is random anew, as the run does.
class TransformsPage : public QWidget {
  Q_OBJECT
 public:
  TransformsPage(Bench& bench, QWidget* parent);
  /// The data that samples are taken of, with the recipe they were opened by; null: there are none.
  void set_data(std::shared_ptr<const DataLook> data);
  void show_sample(bool train, int64_t row);
  void set_epoch(int64_t epoch);

 private:
  void build();
  void read();
  void fill(TransformLook look);
  void arrange();
  bool eventFilter(QObject* of, QEvent* event) override;

  Bench& bench_;
  std::shared_ptr<const DataLook> data_;
  QComboBox* part_;
  QSpinBox *row_, *epoch_;
  ElidedLabel *said_, *fault_;
  QListWidget* steps_;
  TransformLook look_;  ///< that is shown
};

}  // namespace tenon::views
