#include "views/data/transforms_view.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QImage>
#include <QPainter>
#include <QScrollBar>
#include <QSpinBox>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>

#include "core/error.h"
#include "engine/train/recipe.h"
#include "views/frame/theme.h"
#include "views/shared/sample_picture.h"

namespace tenon::views {
namespace {

constexpr int kLeast = 96, kGap = 12, kPad = 6;

/// How high pictures of a width of 1 are.
double ratio_of(const TransformLook& look) {
  double most = 0;
  for (const TransformLook::Step& s : look.steps)
    if (!s.picture.pixels.empty())
      most = std::max(most, static_cast<double>(s.picture.height) / static_cast<double>(s.picture.width));
  return most;
}

/// Picture and mask beside each other on the ground of a box, with some room above and below. Pixels stay pixels where
/// they are made larger.
QPixmap step_pixmap(const TransformLook::Step& step, const QSize& box, int side, qreal ratio) {
  QPixmap out(box * ratio);
  out.setDevicePixelRatio(ratio);
  out.fill(Qt::transparent);
  QPainter painter(&out);
  int x = 0;
  for (const data::Image* image : {&step.picture, &step.mask}) {
    if (image->pixels.empty()) continue;
    const auto format = image->channels == 1 ? QImage::Format_Grayscale8 : QImage::Format_RGB888;
    const QImage picture(image->pixels.data(), static_cast<int>(image->width), static_cast<int>(image->height),
                         static_cast<int>(image->width * image->channels), format);
    const QSize size = picture.size().scaled(side, box.height() - 2 * kPad, Qt::KeepAspectRatio);
    painter.setRenderHint(QPainter::SmoothPixmapTransform, size.width() * ratio < picture.width());
    const QRect at(QPoint(x + (side - size.width()) / 2, box.height() - kPad - size.height()), size);
    painter.drawImage(at, picture);
    painter.setPen(QColor(128, 128, 128));  // black ends on black, and white on white
    painter.drawRect(at.adjusted(0, 0, -1, -1));
    x += side + kPad;
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
  steps_->setSpacing(2);
  steps_->setWordWrap(true);
  steps_->setMovement(QListView::Static);
  steps_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  steps_->installEventFilter(this);
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
  if (!data_) return fill({});
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
        fill(std::move(r->look));
      },
      {}, true);
}

void TransformsPage::fill(TransformLook look) {
  look_ = std::move(look);
  said_->set_text(look_.steps.empty() ? QString() : QString::fromStdString(sample_text(look_)));
  const int chosen = steps_->currentRow();
  steps_->clear();
  for (const TransformLook::Step& s : look_.steps) {
    QString text = QString::fromStdString(step_text(s));
    text.replace(' ', QChar::Nbsp).replace(QString(QChar::Nbsp) + "·" + QChar::Nbsp, " · ");  // broken there alone
    auto* item = new QListWidgetItem(QString::fromStdString(step_name(s)) + "\n" + text, steps_);
    item->setToolTip(QString::fromStdString(s.help));
  }
  arrange();
  steps_->setCurrentRow(std::min(chosen, steps_->count() - 1));
}

bool TransformsPage::eventFilter(QObject* of, QEvent* event) {
  if (of == steps_ && event->type() == QEvent::Resize) arrange();
  return QWidget::eventFilter(of, event);
}

/// Pictures as large as the space has them, all of one size; samples that are none are lines of a list.
void TransformsPage::arrange() {
  const double ratio = ratio_of(look_);
  const int count = steps_->count();
  const bool pictures = ratio > 0;
  steps_->setViewMode(pictures ? QListView::IconMode : QListView::ListMode);
  steps_->setMovement(QListView::Static);
  steps_->setResizeMode(QListView::Adjust);
  if (!pictures) {
    steps_->setIconSize({});
    return steps_->setGridSize({});
  }
  const int beside =
      std::any_of(look_.steps.begin(), look_.steps.end(), [](auto& s) { return !s.mask.pixels.empty(); }) ? 2 : 1;
  // A bar that comes and goes would change the width that it comes of.
  const int bar = steps_->verticalScrollBar()->sizeHint().width(), lines = 4 * steps_->fontMetrics().lineSpacing();
  const int width = steps_->width() - 2 * steps_->frameWidth() - bar, height = steps_->height() - 2 * kGap;
  int best = 0, columns = 1;
  for (int c = 1; c <= count; ++c) {
    const int rows = (count + c - 1) / c;
    const double wide = (width / c - kGap - (beside - 1) * kPad) / static_cast<double>(beside);
    const int side = static_cast<int>(std::min(wide, (height / rows - lines - kGap - 2 * kPad) / ratio));
    if (side > best) best = side, columns = c;
  }
  const int side = std::clamp(best, kLeast, static_cast<int>(kLookSide));
  const QSize box(beside * side + (beside - 1) * kPad, static_cast<int>(side * ratio) + 2 * kPad);
  if (best < kLeast) columns = std::max(1, width / (box.width() + kGap));
  steps_->setIconSize(box);
  steps_->setGridSize(
      {std::max(box.width() + kGap, std::min(width / columns, box.width() + 4 * kGap)), box.height() + lines + kGap});
  for (int i = 0; i < count; ++i) {
    const QPixmap picture = step_pixmap(look_.steps[static_cast<size_t>(i)], box, side, devicePixelRatioF());
    QIcon icon(picture);
    icon.addPixmap(picture, QIcon::Selected);
    steps_->item(i)->setIcon(icon);
  }
}

}  // namespace tenon::views
