#pragma once
#include <QString>
#include <QStringList>

// What holds for a person and not for one project, in the user's configuration folder: tenon/window.ini in
// $XDG_CONFIG_HOME, or in ~/.config.
namespace tenon::views::settings {

/// "dark", "light", "contrast"; empty: never chosen.
QString theme();
void set_theme(const QString& id);

/// Files that were opened, the latest first; those that are gone are left out.
QStringList recent();
void add_recent(const QString& path);

}  // namespace tenon::views::settings
