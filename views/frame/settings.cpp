#include "views/frame/settings.h"

#include <QDir>
#include <QFileInfo>
#include <QSettings>

namespace tenon::views::settings {

namespace {
constexpr int kMostRecent = 30;

/// Read anew each time: another window may have written it.
QSettings file() {
  const QString home = qEnvironmentVariable("XDG_CONFIG_HOME");
  return QSettings((home.isEmpty() ? QDir::homePath() + "/.config" : home) + "/tenon/window.ini", QSettings::IniFormat);
}
}  // namespace

QString theme() { return file().value("theme").toString(); }
void set_theme(const QString& id) { file().setValue("theme", id); }

QStringList recent() {
  QStringList there;
  for (const QString& path : file().value("recent").toStringList())
    if (QFileInfo::exists(path)) there << path;
  return there;
}

void add_recent(const QString& path) {
  QSettings s = file();
  QStringList all = s.value("recent").toStringList();
  const QString whole = QFileInfo(path).absoluteFilePath();
  all.removeAll(whole);
  all.prepend(whole);
  s.setValue("recent", all.mid(0, kMostRecent));
}

}  // namespace tenon::views::settings
