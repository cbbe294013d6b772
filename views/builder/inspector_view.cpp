#include "views/builder/inspector_view.h"

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSignalBlocker>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "engine/spec/own_values.h"
#include "engine/spec/submodel.h"
#include "engine/train/model_fit.h"
#include "views/frame/attr_editor.h"
#include "views/frame/theme.h"
#include "views/frame/widgets.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {
constexpr const char* kRow = "inspector.row";  ///< an editor, and whether instances differ in what it shows
}

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
    if (!l || l->type != type_ || wanted() != all_ || weights_text() != weights_ || own_text() != own_ ||
        fault_text() != fault_)
      rebuild();
    else
      refresh_values();
    // What was refused belongs to the model as it was: after an edit or an undo the fields say what it has.
    if (std::exchange(revision_, builder_.revision()) == builder_.revision()) return;
    for (QLineEdit* line : findChildren<QLineEdit*>())
      if (line->property("bad").toString() == "true") take_fault_back(line, line->property("shown").toString());
  });
}

std::set<std::string> InspectorView::wanted() const {
  return builder_.selected().size() > 1 && builder_.selected().contains(layer_) ? builder_.selected()
                                                                                : std::set<std::string>{layer_};
}

void InspectorView::show_layer(const std::string& layer) {
  if (layer == layer_ && wanted() == all_ && builder_.spec().find(layer) && weights_text() == weights_ &&
      fault_text() == fault_) {
    refresh_values();
    return;
  }
  // What was typed and not yet confirmed belongs to the layer it was typed for.
  if (QWidget* typing = QApplication::focusWidget(); typing && isAncestorOf(typing)) typing->clearFocus();
  layer_ = layer;
  rebuild();
}

QWidget* InspectorView::label(const QString& text) {
  auto* w = new QLabel(text, this);
  set_style(w, "voice", "secondary");
  return w;
}

std::string InspectorView::fault_text() const {
  const LayerReport* r = all_.size() > 1 ? nullptr : builder_.report(layer_);
  return r ? r->error : std::string();
}

void InspectorView::add_mends() {
  if (fault_.empty()) return;
  constexpr size_t kMost = 2000;  // each edit is tried, on the hand's time
  if (builder_.spec().layers.size() > kMost) return;
  std::vector<Mend> mends = mends_of(builder_.spec(), layer_);
  if (const ModelSpec* before = builder_.before_last_edit())
    if (std::optional<Mend> whole = mend_of_edit(*before, builder_.spec())) mends.insert(mends.begin(), *whole);
  for (size_t i = 0; i < mends.size(); ++i) {
    auto* button = new QPushButton(QString::fromStdString(mends[i].words), this);
    button->setObjectName(QString("builder.mend.%1").arg(i));
    button->setToolTip(tr("Makes %1 fit; undo takes it back").arg(layer_.c_str()));
    connect(button, &QPushButton::clicked, this,
            [this, mend = mends[i]] { builder_.replace(views::tr("mend {}: {}", layer_, mend.words), mend.model); });
    form_->addRow(button);
  }
}

std::vector<const LayerSpec*> InspectorView::shown_layers() const {
  std::vector<const LayerSpec*> out;
  for (const LayerSpec& l : builder_.spec().layers)
    if (all_.contains(l.name)) out.push_back(&l);
  return out;
}

/// The attributes that all of them know under the same name, of the same kind and with the same choices.
std::vector<AttrDef> InspectorView::common_attrs(const std::vector<const LayerSpec*>& layers) const {
  std::vector<AttrDef> common;
  bool first = true;
  std::set<std::string> types;
  for (const LayerSpec* l : layers) {
    if (!types.insert(l->type).second) continue;
    const LayerInfo* info = find_layer_type(l->type);
    const std::vector<AttrDef> own = info ? info->attrs : std::vector<AttrDef>{};
    if (std::exchange(first, false)) {
      common = own;
      continue;
    }
    std::erase_if(common, [&](const AttrDef& a) {
      return std::none_of(own.begin(), own.end(), [&](const AttrDef& b) {
        return a.name == b.name && a.fallback.index() == b.fallback.index() && a.choices == b.choices;
      });
    });
  }
  return common;
}

