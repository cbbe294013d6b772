#include "views/frame/picture.h"

#include <QBuffer>

#include "core/error.h"
#include "core/file.h"

namespace tenon::views {

void write_picture(const QPixmap& picture, const QString& path) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  if (!picture.save(&buffer, "PNG"))
    throw Error("the picture for " + path.toStdString() + " could not be made",
                "Is the window large enough to be seen?");
  write_file(path.toStdString(), {bytes.constData(), static_cast<size_t>(bytes.size())});
}

}  // namespace tenon::views
