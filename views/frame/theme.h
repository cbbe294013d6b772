#pragma once
#include <QIcon>
#include <QString>

#include "views/shared/tokens.h"

class QApplication;
class QWidget;

namespace tenon::views {

/// Palette, style sheet and fonts of the application in a theme.
void apply_theme(QApplication& app, ThemeName theme);
/// dark or light as the desktop has it.
ThemeName system_theme();
QString theme_id(ThemeName t);
bool parse_theme(const QString& id, ThemeName& out);

/// An icon of the resources in an ink of the theme, with a paler one for disabled.
QIcon icon(const QString& name, ThemeName theme, Ink ink = Ink::text);
/// The small rounded square that stands for a meaning.
QPixmap mark(Ink ink, ThemeName theme, int size);
QColor qcolor(Ink ink, ThemeName theme);
/// Gives a widget a property that the style sheet looks at.
void set_style(QWidget* w, const char* property, const QString& value);

}  // namespace tenon::views