void InspectorView::rebuild() {
  while (form_->rowCount() > 0) {  // not deleted here: an edit in one of them may be what led here
    QFormLayout::TakeRowResult row = form_->takeRow(0);
    for (QLayoutItem* item : {row.labelItem, row.fieldItem}) {
      if (!item) continue;
      if (QWidget* w = item->widget()) {
        QList<QWidget*> parts{w};
        if (w->objectName() == kRow) parts += w->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly);
        for (QWidget* part : parts) {
          part->setObjectName({});
          part->blockSignals(true);  // hiding it ends its edit, and layer_ is another one by now
        }
        discard(w);
      }
      delete item;
    }
  }
  const LayerSpec* l = builder_.spec().find(layer_);
  type_ = l ? l->type : "";
  all_ = wanted();
  weights_ = weights_text();
  own_ = own_text();
  fault_ = fault_text();
  setVisible(l != nullptr);
  if (!l) return;
  if (all_.size() > 1) {
    if (!builder_.selected_group().empty()) {
      add_group(builder_.selected_group());
      add_submodel(builder_.selected_group());
      add_weights();
      add_own_values(instance_filling(builder_.spec(), builder_.selected_group()));
    }
    const std::vector<AttrDef> common = common_attrs(shown_layers());
    for (const AttrDef& def : common) {
      const AttrValue* v = l->find(def.name);
      add_attr(def, v ? *v : def.fallback);
    }
    if (common.empty() && own_.empty()) {
      auto* none = new QLabel(tr("The chosen layers have no attribute in common."), this);
      none->setWordWrap(true);
      set_style(none, "voice", "secondary");
      form_->addRow(none);
    }
    return refresh_values();
  }
  add_mends();
  add_name(*l);
  if (const LayerInfo* info = find_layer_type(l->type))
    for (const AttrDef& def : info->attrs) {
      const AttrValue* v = l->find(def.name);
      add_attr(def, v ? *v : def.fallback);
    }
  add_notes(*l);
}

void InspectorView::add_name(const LayerSpec& l) {
  auto* name = new QLineEdit(QString::fromStdString(l.name), this);
  name->setObjectName("inspector.name");
  name->setProperty("shown", name->text());
  connect(name, &QLineEdit::editingFinished, this, [this, name] {
    const std::string to = name->text().trimmed().toStdString(), from = layer_;
    if (filling_) return;
    if (to == from) return take_fault_back(name, QString::fromStdString(from));
    layer_ = to;  // the edit tells everyone at once; this form already means the new name
    all_ = {to};
    if (builder_.rename(from, to)) return take_fault_back(name, QString::fromStdString(to));
    layer_ = from;
    all_ = {from};
    tell_fault(name, QString::fromStdString(builder_.why()));
  });
  form_->addRow(label(tr("name")), name);
}

void InspectorView::add_group(const std::string& path) {
  auto* name = new QLineEdit(QString::fromStdString(path), this);
  name->setObjectName("inspector.group");
  name->setProperty("shown", name->text());
  connect(name, &QLineEdit::editingFinished, this, [this, name, path] {
    const std::string to = name->text().trimmed().toStdString();
    if (filling_ || to == path || builder_.rename_group(path, to)) return;
    tell_fault(name, QString::fromStdString(builder_.why()));
  });
  form_->addRow(label(tr("group")), name);
}

/// A name makes a group a sub-model; another one renames the sub-model.
void InspectorView::add_submodel(const std::string& path) {
  const SubModelSpec* of = submodel_of(builder_.spec(), instance_filling(builder_.spec(), path));
  auto* name = new QLineEdit(of ? QString::fromStdString(of->name) : QString(), this);
  name->setObjectName("inspector.submodel");
  name->setPlaceholderText(tr("a name makes it one"));
  name->setProperty("shown", name->text());
  name->setToolTip(of ? tr("What is changed in one instance is changed in all %1").arg(of->instances.size())
                      : tr("A sub-model can be added again; what is changed in one instance is changed in all"));
  connect(name, &QLineEdit::editingFinished, this, [this, name, was = of ? of->name : std::string()] {
    const std::string to = name->text().trimmed().toStdString();
    if (filling_ || to == was || (was.empty() ? builder_.make_submodel(to) : builder_.rename_submodel(was, to))) return;
    tell_fault(name, QString::fromStdString(builder_.why()));
  });
  form_->addRow(label(tr("sub-model")), name);
}

std::string InspectorView::weights_text() const {
  std::string text = builder_.weights_owner();
  for (const std::string& o : builder_.weight_owners()) text += "\n" + o;
  const SubModelSpec* of = submodel_of(builder_.spec(), instance_filling(builder_.spec(), builder_.selected_group()));
  return of ? text + "\n" + of->name : text;
}

