#include "views/frame/commands.h"

#include <QAction>
#include <QWidget>

namespace tenon::views {

QAction* Commands::add(Command c) {
  auto* action = new QAction(c.title, owner_);
  action->setObjectName(c.id);
  if (!c.keys.isEmpty()) action->setShortcut(QKeySequence::fromString(c.keys, QKeySequence::PortableText));
  action->setShortcutContext(Qt::WindowShortcut);
  action->setCheckable(static_cast<bool>(c.checked));
  QString tip = c.keys.isEmpty()
                    ? c.title
                    : QString("%1 (%2)").arg(c.title, QKeySequence(c.keys).toString(QKeySequence::NativeText));
  action->setToolTip(tip);
  QString id = c.id;
  QObject::connect(action, &QAction::triggered, owner_, [this, id] { run(id); });
  owner_->addAction(action);
  actions_.insert(c.id, action);
  all_.push_back(std::move(c));
  return action;
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
