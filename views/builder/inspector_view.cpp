#include "views/builder/inspector_view.h"

#include <QApplication>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>

#include "views/frame/attr_editor.h"
#include "views/frame/theme.h"
#include "views/frame/widgets.h"

namespace tenon::views {

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

void InspectorView::rebuild() {
  while (form_->rowCount() > 0) {  // not deleted here: an edit in one of them may be what led here
    QFormLayout::TakeRowResult row = form_->takeRow(0);
    for (QLayoutItem* item : {row.labelItem, row.fieldItem}) {
      if (!item) continue;
      if (QWidget* w = item->widget()) {
        w->setObjectName({});
        w->blockSignals(true);  // hiding it ends its edit, and layer_ is another one by now
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
  form_->addRow(label(tr("name")), name);
  if (!info) return;
  for (const AttrDef& def : info->attrs) {
    const AttrValue* v = l->find(def.name);
    QWidget* w = make_attr_editor(
        def, v ? *v : def.fallback,
        [this, attr = def.name](const AttrValue& value) {
          if (!filling_) builder_.set_attr(layer_, attr, value);
        },
        this);
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
    if (auto* w = findChild<QWidget*>(QString("inspector.%1").arg(QString::fromStdString(def.name)))) show_attr(w, v);
  }
  filling_ = false;
}

}  // namespace tenon::views