void InspectorView::add_weights() {
  std::vector<std::string> owners = builder_.weight_owners();
  const std::string now = builder_.weights_owner();
  if (!now.empty() && std::find(owners.begin(), owners.end(), now) == owners.end()) owners.insert(owners.begin(), now);
  if (owners.empty()) return;
  auto* list = new QComboBox(this);
  list->setObjectName("inspector.weights");
  list->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  list->setMinimumContentsLength(6);
  list->setToolTip(tr("Layers that share weights are trained as one, and counted once"));
  // All at once: of a model of repeated blocks there are thousands.
  QStringList texts = {tr("its own")};
  for (const std::string& o : owners) texts.push_back(QString::fromStdString("⇄ " + o));
  list->addItems(texts);
  const auto at = std::find(owners.begin(), owners.end(), now);
  list->setCurrentIndex(at == owners.end() ? 0 : static_cast<int>(at - owners.begin()) + 1);
  connect(list, &QComboBox::activated, this, [this, owners](int row) {
    if (!filling_) builder_.share_weights_with(row > 0 ? owners[static_cast<size_t>(row - 1)] : std::string());
  });
  form_->addRow(label(tr("weights")), list);
}

void InspectorView::add_attr(const AttrDef& def, const AttrValue& value) {
  QWidget* w = make_attr_editor(
      def, value,
      [this, attr = def.name](const AttrValue& v) {
        if (filling_) return;
        all_.size() > 1 ? builder_.set_attr_of_selected(attr, v) : builder_.set_attr(layer_, attr, v);
      },
      this);
  add_row(QString::fromStdString(def.name), QString::fromStdString(def.name).replace('_', ' '), w);
  if (all_.size() > 1 || submodels_around(builder_.spec(), layer_).empty()) return;
  int row = 0;
  QFormLayout::ItemRole role;
  form_->getWidgetPosition(w, &row, &role);
  auto* both = new QWidget(this);
  both->setObjectName(kRow);
  auto* line = new QHBoxLayout(both);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(2);
  form_->removeWidget(w);
  line->addWidget(w, 1);
  line->addWidget(own_button(def.name));
  form_->setWidget(row, role, both);
}

void InspectorView::add_row(const QString& name, const QString& words, QWidget* editor) {
  editor->setObjectName("inspector." + name);
  editor->setAccessibleName(name);
  QWidget* said = label(words);
  said->setObjectName("label." + editor->objectName());
  form_->addRow(said, editor);
}

QWidget* InspectorView::own_button(const std::string& attr) {
  const std::string own = own_in(builder_.spec(), layer_, attr);
  auto* b = new QToolButton(this);
  b->setObjectName(QString::fromStdString("own." + attr));
  b->setText(own.empty() ? "=" : "≠");
  b->setAutoRaise(true);
  b->setPopupMode(QToolButton::InstantPopup);
  const QString name = QString::fromStdString(attr), of = QString::fromStdString(own);
  b->setToolTip(own.empty() ? tr("All instances have the same %1").arg(name)
                            : tr("Each %1 has its own %2").arg(of, name));
  b->setAccessibleName(b->toolTip());
  auto* menu = new QMenu(b);
  const auto add = [&](const QString& words, const std::string& submodel) {
    QAction* a = menu->addAction(words);
    a->setCheckable(true);
    a->setChecked(submodel == own);
    connect(a, &QAction::triggered, this, [this, attr, submodel, layer = layer_] {
      if (!filling_) builder_.set_own_value(layer, attr, submodel);
    });
  };
  add(tr("The same in every instance"), "");
  for (const SubModelSpec* s : submodels_around(builder_.spec(), layer_))
    add(tr("Each %1 has its own").arg(QString::fromStdString(s->name)), s->name);
  b->setMenu(menu);
  return b;
}

std::string InspectorView::own_text() const {
  const ModelSpec& spec = builder_.spec();
  std::string text;
  if (all_.size() > 1) {
    const SubModelSpec* of = submodel_of(spec, instance_filling(spec, builder_.selected_group()));
    for (const OwnAttr& o : of ? of->own : std::vector<OwnAttr>{}) text += o.layer + "." + o.attr + "\n";
  } else if (const LayerInfo* info = find_layer_type(type_)) {
    for (const SubModelSpec* s : submodels_around(spec, layer_)) text += s->name + "\n";
    for (const AttrDef& d : info->attrs) text += own_in(spec, layer_, d.name) + "\n";
  }
  return text;
}

