#include "views/builder/inspector_view.h"

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <limits>
#include <optional>

#include "core/error.h"
#include "views/frame/theme.h"
#include "views/frame/widgets.h"

namespace tenon::views {

namespace {

/// What the attribute is for, and what it may be.
QString tip_of(const AttrDef& def) { return QString::fromStdString(def.help + "\n" + attr_allowed(def)); }

/// A whole number within the attribute's limits, typed as anywhere else: 1e4 is one.
class WholeBox : public QSpinBox {
 public:
  WholeBox(const AttrDef& def, QWidget* parent) : QSpinBox(parent), def_(def) {
    const bool limited = def.min != def.max;
    setRange(limited ? static_cast<int>(std::max(def.min, -2e9)) : std::numeric_limits<int>::min(),
             limited ? static_cast<int>(std::min(def.max, 2e9)) : std::numeric_limits<int>::max());
    setKeyboardTracking(false);
    setGroupSeparatorShown(false);
    if (size_t zero = def.help.find("0: "); zero != std::string::npos && def.min == 0)
      setSpecialValueText(QString::fromStdString(def.help.substr(zero + 3)));  // what 0 stands for
    if (!def.unit.empty()) setSuffix(" " + QString::fromStdString(def.unit));
    setToolTip(tip_of(def));
  }

 protected:
  QValidator::State validate(QString& text, int&) const override {
    return read(text) || text == specialValueText() ? QValidator::Acceptable : QValidator::Intermediate;
  }
  int valueFromText(const QString& text) const override {
    return read(text).value_or(text == specialValueText() ? minimum() : value());
  }

