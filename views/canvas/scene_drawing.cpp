#include "views/canvas/scene_drawing.h"

#include <algorithm>
#include <cmath>

#include "views/canvas/glyphs.h"

namespace tenon::views {

namespace {
QColor qt_color(Ink ink, float alpha, ThemeName theme) {
  const Rgb c = color(ink, theme);
  QColor out(c.r, c.g, c.b);
  out.setAlphaF(std::clamp(alpha, 0.f, 1.f));
  return out;
}
QRectF qt_box(const Box& b) { return {b.x, b.y, b.w, b.h}; }

void draw_text(QPainter& p, const Scene::Prim& prim, const QString& text, ThemeName theme) {
  p.setFont(face_font(prim.face));
  p.setPen(qt_color(prim.fill, prim.alpha, theme));
  const QFontMetricsF metrics(p.font());
  // Half a pixel more: a text that was measured for its box is not shortened in it.
  const QString shown =
      metrics.horizontalAdvance(text) <= prim.box.w + 1 ? text : metrics.elidedText(text, Qt::ElideMiddle, prim.box.w);
  const double used = metrics.horizontalAdvance(shown);
  double x = prim.box.x;
  if (prim.align == Align::right) x = prim.box.right() - used;
  if (prim.align == Align::center) x += (prim.box.w - used) / 2;
  p.drawText(QPointF(x, prim.box.y + (prim.box.h + metrics.ascent() - metrics.descent()) / 2), shown);
}

void draw_line(QPainter& p, const Scene& scene, const Scene::Prim& prim, ThemeName theme) {
  QPolygonF points;
  for (uint32_t i = 0; i < prim.count; ++i) {
    const Point& at = scene.points()[prim.first + i];
    points << QPointF(at.x, at.y);
  }
  if (prim.closed) {
    p.setPen(Qt::NoPen);
    p.setBrush(qt_color(prim.fill, prim.alpha, theme));
    p.drawPolygon(points);
    return;
  }
  QPen pen(qt_color(prim.stroke, prim.alpha, theme), prim.width);
  pen.setJoinStyle(Qt::RoundJoin);
  p.setPen(pen);
  p.setBrush(Qt::NoBrush);
  const bool straight = points.size() == 2 && (points[0].x() == points[1].x() || points[0].y() == points[1].y());
  // A hairline lies on whole pixels.
  if (straight)
    for (QPointF& at : points) at = {std::floor(at.x()) + 0.5, std::floor(at.y()) + 0.5};
  p.drawPolyline(points);
}

void draw_hatch(QPainter& p, const Scene::Prim& prim, ThemeName theme) {
  p.save();
  p.setClipRect(qt_box(prim.box), Qt::IntersectClip);
  p.setPen(QPen(qt_color(prim.stroke, prim.alpha, theme), 1));
  for (double x = std::floor(prim.box.x / 6) * 6 - prim.box.h; x < prim.box.right(); x += 6)
    p.drawLine(QPointF(x, prim.box.bottom()), QPointF(x + prim.box.h, prim.box.y));
  p.restore();
}

void draw_rect(QPainter& p, const Scene::Prim& prim, ThemeName theme) {
  if (prim.hatch) return draw_hatch(p, prim, theme);
  QRectF box = qt_box(prim.box);
  if (prim.fill != Ink::none) {
    p.setPen(Qt::NoPen);
    p.setBrush(qt_color(prim.fill, prim.alpha, theme));
  } else {
    p.setPen(QPen(qt_color(prim.stroke, prim.alpha, theme), prim.width));
    p.setBrush(Qt::NoBrush);
    box.adjust(0.5, 0.5, -0.5, -0.5);  // the line lies within
  }
  if (prim.radius > 0)
    p.drawRoundedRect(box, prim.radius, prim.radius);
  else
    p.drawRect(box);
}
}  // namespace

void draw_scene(QPainter& p, const Scene& scene, ThemeName theme) {
  p.setRenderHint(QPainter::Antialiasing);
  p.fillRect(QRectF(0, 0, scene.size().w, scene.size().h), qt_color(Ink::panel, 1, theme));
  int clips = 0;
  for (const Scene::Prim& prim : scene.prims()) {
    switch (prim.kind) {
      case Scene::Kind::rect:
        draw_rect(p, prim, theme);
        break;
      case Scene::Kind::line:
        draw_line(p, scene, prim, theme);
        break;
      case Scene::Kind::text:
        draw_text(p, prim, QString::fromStdString(scene.string(prim.first)), theme);
        break;
      case Scene::Kind::clip:
        p.save();
        p.setClipRect(qt_box(prim.box), Qt::IntersectClip);
        ++clips;
        break;
      case Scene::Kind::unclip:
        if (clips > 0) {
          p.restore();
          --clips;
        }
        break;
    }
  }
  while (clips-- > 0) p.restore();
}

}  // namespace tenon::views
