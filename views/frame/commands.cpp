#include "views/frame/commands.h"

#include <QAction>
#include <QWidget>

namespace tenon::views {

QAction* Commands::add(Command c) {
  c.title = QObject::tr(c.title.toUtf8().constData());
  auto* action = new QAction(c.title, owner_);
  action->setObjectName(c.id);
  action->setShortcutContext(c.within ? Qt::WidgetWithChildrenShortcut : Qt::WindowShortcut);
  action->setCheckable(static_cast<bool>(c.checked));
  const QString id = c.id, keys = c.keys;
  QObject::connect(action, &QAction::triggered, owner_, [this, id] { run(id); });
  (c.within ? c.within : owner_)->addAction(action);
  actions_.insert(c.id, action);
  usual_.insert(id, keys);
  all_.push_back(std::move(c));
  set_keys(id, keys);
  return action;
}

void Commands::set_keys(const QString& id, const QString& keys) {
  QAction* action = actions_.value(id);
  for (Command& c : all_) {
    if (c.id != id) continue;
    c.keys = keys;
    const QKeySequence sequence = QKeySequence::fromString(keys, QKeySequence::PortableText);
    action->setShortcut(sequence);
    action->setToolTip(keys.isEmpty() ? c.title
                                      : QString("%1 (%2)").arg(c.title, sequence.toString(QKeySequence::NativeText)));
  }
}

const Command* Commands::owner_of(const QString& keys) const {
  if (keys.isEmpty()) return nullptr;
  for (const Command& c : all_)
    if (QKeySequence(c.keys, QKeySequence::PortableText) == QKeySequence(keys, QKeySequence::PortableText)) return &c;
  return nullptr;
}

QAction* Commands::action(const QString& id) const { return actions_.value(id); }

const Command* Commands::find(const QString& id) const {
  for (const Command& c : all_)
    if (c.id == id) return &c;
  return nullptr;
}

bool Commands::run(const QString& id) {
  const Command* c = find(id);
  if (!c || (c->enabled && !c->enabled())) return false;
  auto call = c->run;
  call();
  refresh();
  return true;
}

void Commands::refresh() {
  for (const Command& c : all_) {
    QAction* a = actions_.value(c.id);
    a->setEnabled(!c.enabled || c.enabled());
    if (c.checked) a->setChecked(c.checked());
    if (c.text) a->setText(c.text());
  }
}

}  // namespace tenon::views
