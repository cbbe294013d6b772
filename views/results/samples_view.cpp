#include "views/results/samples_view.h"

#include <QImage>
#include <QPainter>
#include <QPixmap>
#include <algorithm>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using projects::Prediction;
using projects::Results;

namespace {
constexpr int kPicture = 64, kBetween = 2, kGalleryGap = static_cast<int>(px::gap);

QImage to_qimage(const data::Image& image) {
  const auto format = image.channels == 1 ? QImage::Format_Grayscale8 : QImage::Format_RGB888;
  return QImage(image.pixels.data(), static_cast<int>(image.width), static_cast<int>(image.height),
                static_cast<int>(image.width * image.channels), format)
      .copy();
}

std::vector<const data::Image*> pictures_of(const SampleSight& s) {
  std::vector<const data::Image*> all;
  for (const data::Image* i : {&s.input, &s.target, &s.answer})
    if (!i->pixels.empty()) all.push_back(i);
  return all;
}
int width_of(const SampleSight& s) {
  const int n = std::max<int>(1, static_cast<int>(pictures_of(s).size()));
  return n * kPicture + (n - 1) * kBetween;
}

/// Input, truth and answer beside each other; pixels stay pixels where they are made larger.
QPixmap beside_each_other(const SampleSight& s, qreal ratio) {
  const std::vector<const data::Image*> all = pictures_of(s);
  QPixmap out(QSize(width_of(s), kPicture) * ratio);
  out.setDevicePixelRatio(ratio);
  out.fill(Qt::transparent);
  QPainter painter(&out);
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const QImage image = to_qimage(*all[static_cast<size_t>(i)]);
    const QSize size = image.size().scaled(kPicture, kPicture, Qt::KeepAspectRatio);
    painter.setRenderHint(QPainter::SmoothPixmapTransform, image.width() > kPicture * ratio);
    painter.drawImage(
        QRect(QPoint(i * (kPicture + kBetween) + (kPicture - size.width()) / 2, (kPicture - size.height()) / 2), size),
        image);
  }
  return out;
}
}  // namespace

SampleGallery::SampleGallery(Bench& bench, QWidget* parent) : QListWidget(parent), bench_(bench) {
  setObjectName("results.gallery");
  setAccessibleName(tr("Test samples as they are, the worst first"));
  setUniformItemSizes(true);
  setResizeMode(QListView::Adjust);
  setMovement(QListView::Static);
  setSelectionMode(QAbstractItemView::SingleSelection);
  setMinimumHeight(60);
  setViewportMargins(kGalleryGap, kGalleryGap, kGalleryGap, 0);
  hide();
  connect(this, &QListWidget::currentRowChanged, this, [this](int i) {
    if (marking_ || i < 0 || i >= static_cast<int>(rows_.size())) return;
    bench_.select(Selection::sample(rows_[static_cast<size_t>(i)], "results"));
  });
}

void SampleGallery::show_samples(std::shared_ptr<const Results> results, const std::vector<int64_t>& rows) {
  std::vector<int64_t> first(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), kShown)));
  if (results == results_ && first == rows_) return;
  results_ = std::move(results);
  rows_ = std::move(first);
  const SampleSight::Kind kind =
      results_ && results_->data ? SampleSight::kind(*results_->data) : SampleSight::Kind::none;
  setVisible(kind != SampleSight::Kind::none && !rows_.empty());
  bench_.files.cancel_tag("sights");
  fill({});
  if (kind == SampleSight::Kind::none || rows_.empty()) return;
  bench_.files.start(
      "sights", tr("Read the samples that are shown"),
      [results = results_, rows = rows_](const Jobs::Report&, const std::atomic<bool>& cancelled) {
        std::vector<SampleSight> sights;
        for (int64_t row : rows) {
          if (cancelled) break;
          sights.push_back(sight_of(*results, results->predictions[static_cast<size_t>(row)]));
        }
        return sights;
      },
      [this, of = results_](const std::vector<SampleSight>& sights) {
        if (of != results_) return;
        fill(sights);
      },
      [this](const QString& message, const QString& hint) {
        bench_.fail(tr("The samples cannot be shown"), message, hint);
      },
      true);
}

