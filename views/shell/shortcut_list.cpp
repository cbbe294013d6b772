#include "views/shell/shortcut_list.h"

#include <QHeaderView>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "views/frame/theme.h"
#include "views/shared/format.h"
#include "views/shared/settings.h"

namespace tenon::views {

namespace {
QString native(const QString& keys) {
  return QKeySequence(keys, QKeySequence::PortableText).toString(QKeySequence::NativeText);
}
/// A letter alone is typed, over the builder and in every field; a key of a view is the view's.
bool can_be_shortcut(QKeyCombination k) {
  const auto mods = k.keyboardModifiers() & ~(Qt::ShiftModifier | Qt::KeypadModifier);
  return mods != Qt::NoModifier || (k.key() >= Qt::Key_F1 && k.key() <= Qt::Key_F35);
}
/// Tells each key when it is pressed: Qt waits a second for a second one, and no command here has two.
class KeysField : public QKeySequenceEdit {
 public:
  using QKeySequenceEdit::QKeySequenceEdit;
  std::function<void(const QKeySequence&)> on_keys;

 protected:
  void keyPressEvent(QKeyEvent* e) override {
    QKeySequenceEdit::keyPressEvent(e);
    if (!keySequence().isEmpty()) on_keys(keySequence());
  }
};
}  // namespace

ShortcutList::ShortcutList(Commands& commands, QWidget* parent)
    : QWidget(parent),
      commands_(commands),
      search_(new QLineEdit(this)),
      list_(new QTreeWidget(this)),
      editor_(new KeysField(this)),
      said_(new QLabel(this)),
      take_(new QPushButton(tr("Take them"), this)),
      usual_(new QPushButton(tr("Usual keys"), this)),
      none_(new QPushButton(tr("No keys"), this)) {
  set_style(this, "surface", "panel");
  setAttribute(Qt::WA_StyledBackground);
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(16, 12, 16, 4);
  box->setSpacing(8);
  search_->setObjectName("shortcuts.search");
  search_->setPlaceholderText(tr("Find a command by a word or its keys"));
  search_->setClearButtonEnabled(true);
  box->addWidget(search_);
  list_->setObjectName("shortcuts.list");
  list_->setAccessibleName(tr("Commands and their keys"));
  list_->setHeaderLabels({tr("Command"), tr("Menu"), tr("Keys")});
  list_->setRootIsDecorated(false);
  list_->setUniformRowHeights(true);
  list_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  list_->header()->setStretchLastSection(false);
  list_->setColumnWidth(1, 90);
  list_->setColumnWidth(2, 150);
  box->addWidget(list_, 1);
  said_->setObjectName("shortcuts.said");
  said_->setWordWrap(true);
  box->addWidget(said_);
  auto* row = new QHBoxLayout;
  editor_->setObjectName("shortcuts.editor");
  editor_->setAccessibleName(tr("Keys of the chosen command"));
  editor_->setMaximumWidth(220);
  row->addWidget(editor_);
  const QList<std::pair<QPushButton*, const char*>> buttons{
      {take_, "shortcuts.take"}, {usual_, "shortcuts.usual"}, {none_, "shortcuts.none"}};
  for (const auto& [b, name] : buttons) {
    b->setObjectName(name);
    b->setAutoDefault(false);
    row->addWidget(b);
  }
  row->addStretch(1);
  box->addLayout(row);
  connect(search_, &QLineEdit::textChanged, this, &ShortcutList::fill);
  connect(list_, &QTreeWidget::currentItemChanged, this, &ShortcutList::show_chosen);
  static_cast<KeysField*>(editor_)->on_keys = [this](const QKeySequence& keys) { typed(keys); };
  connect(take_, &QPushButton::clicked, this, [this] {
    const QString keys = wanted_;
    if (const Command* other = commands_.owner_of(keys)) {
      const QString id = other->id;
      write([&] { settings::set_shortcut(id.toStdString(), ""); });
      commands_.set_keys(id, {});
    }
    give(keys);
  });
  connect(usual_, &QPushButton::clicked, this, [this] {
    const QString keys = commands_.usual_keys(chosen());
    keys.isEmpty() ? give({}) : typed(QKeySequence(keys, QKeySequence::PortableText));
  });
  connect(none_, &QPushButton::clicked, this, [this] { give({}); });
  fill();
}

QString ShortcutList::chosen() const {
  const QTreeWidgetItem* item = list_->currentItem();
  return item ? item->data(0, Qt::UserRole).toString() : QString();
}

void ShortcutList::fill() {
  const QString was = chosen(), words = search_->text().trimmed();
  {
    const QSignalBlocker quiet(list_);
    list_->clear();
    for (const Command& c : commands_.all()) {
      const QString keys = native(c.keys);
      if (!words.isEmpty() && fuzzy_score(words.toStdString(), (c.title + " " + keys).toStdString()) < 0) continue;
      auto* item = new QTreeWidgetItem(list_, {c.title, tr(c.menu.toUtf8().constData()), keys});
      item->setData(0, Qt::UserRole, c.id);
      item->setSizeHint(0, QSize(0, static_cast<int>(px::row)));
      if (c.keys != commands_.usual_keys(c.id)) {
        QFont changed = item->font(2);
        changed.setBold(true);
        item->setFont(2, changed);
        const QString usual = native(commands_.usual_keys(c.id));
        item->setToolTip(2, usual.isEmpty() ? tr("It usually has none") : tr("Usually %1").arg(usual));
      }
      if (c.id == was) list_->setCurrentItem(item);
    }
    if (!list_->currentItem() && list_->topLevelItemCount() > 0) list_->setCurrentItem(list_->topLevelItem(0));
  }
  show_chosen();
}

void ShortcutList::show_chosen() {
  const Command* c = commands_.find(chosen());
  const QSignalBlocker quiet(editor_);
  wanted_.clear();
  take_->hide();
  for (QWidget* w : std::initializer_list<QWidget*>{editor_, usual_, none_}) w->setEnabled(c != nullptr);
  editor_->setKeySequence(c ? QKeySequence(c->keys, QKeySequence::PortableText) : QKeySequence());
  said_->setText(c ? tr("Press the keys for “%1” in the field below.").arg(c->title)
                   : tr("No command has these words or keys."));
  set_style(said_, "voice", "secondary");
  if (!c) return;
  usual_->setEnabled(c->keys != commands_.usual_keys(c->id));
  none_->setEnabled(!c->keys.isEmpty());
}

void ShortcutList::typed(const QKeySequence& keys) {
  if (keys.isEmpty()) return;  // the field empties itself before it takes new ones
  const QKeySequence first(keys[0]);
  const QString text = first.toString(QKeySequence::PortableText);
  const Command* other = commands_.owner_of(text);
  auto say = [this](const QString& words) {
    said_->setText(words);
    set_style(said_, "voice", "bad");
  };
  if (!can_be_shortcut(first[0])) {
    show_chosen();
    return say(tr("%1 alone is typed, or belongs to the views: hold Ctrl or Alt with it, or take a function key.")
                   .arg(native(text)));
  }
  if (!other || other->id == chosen()) return give(text);
  wanted_ = text;
  const QSignalBlocker quiet(editor_);
  editor_->setKeySequence(first);
  say(tr("%1 belongs to “%2”, which has none if they are taken from it.").arg(native(text), other->title));
  take_->show();
}

void ShortcutList::give(const QString& keys) {
  const QString id = chosen();
  if (id.isEmpty()) return;
  write([&] {
    if (keys == commands_.usual_keys(id))
      settings::reset_shortcut(id.toStdString());
    else
      settings::set_shortcut(id.toStdString(), keys.toStdString());
  });
  commands_.set_keys(id, keys);
  fill();
}

void ShortcutList::reset_all() {
  write([] { settings::reset_shortcuts(); });
  for (const Command& c : commands_.all()) commands_.set_keys(c.id, commands_.usual_keys(c.id));
  fill();
}

}  // namespace tenon::views
