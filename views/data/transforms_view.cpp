#include "views/data/transforms_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QImage>
#include <QPainter>
#include <QSpinBox>
#include <QVBoxLayout>
#include <limits>

#include "core/error.h"
#include "engine/train/recipe.h"
#include "views/frame/theme.h"
#include "views/shared/sample_picture.h"

namespace tenon::views {
namespace {

/// Picture and mask beside each other; pixels stay pixels where they are made larger.
QPixmap step_pixmap(const TransformLook::Step& step, qreal ratio) {
  const int side = static_cast<int>(kSampleSide);
  const int wide = step.mask.pixels.empty() ? side : 2 * side;
  QPixmap out(QSize(wide, side) * ratio);
  out.setDevicePixelRatio(ratio);
  out.fill(Qt::transparent);
  QPainter painter(&out);
  int x = 0;
  for (const data::Image* image : {&step.picture, &step.mask}) {
    if (image->pixels.empty()) continue;
    const auto format = image->channels == 1 ? QImage::Format_Grayscale8 : QImage::Format_RGB888;
    const QImage picture(image->pixels.data(), static_cast<int>(image->width), static_cast<int>(image->height),
                         static_cast<int>(image->width * image->channels), format);
    const QSize size = picture.size().scaled(side, side, Qt::KeepAspectRatio);
    painter.drawImage(QRect(QPoint(x + (side - size.width()) / 2, (side - size.height()) / 2), size), picture);
    x += side;
  }
  return out;
}

}  // namespace

TransformsPage::TransformsPage(Bench& bench, QWidget* parent) : QWidget(parent), bench_(bench) { build(); }

void TransformsPage::build() {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(12, 4, 12, 8);
  box->setSpacing(6);
  auto* line = new QHBoxLayout;
  line->setSpacing(8);
  const auto add = [&](QWidget* w, const char* name, const QString& label) {
    w->setObjectName(name);
    w->setAccessibleName(label);
    auto* words = new QLabel(label, this);
    words->setBuddy(w);
    line->addWidget(words);
    line->addWidget(w);
  };
  part_ = new QComboBox(this);
  part_->addItems({tr("training"), tr("test")});
  add(part_, "data.transforms.split", tr("Split"));
  row_ = new QSpinBox(this);
  add(row_, "data.transforms.row", tr("Sample"));
  epoch_ = new QSpinBox(this);
  epoch_->setMaximum(1'000'000);
  epoch_->setToolTip(tr("What is random is drawn anew in every epoch, as the run draws it"));
  add(epoch_, "data.transforms.epoch", tr("Epoch"));
  line->addStretch();
  box->addLayout(line);
  said_ = new ElidedLabel({}, this);
  said_->setObjectName("data.transforms.said");
  box->addWidget(said_);
  fault_ = new ElidedLabel({}, this);
  fault_->setObjectName("data.transforms.fault");
  set_style(fault_, "voice", "bad");
  fault_->hide();
  box->addWidget(fault_);
  steps_ = new QListWidget(this);
  steps_->setObjectName("data.transforms.steps");
  steps_->setAccessibleName(tr("The sample before and after each transform"));
  steps_->setIconSize({static_cast<int>(kSampleSide), static_cast<int>(kSampleSide)});
  steps_->setSpacing(2);
  steps_->setWordWrap(true);
  box->addWidget(steps_, 1);
  connect(part_, &QComboBox::currentIndexChanged, this, [this] {
    if (!data_) return;
    const QSignalBlocker quiet(row_);
    row_->setMaximum(
        static_cast<int>(std::min<int64_t>(std::numeric_limits<int>::max(),
                                           part_->currentIndex() == 0 ? data_->train_samples : data_->test_samples) -
                         1));
    epoch_->setEnabled(part_->currentIndex() == 0);
    read();
  });
  connect(row_, &QSpinBox::valueChanged, this, &TransformsPage::read);
  connect(epoch_, &QSpinBox::valueChanged, this, &TransformsPage::read);
}

void TransformsPage::set_data(std::shared_ptr<const DataLook> data) {
  const bool same = data_ && data && data_->split == data->split;
  data_ = std::move(data);
  if (same) return;
  show_sample(part_->currentIndex() == 0, row_->value());
}

void TransformsPage::set_epoch(int64_t epoch) { epoch_->setValue(static_cast<int>(epoch)); }

void TransformsPage::show_sample(bool train, int64_t row) {
  setEnabled(data_ != nullptr);
  if (!data_) return steps_->clear();
  const int64_t samples = train ? data_->train_samples : data_->test_samples;
  const QSignalBlocker quiet_part(part_), quiet_row(row_);
  part_->setCurrentIndex(train ? 0 : 1);
  epoch_->setEnabled(train);
  row_->setMaximum(static_cast<int>(std::min<int64_t>(std::numeric_limits<int>::max(), samples) - 1));
  row_->setValue(static_cast<int>(std::min<int64_t>(row, row_->maximum())));
  read();
}

void TransformsPage::read() {
  if (!data_ || !data_->split || !bench_.has_project()) return;
  struct Read {
    TransformLook look;
    QString error;
  };
  bench_.files.start(
      "data.transforms", tr("Look at what the transforms do"),
      [data = data_, train = part_->currentIndex() == 0, row = row_->value(), epoch = epoch_->value()](
          const Jobs::Report&, const std::atomic<bool>&) {
        Read r;
        try {
          r.look = look_through(*data->recipe, *data->split, train, row, epoch);
        } catch (const Error& e) {
          r.error = QString::fromStdString(e.message() + (e.hint().empty() ? "" : "; " + e.hint()));
        }
        return std::make_shared<Read>(std::move(r));
      },
      [this, of = data_->split](const std::shared_ptr<Read>& r) {
        if (!data_ || of != data_->split) return;
        fault_->set_text(r->error);
        fault_->setVisible(!r->error.isEmpty());
        fill(r->look);
      },
      {}, true);
}

void TransformsPage::fill(const TransformLook& look) {
  said_->set_text(look.steps.empty() ? QString() : QString::fromStdString(sample_text(look)));
  const int chosen = steps_->currentRow();
  steps_->clear();
  bool pictures = false, masks = false;
  for (const TransformLook::Step& s : look.steps) {
    auto* item = new QListWidgetItem(QString::fromStdString(step_name(s) + "\n" + step_text(s)), steps_);
    item->setToolTip(QString::fromStdString(s.help));
    if (s.picture.pixels.empty()) continue;
    item->setIcon(QIcon(step_pixmap(s, devicePixelRatioF())));
    pictures = true, masks |= !s.mask.pixels.empty();
  }
  const int side = pictures ? static_cast<int>(kSampleSide) : 0;
  steps_->setIconSize({masks ? 2 * side : side, side});
  steps_->setCurrentRow(std::min(chosen, steps_->count() - 1));
}

}  // namespace tenon::views
