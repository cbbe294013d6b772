#include "views/frame/picture.h"

#include <QBuffer>
#include <QPainter>
#include <QRegularExpression>
#include <QSvgGenerator>

#include "core/error.h"
#include "core/file.h"
#include "views/canvas/glyphs.h"
#include "views/frame/view.h"
#include "views/shared/scene_svg.h"

namespace tenon::views {

namespace {
void write_bytes(const QString& path, const QByteArray& bytes) {
  write_file(path.toStdString(), {bytes.constData(), static_cast<size_t>(bytes.size())});
}

/// The canvas that is most of a view; null where it has none, or hides it now.
SceneCanvas* filling(const View& view) {
  SceneCanvas* c = view.canvas();
  if (!c || view.empty() || !c->isVisibleTo(&view)) return nullptr;
  return 3 * c->width() * c->height() >= view.width() * view.height() ? c : nullptr;
}

void write_svg(View& view, ThemeName theme, const QString& path) {
  if (SceneCanvas* canvas = filling(view)) {
    const SvgFonts fonts{face_font(Face::body).family().toStdString(), face_font(Face::mono).family().toStdString(),
                         static_cast<float>(text_size()) / px::body};
    return write_file(path.toStdString(), to_svg(canvas->model().last(), theme, view.title().toStdString(), fonts));
  }
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QSvgGenerator svg;
  svg.setOutputDevice(&buffer);
  svg.setSize(view.size());
  svg.setViewBox(QRect(QPoint(0, 0), view.size()));
  svg.setTitle(view.title());
  {
    QPainter painter(&svg);
    view.render(&painter);
  }
  // Qt gives the size in millimetres, which no two programs make the same pixels of.
  static const QRegularExpression kSize("<svg width=\"[^\"]*\" height=\"[^\"]*\"");
  QString text = QString::fromUtf8(bytes);
  if (const auto m = kSize.match(text); m.hasMatch())
    text.replace(m.capturedStart(), m.capturedLength(),
                 QString("<svg width=\"%1\" height=\"%2\"").arg(view.width()).arg(view.height()));
  write_bytes(path, text.toUtf8());
}
}  // namespace

void write_picture(const QPixmap& picture, const QString& path) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  if (!picture.save(&buffer, "PNG"))
    throw Error("the picture for " + path.toStdString() + " could not be made",
                "Is the window large enough to be seen?");
  write_bytes(path, bytes);
}

void write_picture(View& of, ThemeName theme, const QString& path) {
  if (path.endsWith(".svg", Qt::CaseInsensitive)) return write_svg(of, theme, path);
  if (!path.endsWith(".png", Qt::CaseInsensitive))
    throw Error::usage(path.toStdString() + ": the end of the name says no kind of picture", "End it in .png or .svg.");
  write_picture(of.grab(), path);
}

}  // namespace tenon::views
