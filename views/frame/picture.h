#pragma once
#include <QPixmap>
#include <QString>

namespace tenon::views {

/// Writes a picture as PNG: whole, or not at all. Throws Error naming the file.
void write_picture(const QPixmap& picture, const QString& path);

}  // namespace tenon::views
