#include "views/frame/theme.h"

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QPainter>
#include <QPalette>
#include <QPixmapCache>
#include <QRegularExpression>
#include <QStyle>
#include <QSvgRenderer>
#include <QTemporaryDir>
#include <QToolTip>
#include <QVariant>
#include <QWidget>
#include <map>
#include <tuple>

#include "views/canvas/glyphs.h"

namespace tenon::views {

QColor qcolor(Ink ink, ThemeName theme) {
  Rgb c = color(ink, theme);
  return QColor(c.r, c.g, c.b);
}

QString theme_id(ThemeName t) { return t == ThemeName::dark ? "dark" : t == ThemeName::light ? "light" : "contrast"; }
bool parse_theme(const QString& id, ThemeName& out) {
  for (ThemeName t : {ThemeName::dark, ThemeName::light, ThemeName::contrast})
    if (theme_id(t) == id) {
      out = t;
      return true;
    }
  return false;
}

ThemeName system_theme() {
  QColor window = QApplication::palette().color(QPalette::Window);
  return window.lightness() > 127 ? ThemeName::light : ThemeName::dark;
}

static QPixmap tinted(const QString& name, const QColor& color, int size, double dpr) {
  QSvgRenderer svg(QString(":/icons/%1.svg").arg(name));
  QPixmap pixmap(QSize(size, size) * dpr);
  pixmap.setDevicePixelRatio(dpr);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  svg.render(&painter, QRectF(0, 0, size, size));
  painter.setCompositionMode(QPainter::CompositionMode_SourceIn);
  painter.fillRect(QRectF(0, 0, size, size), color);
  return pixmap;
}

QPixmap mark(Ink ink, ThemeName theme, int size) {
  double dpr = qApp->devicePixelRatio();
  QPixmap pixmap(QSize(size, size) * dpr);
  pixmap.setDevicePixelRatio(dpr);
  pixmap.fill(Qt::transparent);
  QPainter p(&pixmap);
  p.setRenderHint(QPainter::Antialiasing);
  p.setPen(Qt::NoPen);
  p.setBrush(qcolor(ink, theme));
  p.drawRoundedRect(QRectF(0, 0, size, size), 2, 2);
  return pixmap;
}

QIcon icon(const QString& name, ThemeName theme, Ink ink) {
  // Drawn once: trees and lists ask for the same few of them at every row. Never destroyed: pixmaps may not outlive the
  // application.
  static auto& drawn = *new std::map<std::tuple<QString, ThemeName, Ink>, QIcon>;
  QIcon& out = drawn[{name, theme, ink}];
  if (!out.isNull()) return out;
  QColor on = qcolor(ink, theme), off = qcolor(Ink::secondary, theme);
  off.setAlphaF(0.45f);
  for (double dpr : {1.0, 2.0}) {
    out.addPixmap(tinted(name, on, 16, dpr), QIcon::Normal);
    out.addPixmap(tinted(name, off, 16, dpr), QIcon::Disabled);
  }
  return out;
}

/// Style sheets name pictures by file: the tinted ones of a theme are drawn into a folder that goes with the process.
static QString icon_file(const QString& name, ThemeName theme) {
  static QTemporaryDir dir;
  QString path = dir.filePath(theme_id(theme) + "-" + name + ".png");
  if (!QFile::exists(path)) {
    bool on = name.endsWith("-on");
    tinted(on ? name.chopped(3) : name, qcolor(on ? Ink::on_accent : Ink::secondary, theme), 16, 1).save(path);
  }
  return path;
}

/// The style sheet in the colours of a theme and the size of text that is set.
static QString style_sheet(ThemeName theme) {
  QFile file(":/style.qss");
  if (!file.open(QIODevice::ReadOnly)) return {};
  QString sheet = QString::fromUtf8(file.readAll());
  QRegularExpression picture("@icon\\(([a-z-]+)\\)");
  for (auto m = picture.match(sheet); m.hasMatch(); m = picture.match(sheet))
    sheet.replace(m.captured(0), icon_file(m.captured(1), theme));
  // Longer names first: "@bad-text" before "@bad".
  std::vector<Token> tokens(kTokens.begin(), kTokens.end());
  std::sort(tokens.begin(), tokens.end(),
            [](const Token& a, const Token& b) { return std::string(a.name).size() > std::string(b.name).size(); });
  for (const Token& t : tokens) sheet.replace(QString("@") + t.name, qcolor(t.ink, theme).name());
  QRegularExpression size("font-size: (\\d+)px");
  for (int at = 0; at >= 0;) {
    const auto m = size.match(sheet, at);
    if (!m.hasMatch()) break;
    const QString scaled = QString("font-size: %1px").arg(qRound(m.captured(1).toInt() * text_size() / px::body));
    sheet.replace(m.capturedStart(), m.capturedLength(), scaled);
    at = static_cast<int>(m.capturedStart() + scaled.size());
  }
  return sheet;
}

void apply_theme(QApplication& app, ThemeName theme) {
  auto c = [&](Ink i) { return qcolor(i, theme); };
  // A sheet polishes every widget anew, also one that is set already: that takes as long as making the window.
  const QString sheet = style_sheet(theme);
  if (sheet == app.styleSheet()) return;
  QPalette p;
  p.setColor(QPalette::Window, c(Ink::base));
  p.setColor(QPalette::WindowText, c(Ink::text));
  p.setColor(QPalette::Base, c(Ink::panel));
  p.setColor(QPalette::AlternateBase, c(Ink::raised));
  p.setColor(QPalette::Text, c(Ink::text));
  p.setColor(QPalette::PlaceholderText, c(Ink::secondary));
  p.setColor(QPalette::Button, c(Ink::raised));
  p.setColor(QPalette::ButtonText, c(Ink::text));
  p.setColor(QPalette::Highlight, c(Ink::accent));
  p.setColor(QPalette::HighlightedText, c(Ink::on_accent));
  p.setColor(QPalette::ToolTipBase, c(Ink::raised));
  p.setColor(QPalette::ToolTipText, c(Ink::text));
  p.setColor(QPalette::Link, c(Ink::accent));
  p.setColor(QPalette::Mid, c(Ink::line));
  p.setColor(QPalette::Dark, c(Ink::line));
  p.setColor(QPalette::Light, c(Ink::raised));
  for (auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, c(Ink::secondary));
  // Once: another style object under living widgets leaves the style sheet's connections to the old one behind.
  if (!app.property("tenon.style").toBool()) app.setStyle("Fusion");
  app.setProperty("tenon.style", true);
  app.setPalette(p);
  QToolTip::setPalette(p);
  app.setFont(face_font(Face::body));
  app.setStyleSheet(sheet);
}

void set_style(QWidget* w, const char* property, const QString& value) {
  w->setProperty(property, value);
  w->style()->unpolish(w);
  w->style()->polish(w);
}

}  // namespace tenon::views
