#include "views/canvas/glyphs.h"

#include <QFontDatabase>
#include <QFontMetricsF>
#include <QPainter>
#include <cmath>

namespace tenon::views {

namespace {
/// Without a desktop theme Qt answers with a generic alias, which fontconfig maps to whatever comes first; choose
/// better from what is there.
QString pick(const QFont& system, const QStringList& liked) {
  static const QStringList generic{"Sans Serif", "Sans",        "sans-serif",       "Monospace",
                                   "monospace",  "DejaVu Sans", "DejaVu Sans Mono", ""};
  if (!generic.contains(system.family())) return system.family();
  const QStringList installed = QFontDatabase::families();
  for (const QString& family : liked)
    if (installed.contains(family)) return family;
  return system.family();
}
}  // namespace

static int body_pixels = static_cast<int>(px::body);

void set_text_size(int pixels) { body_pixels = pixels; }
int text_size() { return body_pixels; }

QFont face_font(Face face) {
  bool mono = face == Face::mono || face == Face::mono_small;
  static const QString ui = pick(QFontDatabase::systemFont(QFontDatabase::GeneralFont),
                                 {"Inter", "Noto Sans", "Cantarell", "Open Sans", "DejaVu Sans"});
  static const QString fixed = pick(QFontDatabase::systemFont(QFontDatabase::FixedFont),
                                    {"JetBrains Mono", "Noto Sans Mono", "Source Code Pro", "DejaVu Sans Mono"});
  QFont font(mono ? fixed : ui);
  float size = face == Face::title ? px::title : face == Face::small || face == Face::mono_small ? px::small : px::body;
  if (face == Face::mono) size = px::body - 1;  // monospaced letters look larger
  font.setPixelSize(static_cast<int>(std::lround(size * static_cast<float>(body_pixels) / px::body)));
  if (face == Face::title) font.setWeight(QFont::DemiBold);
  if (mono) font.setStyleHint(QFont::Monospace);
  font.setStyleStrategy(QFont::StyleStrategy(QFont::PreferAntialias | QFont::NoSubpixelAntialias));
  return font;
}

const std::u32string& usual_letters() {
  static const std::u32string all = [] {
    std::u32string s;
    for (char32_t c = 0x20; c < 0x7F; ++c) s += c;
    return s + U"…·×→←↑↓−–—µ∞≥≤≈Δ√²³▸▾●○■✓⚠σ";
  }();
  return all;
}

std::shared_ptr<Glyphs> Glyphs::at_scale(double dpr) {
  // A few hundred small pictures a scale and size, for the life of the process.
  static std::map<std::pair<int, int>, std::shared_ptr<Glyphs>> stores;
  auto& store = stores[{static_cast<int>(std::lround(dpr * 100)), text_size()}];
  if (!store) store = std::make_shared<Glyphs>(dpr);
  return store;
}

Glyphs::Glyphs(double dpr) : dpr_(dpr) {
  for (int f = 0; f < kFaces; ++f) {
    fonts_[f] = face_font(static_cast<Face>(f));
    fonts_[f].setPixelSize(static_cast<int>(std::lround(fonts_[f].pixelSize() * dpr)));
    QFontMetricsF m(fonts_[f]);
    ascent_[f] = static_cast<float>(m.ascent());
    descent_[f] = static_cast<float>(m.descent());
  }
}

const Glyphs::Glyph& Glyphs::glyph(Face face, char32_t c) {
  auto [at, fresh] = glyphs_.try_emplace({static_cast<int>(face), c});
  Glyph& g = at->second;
  if (!fresh) return g;
  const QFont& font = fonts_[static_cast<int>(face)];
  QFontMetricsF metrics(font);
  QString text = QString::fromUcs4(&c, 1);
  g.advance = static_cast<float>(metrics.horizontalAdvance(text));
  QRectF box = metrics.boundingRect(text);
  if (box.width() < 0.5 || box.height() < 0.5) return g;
  int left = static_cast<int>(std::floor(box.left())) - 1, top = static_cast<int>(std::floor(box.top())) - 1;
  int width = static_cast<int>(std::ceil(box.right())) + 1 - left,
      height = static_cast<int>(std::ceil(box.bottom())) + 1 - top;
  QImage image(width, height, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  QPainter painter(&image);
  painter.setFont(font);
  painter.setPen(Qt::white);
  painter.drawText(QPointF(-left, -top), text);
  painter.end();
  g.alpha = image.convertToFormat(QImage::Format_Alpha8);
  g.x = static_cast<float>(left);
  g.y = static_cast<float>(top);
  return g;
}

}  // namespace tenon::views