void InspectorView::add_own_values(const std::string& scope) {
  const SubModelSpec* of = submodel_of(builder_.spec(), scope);
  for (const OwnAttr& o : of ? of->own : std::vector<OwnAttr>{}) {
    const std::string layer = scope + "." + o.layer;
    const LayerSpec* l = builder_.spec().find(layer);
    const LayerInfo* info = l ? find_layer_type(l->type) : nullptr;
    for (const AttrDef& def : info ? info->attrs : std::vector<AttrDef>{}) {
      if (def.name != o.attr) continue;
      const AttrValue* v = l->find(def.name);
      QWidget* w = make_attr_editor(
          def, v ? *v : def.fallback,
          [this, layer, attr = def.name](const AttrValue& value) {
            if (!filling_) builder_.set_attr(layer, attr, value);
          },
          this);
      const QString name = QString::fromStdString(o.layer + "." + o.attr);
      add_row(name, QString(name).replace('_', ' '), w);
      w->setToolTip(tr("Each %1 has its own").arg(QString::fromStdString(of->name)));
    }
  }
}

void InspectorView::add_notes(const LayerSpec& l) {
  auto* comment = new QLineEdit(QString::fromStdString(l.comment), this);
  comment->setObjectName("inspector.comment");
  comment->setPlaceholderText(tr("for whoever reads the model"));
  connect(comment, &QLineEdit::editingFinished, this, [this, comment] {
    if (!filling_) builder_.set_comment(layer_, comment->text().trimmed().toStdString());
  });
  form_->addRow(label(tr("comment")), comment);
  add_weights();
  if (l.type == "Input" || l.type == "Output") return;
  auto* off = new QCheckBox(this);  // without words of its own: the form stays as narrow as the dock
  off->setObjectName("inspector.off");
  off->setToolTip(tr("What it would read goes on in its place: a way to try the model without it"));
  off->setChecked(l.off);
  connect(off, &QCheckBox::toggled, this, [this] {
    if (!filling_) builder_.switch_selected();
  });
  form_->addRow(label(tr("left out")), off);
}

void InspectorView::refresh_values() {
  const LayerSpec* l = builder_.spec().find(layer_);
  if (!l) return;
  filling_ = true;
  const LayerInfo* info = find_layer_type(l->type);
  const bool several = all_.size() > 1;
  const std::vector<const LayerSpec*> layers = several ? shown_layers() : std::vector<const LayerSpec*>{};
  for (const AttrDef& def : several ? common_attrs(layers) : info ? info->attrs : std::vector<AttrDef>{}) {
    const AttrValue* have = l->find(def.name);
    const AttrValue& v = have ? *have : def.fallback;
    const QString name = QString("inspector.%1").arg(QString::fromStdString(def.name));
    if (auto* w = findChild<QWidget*>(name)) show_attr(w, v);
    if (!several) continue;
    const bool differ = std::any_of(layers.begin(), layers.end(), [&](const LayerSpec* o) {
      const AttrValue* theirs = o->find(def.name);
      return (theirs ? *theirs : def.fallback) != v;
    });
    if (auto* said = findChild<QLabel*>("label." + name)) {
      const QString words = QString::fromStdString(def.name).replace('_', ' ');
      said->setText(differ ? tr("%1 (differ)").arg(words) : words);
      said->setToolTip(differ ? tr("The chosen layers differ here; a value typed is that of all of them") : QString());
    }
  }
  const std::string scope = several ? instance_filling(builder_.spec(), builder_.selected_group()) : std::string();
  const SubModelSpec* of = scope.empty() ? nullptr : submodel_of(builder_.spec(), scope);
  for (const OwnAttr& o : of ? of->own : std::vector<OwnAttr>{})
    if (const LayerSpec* own = builder_.spec().find(scope + "." + o.layer))
      if (auto* w = findChild<QWidget*>(QString::fromStdString("inspector." + o.layer + "." + o.attr)))
        if (const AttrValue* v = own->find(o.attr)) show_attr(w, *v);
  if (auto* name = findChild<QLineEdit*>("inspector.name"); name && !(name->hasFocus() && name->isModified()))
    take_fault_back(name, QString::fromStdString(l->name));
  if (auto* comment = findChild<QLineEdit*>("inspector.comment"); comment && !comment->hasFocus())
    comment->setText(QString::fromStdString(l->comment));
  if (auto* off = findChild<QCheckBox*>("inspector.off")) off->setChecked(l->off);
  filling_ = false;
}

}  // namespace tenon::views
