#include "views/shared/scene_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"

namespace tenon::views {

std::string xml_escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML holds no others
  }
  return out;
}

namespace {
class SvgWriter {
 public:
  SvgWriter(const Scene& scene, ThemeName theme, const SvgFonts& fonts) : scene_(scene), theme_(theme), fonts_(fonts) {}
  /// Colours, and the fonts, are the page's.
  SvgWriter(const Scene& scene, std::string id) : scene_(scene), id_(std::move(id)), inline_(true) {}

  std::string write(const std::string& title) {
    const Size size = scene_.size();
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\"{4}>\n"
        "<title>{2}</title>\n<rect width=\"{0:g}\" height=\"{1:g}\" {3}/>\n",
        size.w, size.h, xml_escaped(title), paint("fill", Ink::panel, 1), inline_ ? " role=\"img\"" : "");
    for (const Scene::Prim& p : scene_.prims()) put(p);
    while (open_-- > 0) out_ += "</g>\n";
    if (inline_) put_tips();
    return out_ + "</svg>\n";
  }

 private:
  std::string paint(const char* what, Ink ink, float alpha) const {
    std::string s = fmt::format("style=\"{}:var(--{})\"", what, name(ink));
    if (!inline_) {
      const Rgb c = color(ink, theme_);
      s = fmt::format("{}=\"#{:02x}{:02x}{:02x}\"", what, c.r, c.g, c.b);
    }
    if (alpha < 1) s += fmt::format(" {}-opacity=\"{:.3g}\"", what, std::max(alpha, 0.f));
    return s;
  }

  void put_tips() {
    for (const Scene::Target& t : scene_.targets())
      if (t.tip)
        out_ += fmt::format(
            "<rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\" fill-opacity=\"0\"><title>{}</title></rect>\n",
            t.box.x, t.box.y, std::max(t.box.w, 0.f), std::max(t.box.h, 0.f), xml_escaped(scene_.string(t.tip)));
  }

  void put(const Scene::Prim& p) {
    switch (p.kind) {
      case Scene::Kind::rect:
        return p.hatch ? put_hatch(p) : put_rect(p);
      case Scene::Kind::line:
        return put_line(p);
      case Scene::Kind::text:
        return put_text(p);
      case Scene::Kind::clip:
        return open_clip(p.box);
      case Scene::Kind::unclip:
        if (open_ > 0) {
          out_ += "</g>\n";
          --open_;
        }
    }
  }

  /// Clips within each other: a group each, and what lies in all of them is seen.
  void open_clip(const Box& b) {
    out_ += fmt::format(
        "<clipPath id=\"{0}\"><rect x=\"{1:g}\" y=\"{2:g}\" width=\"{3:g}\" height=\"{4:g}\"/></clipPath>"
        "<g clip-path=\"url(#{0})\">\n",
        fmt::format("{}c{}", id_, clips_++), b.x, b.y, std::max(b.w, 0.f), std::max(b.h, 0.f));
    ++open_;
  }

  void put_rect(const Scene::Prim& p) {
    const bool filled = p.fill != Ink::none;
    const float in = filled ? 0 : 0.5f;  // the line of an outline lies within it
    const Box& b = p.box;
    if (!(b.w > 2 * in) || !(b.h > 2 * in)) return;
    out_ += fmt::format("<rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\"", b.x + in, b.y + in, b.w - 2 * in,
                        b.h - 2 * in);
    if (p.radius > 0) out_ += fmt::format(" rx=\"{:g}\"", p.radius);
    if (filled)
      out_ += " " + paint("fill", p.fill, p.alpha);
    else
      out_ += fmt::format(" fill=\"none\" {} stroke-width=\"{:g}\"", paint("stroke", p.stroke, p.alpha), p.width);
    out_ += "/>\n";
  }

  void put_hatch(const Scene::Prim& p) {
    open_clip(p.box);
    out_ += fmt::format("<path fill=\"none\" {} d=\"", paint("stroke", p.stroke, p.alpha));
    for (float x = std::floor(p.box.x / 6) * 6 - p.box.h; x < p.box.right(); x += 6)
      out_ += fmt::format("M{:g} {:g}L{:g} {:g}", x, p.box.bottom(), x + p.box.h, p.box.y);
    out_ += "\"/>\n</g>\n";
    --open_;
  }

  void put_line(const Scene::Prim& p) {
    const Point* at = scene_.points().data() + p.first;
    // A hairline lies on whole pixels.
    const bool straight = !p.closed && p.count == 2 && (at[0].x == at[1].x || at[0].y == at[1].y);
    out_ += p.closed ? "<polygon" : "<polyline";
    out_ += " points=\"";
    for (uint32_t i = 0; i < p.count; ++i)
      out_ += straight ? fmt::format("{:g},{:g} ", std::floor(at[i].x) + 0.5f, std::floor(at[i].y) + 0.5f)
                       : fmt::format("{:.2f},{:.2f} ", at[i].x, at[i].y);
    if (p.closed)
      out_ += fmt::format("\" {}/>\n", paint("fill", p.fill, p.alpha));
    else
      out_ += fmt::format("\" fill=\"none\" {} stroke-width=\"{:g}\" stroke-linejoin=\"round\"/>\n",
                          paint("stroke", p.stroke, p.alpha), p.width);
  }

  void put_text(const Scene::Prim& p) {
    std::string shown = scene_.string(p.first);
    for (size_t n = characters(shown); n > 1 && text_width(shown, p.face) > p.box.w + 2; --n)
      shown = elide_middle(scene_.string(p.first), n - 1);
    const bool mono = p.face == Face::mono || p.face == Face::mono_small;
    const bool small = p.face == Face::small || p.face == Face::mono_small;
    float size = p.face == Face::title ? px::title : small ? px::small : px::body;
    if (p.face == Face::mono) size = px::body - 1;
    size *= fonts_.scale;
    const float x = p.align == Align::left ? p.box.x : p.align == Align::right ? p.box.right() : p.box.x + p.box.w / 2;
    const std::string font =
        inline_ ? (mono ? " class=\"mono\"" : "")
                : fmt::format(" font-family=\"{}, {}\"", xml_escaped(mono ? fonts_.numbers : fonts_.words),
                              mono ? "monospace" : "sans-serif");
    out_ += fmt::format("<text x=\"{:g}\" y=\"{:.2f}\"{} font-size=\"{:g}\"", x, p.box.y + p.box.h / 2 + size * 0.36f,
                        font, size);
    if (p.face == Face::title) out_ += " font-weight=\"600\"";
    if (p.align != Align::left) out_ += p.align == Align::right ? " text-anchor=\"end\"" : " text-anchor=\"middle\"";
    out_ += fmt::format(" xml:space=\"preserve\" {}>{}</text>\n", paint("fill", p.fill, p.alpha), xml_escaped(shown));
  }

  const Scene& scene_;
  ThemeName theme_ = ThemeName::dark;
  SvgFonts fonts_;
  std::string id_;  ///< before the names of its clips
  bool inline_ = false;
  std::string out_;
  int clips_ = 0, open_ = 0;
};
}  // namespace

std::string to_svg(const Scene& scene, ThemeName theme, const std::string& title, const SvgFonts& fonts) {
  return SvgWriter(scene, theme, fonts).write(title);
}

std::string to_inline_svg(const Scene& scene, const std::string& title, const std::string& id) {
  return SvgWriter(scene, id).write(title);
}

}  // namespace tenon::views