 private:
  std::optional<int> read(const QString& text) const {
    try {
      const auto n = std::get<int64_t>(parse_attr(def_, text.toStdString(), def_.name));
      if (n < minimum() || n > maximum()) return {};
      return static_cast<int>(n);
    } catch (const Error&) {
      return {};
    }
  }
  AttrDef def_;
};

}  // namespace

InspectorView::InspectorView(Bench& bench, QWidget* parent)
    : QWidget(parent), builder_(bench.model<BuilderModel>()), form_(new QFormLayout(this)) {
  setObjectName("inspector");
  form_->setContentsMargins(0, 0, 0, 0);
  form_->setHorizontalSpacing(12);
  form_->setVerticalSpacing(4);
  form_->setLabelAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  form_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  connect(&bench, &Bench::state_changed, this, [this] {
    const LayerSpec* l = builder_.spec().find(layer_);
    if (!l || l->type != type_)
      rebuild();
    else
      refresh_values();
  });
}

void InspectorView::show_layer(const std::string& layer) {
  if (layer == layer_ && builder_.spec().find(layer)) {
    refresh_values();
    return;
  }
  // What was typed and not yet confirmed belongs to the layer it was typed for.
  if (QWidget* typing = QApplication::focusWidget(); typing && isAncestorOf(typing)) typing->clearFocus();
  layer_ = layer;
  rebuild();
}

QWidget* InspectorView::editor(const AttrDef& def, const AttrValue& value) {
  const std::string attr = def.name;
  if (std::holds_alternative<bool>(def.fallback)) {
    auto* box = new QCheckBox(this);
    box->setChecked(std::get_if<bool>(&value) && std::get<bool>(value));
    connect(box, &QCheckBox::toggled, this, [this, attr](bool on) {
      if (!filling_) builder_.set_attr(layer_, attr, on);
    });
    box->setToolTip(tip_of(def));
    return box;
  }
  if (std::holds_alternative<int64_t>(def.fallback)) {
    auto* spin = new WholeBox(def, this);
    spin->setValue(std::get_if<int64_t>(&value) ? static_cast<int>(std::get<int64_t>(value)) : 0);
    connect(spin, &QSpinBox::valueChanged, this, [this, attr](int v) {
      if (!filling_) builder_.set_attr(layer_, attr, int64_t{v});
    });
    return spin;
  }
  if (!def.choices.empty()) {
    auto* list = new QComboBox(this);
    for (const std::string& c : def.choices) list->addItem(QString::fromStdString(c));
    list->setCurrentText(QString::fromStdString(attr_text(value)));
    connect(list, &QComboBox::currentTextChanged, this, [this, attr](const QString& text) {
      if (!filling_) builder_.set_attr(layer_, attr, text.toStdString());
    });
    list->setToolTip(tip_of(def));
    return list;
  }
  auto* line = new QLineEdit(QString::fromStdString(attr_text(value)), this);
  connect(line, &QLineEdit::editingFinished, this, [this, line, def] {
    try {
      const AttrValue v = parse_attr(def, line->text().toStdString(), def.name);
      set_style(line, "bad", "false");
      line->setToolTip(tip_of(def));
      if (!filling_) builder_.set_attr(layer_, def.name, v);
    } catch (const Error& e) {
      set_style(line, "bad", "true");
      line->setToolTip(QString::fromStdString(e.what()));
    }
  });
  line->setToolTip(tip_of(def));
  return line;
}

void InspectorView::rebuild() {
  while (form_->rowCount() > 0) {  // not deleted here: an edit in one of them may be what led here
    QFormLayout::TakeRowResult row = form_->takeRow(0);
    for (QLayoutItem* item : {row.labelItem, row.fieldItem}) {
      if (!item) continue;
      if (QWidget* w = item->widget()) {
        w->setObjectName({});
        QObject::disconnect(w, nullptr, this, nullptr);  // hiding it ends its edit, and layer_ is another one by now
        discard(w);
      }
      delete item;
    }
  }
  const LayerSpec* l = builder_.spec().find(layer_);
  type_ = l ? l->type : "";
  setVisible(l != nullptr);
  if (!l) return;
  const LayerInfo* info = find_layer_type(l->type);
  auto label = [this](const QString& text) {
    auto* w = new QLabel(text, this);
    set_style(w, "voice", "secondary");
    return w;
  };
  auto* name = new QLineEdit(QString::fromStdString(l->name), this);
  name->setObjectName("inspector.name");
  connect(name, &QLineEdit::editingFinished, this, [this, name] {
    std::string to = name->text().trimmed().toStdString(), from = layer_;
    if (filling_ || to == from) return;
    layer_ = to;  // the edit tells everyone at once; this form already means the new name
    bool ok = builder_.rename(from, to);
    if (!ok) layer_ = from;
    set_style(name, "bad", ok ? "false" : "true");
    name->setToolTip(ok ? QString() : QString::fromStdString(builder_.why()));
  });
  form_->addRow(label("name"), name);
  if (!info) return;
  for (const AttrDef& def : info->attrs) {
    const AttrValue* v = l->find(def.name);
    QWidget* w = editor(def, v ? *v : def.fallback);
    w->setObjectName(QString("inspector.%1").arg(QString::fromStdString(def.name)));
    w->setAccessibleName(QString::fromStdString(def.name));
    form_->addRow(label(QString::fromStdString(def.name).replace('_', ' ')), w);
  }
}

void InspectorView::refresh_values() {
  const LayerSpec* l = builder_.spec().find(layer_);
  const LayerInfo* info = l ? find_layer_type(l->type) : nullptr;
  if (!info) return;
  filling_ = true;
  for (const AttrDef& def : info->attrs) {
    const AttrValue* have = l->find(def.name);
    const AttrValue& v = have ? *have : def.fallback;
    QWidget* w = findChild<QWidget*>(QString("inspector.%1").arg(QString::fromStdString(def.name)));
    if (auto* spin = qobject_cast<QSpinBox*>(w); spin && std::get_if<int64_t>(&v))
      spin->setValue(static_cast<int>(std::get<int64_t>(v)));
    else if (auto* box = qobject_cast<QCheckBox*>(w); box && std::get_if<bool>(&v))
      box->setChecked(std::get<bool>(v));
    else if (auto* list = qobject_cast<QComboBox*>(w))
      list->setCurrentText(QString::fromStdString(attr_text(v)));
    else if (auto* line = qobject_cast<QLineEdit*>(w); line && !line->hasFocus())
      line->setText(QString::fromStdString(attr_text(v)));
  }
  filling_ = false;
}

}  // namespace tenon::views
