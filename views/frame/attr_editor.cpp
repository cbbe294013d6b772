#include "views/frame/attr_editor.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"
#include "views/frame/theme.h"

namespace tenon::views {

namespace {

/// What the attribute is for, and what it may be.
QString tip_of(const AttrDef& def) { return QString::fromStdString(def.help + "\n" + attr_allowed(def)); }

/// A whole number that the box can hold, whatever the attribute's limits.
bool fits_box(const AttrDef& def) { return def.min == def.max || (def.min >= -2e9 && def.max <= 2e9); }

/// " 2 parts" without its number; of one thing " part".
QString suffix_of(const std::string& unit, int count) {
  QString text = " " + QString::fromStdString(unit);
  if (count == 1 && text.endsWith("s")) text.chop(text.endsWith("ches") ? 2 : 1);
  return text;
}

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
    if (!def.unit.empty()) {
      setSuffix(suffix_of(def.unit, value()));
      connect(this, &QSpinBox::valueChanged, this, [this](int n) { setSuffix(suffix_of(def_.unit, n)); });
    }
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
  std::optional<int> read(QString text) const {
    if (text.endsWith(suffix())) text.chop(suffix().size());
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

/// In a form that scrolls the wheel scrolls: it changes a value only where the editor was clicked first.
class WheelScrolls : public QObject {
 public:
  explicit WheelScrolls(QWidget* editor) : QObject(editor) {
    editor->setFocusPolicy(Qt::StrongFocus);
    editor->installEventFilter(this);
  }

 protected:
  bool eventFilter(QObject* o, QEvent* e) override {
    if (e->type() != QEvent::Wheel || static_cast<QWidget*>(o)->hasFocus()) return false;
    e->ignore();
    return true;
  }
};

/// A choice by its value: what the list says of it may be in another language. What another machine offers joins.
void choose(QComboBox* list, const QString& value) {
  int at = list->findData(value);
  if (at < 0 && list->property("open").toBool()) {
    list->addItem(value, value);
    at = list->count() - 1;
  }
  if (at >= 0) list->setCurrentIndex(at);
}

QWidget* make_line(const AttrDef& def, const AttrValue& value, std::function<void(const AttrValue&)> set,
                   QWidget* parent) {
  auto* line = new QLineEdit(QString::fromStdString(attr_text(value)), parent);
  line->setProperty("shown", line->text());
  QObject::connect(line, &QLineEdit::editingFinished, line, [line, def, set = std::move(set)] {
    try {
      const AttrValue typed = parse_attr(def, line->text().toStdString(), def.name);
      line->setModified(false);
      set(typed);
      set_style(line, "bad", "false");
      line->setToolTip(tip_of(def));
    } catch (const Error& e) {
      tell_fault(line, QString::fromStdString(e.what()));
    }
  });
  line->setToolTip(tip_of(def));
  line->setProperty("tip", tip_of(def));
  return line;
}

}  // namespace

void tell_fault(QLineEdit* line, const QString& why) {
  set_style(line, "bad", "true");
  line->setToolTip(why);
  line->setAccessibleDescription(why);
  if (line->isVisible()) QToolTip::showText(line->mapToGlobal(QPoint(0, line->height())), why, line);
}

void take_fault_back(QLineEdit* line, const QString& text) {
  line->setText(text);
  line->setModified(false);
  set_style(line, "bad", "false");
  line->setToolTip(line->property("tip").toString());
  line->setAccessibleDescription({});
}

void let_wheel_scroll(QWidget* editor) { new WheelScrolls(editor); }

QWidget* make_attr_editor(const AttrDef& def, const AttrValue& value, std::function<void(const AttrValue&)> set,
                          QWidget* parent) {
  if (std::holds_alternative<bool>(def.fallback)) {
    auto* box = new QCheckBox(parent);
    box->setChecked(std::get_if<bool>(&value) && std::get<bool>(value));
    QObject::connect(box, &QCheckBox::toggled, box, [set = std::move(set)](bool on) { set(on); });
    box->setToolTip(tip_of(def));
    return box;
  }
  if (std::holds_alternative<int64_t>(def.fallback) && fits_box(def)) {
    auto* spin = new WholeBox(def, parent);
    spin->setValue(std::get_if<int64_t>(&value) ? static_cast<int>(std::get<int64_t>(value)) : 0);
    QObject::connect(spin, &QSpinBox::valueChanged, spin, [set = std::move(set)](int v) { set(int64_t{v}); });
    new WheelScrolls(spin);
    return spin;
  }
  if (!def.choices.empty() || def.offers) {
    auto* list = new QComboBox(parent);
    list->setProperty("open", def.offers != nullptr);
    for (const std::string& c : def.offers ? def.offers() : def.choices)
      list->addItem(QString::fromStdString(c), QString::fromStdString(c));
    choose(list, QString::fromStdString(attr_text(value)));
    QObject::connect(list, &QComboBox::currentIndexChanged, list, [list, set = std::move(set)](int i) {
      if (i >= 0) set(list->itemData(i).toString().toStdString());
    });
    list->setToolTip(tip_of(def));
    list->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    new WheelScrolls(list);
    return list;
  }
  return make_line(def, value, std::move(set), parent);
}

void show_attr(QWidget* editor, const AttrValue& value) {
  const QSignalBlocker quiet(editor);
  const QString text = QString::fromStdString(attr_text(value));
  if (auto* spin = qobject_cast<QSpinBox*>(editor); spin && std::get_if<int64_t>(&value)) {
    const int v = static_cast<int>(std::get<int64_t>(value));
    if (spin->value() != v) spin->setValue(v);  // the same value would wipe what is being typed
  } else if (auto* box = qobject_cast<QCheckBox*>(editor); box && std::get_if<bool>(&value)) {
    box->setChecked(std::get<bool>(value));
  } else if (auto* list = qobject_cast<QComboBox*>(editor)) {
    choose(list, text);
  } else if (auto* line = qobject_cast<QLineEdit*>(editor)) {
    // What is being typed stays, unless the value is another one by now: an undo, or an edit elsewhere.
    const bool news = line->property("shown").toString() != text;
    line->setProperty("shown", text);
    if (news || !(line->hasFocus() && line->isModified())) take_fault_back(line, text);
  }
}

}  // namespace tenon::views
