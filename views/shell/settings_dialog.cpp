#include "views/shell/settings_dialog.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLabel>
#include <QPointer>
#include <QPushButton>
#include <QTabWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/cache_folder.h"
#include "core/error.h"
#include "views/frame/attr_editor.h"
#include "views/frame/theme.h"
#include "views/shared/format.h"
#include "views/shared/settings.h"
#include "views/shell/shortcut_list.h"

namespace tenon::views {

namespace {
[[maybe_unused]] constexpr const char* kWords[] = {
    tr_later("Theme"),   tr_later("Language"),         tr_later("Text size"),
    tr_later("Threads"), tr_later("Keep read traces"), tr_later("Cache limit")};
[[maybe_unused]] constexpr const char* kChoices[] = {tr_later("system"),   tr_later("dark"),   tr_later("light"),
                                                     tr_later("contrast"), tr_later("pixels"), tr_later("GiB")};
/// "Text size" of "text_size".
QString words_of(const std::string& name) {
  QString words = QString::fromStdString(name).replace('_', ' ');
  words[0] = words[0].toUpper();
  return QObject::tr(words.toUtf8().constData());
}
/// As its editor shows it.
AttrDef in_words(AttrDef def) {
  def.help = tr(def.help.c_str());
  def.unit = tr(def.unit.c_str());
  return def;
}
}  // namespace

SettingsDialog::SettingsDialog(Commands& commands, QWidget* parent)
    : QDialog(parent), commands_(commands), tabs_(new QTabWidget(this)), shortcuts_(new ShortcutList(commands, this)) {
  setObjectName("settings");
  setWindowTitle(tr("Settings"));
  setAttribute(Qt::WA_DeleteOnClose);
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 12);
  box->setSpacing(12);
  tabs_->setDocumentMode(true);
  tabs_->addTab(build_general(), tr("General"));
  tabs_->addTab(shortcuts_, tr("Shortcuts"));
  box->addWidget(tabs_, 1);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(16, 0, 16, 0);
  auto* usual = new QPushButton(tr("Everything as usual"), this);
  usual->setObjectName("settings.reset");
  usual->setToolTip(tr("Every setting and every shortcut back to its default"));
  usual->setAutoDefault(false);
  connect(usual, &QPushButton::clicked, this, [this] {
    for (const AttrDef& def : settings::defs()) change(def.name, [&def] { settings::reset(def.name); });
    shortcuts_->reset_all();
  });
  row->addWidget(usual);
  row->addStretch(1);
  auto* done = new QPushButton(tr("Close"), this);
  done->setObjectName("settings.close");
  done->setAutoDefault(false);  // Enter in a field takes what was typed, and nothing more
  set_style(done, "primary", "true");
  connect(done, &QPushButton::clicked, this, &QDialog::accept);
  row->addWidget(done);
  box->addLayout(row);
  shortcuts_->write = [this](const std::function<void()>& write) { change({}, write); };
  // On a small screen it scrolls within; it is never larger than its window.
  resize(QSize(680, 500).boundedTo(parent->size() - QSize(20, 20)));
  refresh();
}

QWidget* SettingsDialog::build_general() {
  auto* page = new QWidget(this);
  set_style(page, "surface", "panel");
  page->setAttribute(Qt::WA_StyledBackground);
  auto* grid = new QGridLayout(page);
  grid->setContentsMargins(16, 16, 16, 16);
  grid->setHorizontalSpacing(16);
  grid->setVerticalSpacing(4);
  grid->setColumnStretch(1, 1);
  int at = 0;
  for (const AttrDef& def : settings::defs()) {
    const QString name = QString::fromStdString(def.name);
    const AttrDef shown = in_words(def);
    auto* label = new QLabel(words_of(def.name), page);
    Row row;
    row.editor = make_attr_editor(
        shown, settings::get(def.name),
        [this, name = def.name](const AttrValue& value) { change(name, [&] { settings::set(name, value); }); }, page);
    if (auto* list = qobject_cast<QComboBox*>(row.editor))
      for (int i = 0; i < list->count(); ++i) list->setItemText(i, tr(list->itemText(i).toUtf8().constData()));
    row.editor->setObjectName("settings." + name);
    row.editor->setAccessibleName(words_of(def.name));
    row.editor->setMaximumWidth(200);
    row.editor->setMinimumWidth(140);
    label->setBuddy(row.editor);
    row.reset = new QToolButton(page);
    row.reset->setText("↺");
    row.reset->setObjectName("settings.reset." + name);
    row.reset->setAccessibleName(tr("Default of %1").arg(words_of(def.name)));
    row.reset->setToolTip(tr("Back to the default, %1").arg(tr(attr_text(def.fallback).c_str())));
    set_style(row.reset, "slim", "true");
    connect(row.reset, &QToolButton::clicked, this,
            [this, name = def.name] { change(name, [&] { settings::reset(name); }); });
    auto* help = new QLabel(QString::fromStdString(shown.help), page);
    help->setWordWrap(true);
    set_style(help, "voice", "small");
    help->setContentsMargins(0, 0, 0, 12);
    grid->addWidget(label, at, 0);
    auto* line = new QHBoxLayout;
    line->addWidget(row.editor);
    line->addWidget(row.reset);
    line->addStretch(1);
    grid->addLayout(line, at, 1);
    grid->addWidget(help, at + 1, 1);
    rows_.insert(name, row);
    at += 2;
  }
  add_cache_row(grid, at++, page);
  grid->setRowStretch(at, 1);
  return page;
}

void SettingsDialog::add_cache_row(QGridLayout* grid, int at, QWidget* page) {
  grid->addWidget(new QLabel(tr("Cache folder"), page), at, 0);
  auto* line = new QHBoxLayout;
  cached_ = new QLabel(page);
  cached_->setObjectName("settings.cached");
  cached_->setToolTip(QString::fromStdString(cache::folder()));
  empty_cache_ = new QPushButton(tr("Empty"), page);
  empty_cache_->setObjectName("settings.empty_cache");
  empty_cache_->setToolTip(tr("Remove all of it but what is open: it is made again when it is needed"));
  empty_cache_->setAutoDefault(false);
  connect(empty_cache_, &QPushButton::clicked, this, [this] {
    if (!empty_cache) return;
    empty_cache_->setEnabled(false);
    empty_cache([dialog = QPointer<SettingsDialog>(this)] {
      if (dialog) dialog->refresh();
    });
  });
  line->addWidget(empty_cache_);
  line->addWidget(cached_, 1);
  grid->addLayout(line, at, 1);
}

void SettingsDialog::change(const std::string& name, const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& e) {
    if (on_failure) on_failure(QString::fromStdString(e.message()), QString::fromStdString(e.hint()));
  }
  refresh();
  if (!name.empty() && on_change) on_change(name);
}

void SettingsDialog::refresh() {
  for (const AttrDef& def : settings::defs()) {
    const Row& row = rows_[QString::fromStdString(def.name)];
    const AttrValue value = settings::get(def.name);
    show_attr(row.editor, value);
    row.reset->setEnabled(value != def.fallback);
  }
  const cache::Held held = cache::held_in_all();
  const QString bytes = QString::fromStdString(format_bytes(static_cast<double>(held.bytes)));
  cached_->setText(held.files == 0   ? tr("nothing is kept there")
                   : held.files == 1 ? tr("%1 in 1 file").arg(bytes)
                                     : tr("%1 in %2 files").arg(bytes).arg(held.files));
  empty_cache_->setEnabled(held.files > 0);
}

}  // namespace tenon::views