void SampleGallery::fill(const std::vector<SampleSight>& sights) {
  marking_ = true;
  clear();
  const bool text = results_ && results_->data && SampleSight::kind(*results_->data) == SampleSight::Kind::text;
  setViewMode(text ? QListView::ListMode : QListView::IconMode);
  setMovement(QListView::Static);
  setWordWrap(!text);
  setTextElideMode(text ? Qt::ElideRight : Qt::ElideMiddle);
  int wide = 2 * kPicture;
  for (const SampleSight& s : sights) wide = std::max(wide, width_of(s));
  const int line = fontMetrics().lineSpacing();
  const bool told =
      !rows_.empty() && !outcome_text(*results_, results_->predictions[static_cast<size_t>(rows_[0])]).empty();
  const QSize cell =
      text ? QSize(0, line + kGalleryGap) : QSize(wide + 2 * kGalleryGap, kPicture + (told ? 4 : 2) * line);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Prediction& p = results_->predictions[static_cast<size_t>(rows_[i])];
    const std::string loss = views::tr("loss {}", format_value(p.loss));
    const std::string outcome = outcome_text(*results_, p);
    const QString whole = QString::fromStdString(outcome);
    // Truth and guess have a line each where one does not hold both; a name that breaks would push the loss out.
    const auto fitted = [&](const QString& s) {
      return fontMetrics().elidedText(s, Qt::ElideMiddle, cell.width() - kGalleryGap);
    };
    QString line_of = text ? whole : fitted(whole);
    if (const qsizetype arrow = whole.indexOf(" → "); line_of != whole && arrow > 0)
      line_of = fitted(whole.left(arrow)) + "\n" + fitted(whole.mid(arrow + 1));
    QString label = (whole.isEmpty() ? QString() : line_of + "\n") + QString::fromStdString(loss);
    QString tip = tr("Sample %1").arg(QString::fromStdString(format_grouped(p.row)));
    if (line_of != whole) tip += ": " + whole;
    QPixmap picture;
    if (i < sights.size() && text) {
      const SampleSight& s = sights[i];
      const std::string guess = views::tr("guess {}", s.guess);
      label = QString::fromStdString(guess + ":  …" + s.before + "[" + s.at + "]" + s.after + "…");
      tip += ": " + tr("in brackets what was guessed worst, %1").arg(QString::fromStdString(loss));
    } else if (i < sights.size()) {
      picture = beside_each_other(sights[i], devicePixelRatioF());
      if (!sights[i].target.pixels.empty()) tip += ": " + tr("input, truth, answer");
      if (sights[i].target.pixels.empty() && !sights[i].answer.pixels.empty()) tip += ": " + tr("input, answer");
    } else if (!text) {
      picture = QPixmap(QSize(kPicture, kPicture) * devicePixelRatioF());
      picture.setDevicePixelRatio(devicePixelRatioF());
      picture.fill(Qt::transparent);
    }
    auto* item = new QListWidgetItem(label, this);
    if (!picture.isNull()) item->setIcon(QIcon(picture));
    item->setToolTip(tip);
    item->setSizeHint(cell);
    item->setTextAlignment(text ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignHCenter | Qt::AlignTop);
  }
  setIconSize({wide, kPicture});
  setGridSize(text ? QSize() : cell + QSize(kGalleryGap, kGalleryGap));
  marking_ = false;
  mark(bench_.bus.current());
}

void SampleGallery::mark(const Selection& s) {
  int at = -1;
  if (s.kind == Selection::Kind::sample && !s.document)
    for (size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i] == s.id) at = static_cast<int>(i);
  if (at == currentRow()) return;
  marking_ = true;
  setCurrentRow(at);
  if (at >= 0) scrollToItem(item(at));
  marking_ = false;
}

}  // namespace tenon::views
