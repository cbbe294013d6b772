#include "views/findings/what_if_view.h"

#include <QCheckBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/error.h"
#include "views/canvas/scene_canvas.h"
#include "views/frame/application.h"
#include "views/frame/flow_layout.h"
#include "views/frame/widgets.h"
#include "views/shared/language.h"

namespace tenon::views {

using snapshot::AllocatorSettings;

WhatIfForm::WhatIfForm(QWidget* parent) : QWidget(parent) {
  setObjectName("what_if");
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(14, 8, 14, 4);
  box->setSpacing(6);
  box->addWidget(build_words());
  box->addWidget(build_fields());
  said_ = new QLabel(this);
  said_->setObjectName("what_if.said");
  said_->setWordWrap(true);
  set_style(said_, "voice", "bad");
  said_->hide();
  box->addWidget(said_);
  tried_ = new QWidget(this);
  tried_flow_ = new FlowLayout(6, tried_);
  box->addWidget(tried_);
  picture_ = new SceneCanvas(curves_, this);
  picture_->setObjectName("what_if.curves");
  picture_->setAccessibleName(tr("Reserved memory under other settings"));
  picture_->setMinimumHeight(150);
  picture_->on_fault = [] { Application::report(tr("the picture of what-if")); };
  box->addWidget(picture_, 1);
}

QWidget* WhatIfForm::build_words() {
  auto* bar = new QWidget(this);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(new QLabel("PYTORCH_CUDA_ALLOC_CONF", bar));
  words_ = new QLineEdit(bar);
  words_->setObjectName("what_if.words");
  words_->setAccessibleName(tr("Settings of the allocator"));
  words_->setPlaceholderText("expandable_segments:True,max_split_size_mb:128");
  connect(words_, &QLineEdit::textEdited, this, [this] { follow_words(); });
  connect(words_, &QLineEdit::returnPressed, this, [this] { add(); });
  row->addWidget(words_, 1);
  auto* try_it = new QToolButton(bar);
  try_it->setObjectName("what_if.add");
  try_it->setText(tr("Try it"));
  try_it->setToolTip(tr("Add these settings to what is tried"));
  set_style(try_it, "primary", "true");
  connect(try_it, &QToolButton::clicked, this, [this] { add(); });
  row->addWidget(try_it);
  row->addWidget(new QLabel(tr("device has"), bar));
  limit_ = new QDoubleSpinBox(bar);
  limit_->setObjectName("what_if.limit");
  limit_->setAccessibleName(tr("What the device can give"));
  limit_->setRange(0, 100000);
  limit_->setDecimals(2);
  limit_->setSuffix(" GiB");
  limit_->setSpecialValueText(tr("as recorded"));
  limit_->setToolTip(tr("What the device can give; 0: what the recording tells of it"));
  limit_->setKeyboardTracking(false);
  connect(limit_, &QDoubleSpinBox::valueChanged, this, [this](double gib) {
    asked_.limit_gib = gib;
    changed();
  });
  row->addWidget(limit_);
  return bar;
}

QWidget* WhatIfForm::build_fields() {
  auto* fields = new QWidget(this);
  auto* flow = new FlowLayout(8, fields);
  expandable_ = new QCheckBox("expandable_segments", fields);
  expandable_->setObjectName("what_if.expandable_segments");
  expandable_->setToolTip(tr("Segments grow in place"));
  connect(expandable_, &QCheckBox::clicked, this, [this] { follow_fields(); });
  flow->addWidget(expandable_);
  add_field(flow, "max_split_size_mb", tr_later("none"),
            tr_later("Blocks as large as that are neither split nor used for less; at least 20"));
  add_field(flow, "roundup_power2_divisions", tr_later("none"),
            tr_later("Sizes are rounded up to a part of a power of two: 8, or [256:1,512:2,>:8]"));
  add_field(flow, "garbage_collection_threshold", tr_later("off"),
            tr_later("Share of what is allowed above which unused segments are freed first, between 0 and 1"));
  add_field(flow, "max_non_split_rounding_mb", "20",
            tr_later("By how much a block that is not split may be larger than asked for"));
  add_field(flow, "large_segment_size_mb", "20", tr_later("Of segments for requests between 1 and 10 MiB"));
  return fields;
}

void WhatIfForm::add_field(FlowLayout* to, const char* key, const char* holds, const char* help) {
  auto* pair = new QWidget(this);
  auto* row = new QHBoxLayout(pair);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(4);
  auto* label = new QLabel(key, pair);
  set_style(label, "voice", "secondary");
  row->addWidget(label);
  auto* line = new QLineEdit(pair);
  line->setObjectName(QString("what_if.") + key);
  line->setAccessibleName(key);
  line->setPlaceholderText(tr(holds));
  line->setToolTip(tr(help));
  line->setFixedWidth(72);
  connect(line, &QLineEdit::textEdited, this, [this] { follow_fields(); });
  connect(line, &QLineEdit::returnPressed, this, [this] { add(); });
  row->addWidget(line);
  fields_[key] = line;
  to->addWidget(pair);
}

void WhatIfForm::begin(const WhatIfAsked& asked, const AllocatorSettings& own) {
  asked_ = asked;
  own_ = own;
  const QSignalBlocker quiet(limit_);
  limit_->setValue(asked_.limit_gib);
  curves_.show(nullptr);
  say({});
  show_tried();
}

/// The fields say what the words do; what they have no field for stays in the words alone.
void WhatIfForm::follow_words() {
  for (const auto& [key, line] : fields_) line->clear();
  expandable_->setChecked(false);
  for (const auto& [key, value] : snapshot::setting_parts(words_->text().toStdString())) {
    if (key == "expandable_segments") expandable_->setChecked(value == "True");
    if (const auto at = fields_.find(key); at != fields_.end()) at->second->setText(QString::fromStdString(value));
  }
  say({});
}

void WhatIfForm::follow_fields() {
  QStringList parts;
  if (expandable_->isChecked()) parts << "expandable_segments:True";
  for (const auto& [key, line] : fields_)
    if (const QString value = line->text().trimmed(); !value.isEmpty())
      parts << QString::fromStdString(key) + ":" + value;
  for (const auto& [key, value] : snapshot::setting_parts(words_->text().toStdString()))
    if (key != "expandable_segments" && !fields_.count(key))
      parts << QString::fromStdString(value.empty() ? key : key + ":" + value);
  words_->setText(parts.join(","));
  say({});
}

void WhatIfForm::add() {
  try {
    const std::string text = words_->text().toStdString();
    const AllocatorSettings s = AllocatorSettings::parse(text);
    if (s == own_) return say(views::tr("These are the settings it was recorded under: the first row is theirs."));
    for (const std::string& known : asked_.settings)
      if (AllocatorSettings::parse(known) == s) return say(views::tr("These settings are tried already."));
    asked_.settings.push_back(text);
  } catch (const Error& e) {
    return say(e.message() + (e.hint().empty() ? "" : ": " + e.hint()));
  }
  say({});
  show_tried();
  changed();
}

void WhatIfForm::take_out(size_t which) {
  if (which >= asked_.settings.size()) return;
  asked_.settings.erase(asked_.settings.begin() + static_cast<long>(which));
  show_tried();
  changed();
}

/// What is tried, each to be taken out again.
void WhatIfForm::show_tried() {
  while (QLayoutItem* item = tried_flow_->takeAt(0)) {
    if (item->widget()) discard(item->widget());
    delete item;
  }
  for (size_t i = 0; i < asked_.settings.size(); ++i) {
    auto* chip = new QToolButton(tried_);
    const QString name = QString::fromStdString(AllocatorSettings::parse(asked_.settings[i]).text());
    chip->setObjectName("what_if.tried." + name);
    chip->setText(name + "  ×");
    chip->setToolTip(tr("Do not try it"));
    set_style(chip, "chip", "true");
    chip->setEnabled(asked_.settings.size() > 1);
    connect(chip, &QToolButton::clicked, this, [this, i] { take_out(i); });
    tried_flow_->addWidget(chip);
  }
  usual_ = new QToolButton(tried_);
  usual_->setObjectName("what_if.usual");
  usual_->setText(tr("The usual ones"));
  usual_->setToolTip(tr("Try what is tried where nothing is asked for"));
  set_style(usual_, "chip", "true");
  usual_->setVisible(asked_.settings != tracing::usual_settings());
  connect(usual_, &QToolButton::clicked, this, [this] {
    asked_.settings = tracing::usual_settings();
    show_tried();
    changed();
  });
  tried_flow_->addWidget(usual_);
}

void WhatIfForm::say(const std::string& text) {
  said_->setText(QString::fromStdString(text));
  said_->setVisible(!text.empty());
}

void WhatIfForm::changed() {
  if (on_change) on_change();
}

void WhatIfForm::set_theme(ThemeName theme) { picture_->set_theme(theme); }
bool WhatIfForm::idle() const { return picture_->idle(); }

}  // namespace tenon::views
