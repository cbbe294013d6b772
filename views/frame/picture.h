#pragma once
#include <QPixmap>
#include <QString>

#include "views/shared/tokens.h"

namespace tenon::views {

class View;

/// Writes a picture as PNG: whole, or not at all. Throws Error naming the file.
void write_picture(const QPixmap& picture, const QString& path);
/// A picture of a view, by the end of the file's name: .png, its pixels; .svg, lines and letters that stay sharp: its
/// canvas, drawn from the scene, or the view itself where no canvas fills it. Throws Error naming the file.
void write_picture(View& of, ThemeName theme, const QString& path);

}  // namespace tenon::views
