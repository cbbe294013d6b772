#include "views/canvas/scene_painter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace tenon::views {

namespace {
ImU32 color32(Ink ink, float alpha, ThemeName theme) {
  Rgb c = color(ink, theme);
  return IM_COL32(c.r, c.g, c.b, static_cast<int>(std::lround(alpha * 255)));
}
/// The radius of a rectangle's corners. ImGui 1.86 makes it at most half a side less a pixel (of an outline, less half
/// a pixel more), and divides by zero where something above 0 but below a millionth is left.
float corner(const Scene::Prim& p) {
  const float left = std::min(p.box.w, p.box.h) * 0.5f - (p.fill != Ink::none ? 1.f : 1.5f);
  return std::min(left, p.radius) < 0.25f ? 0.f : p.radius;
}

/// A frame of hard edges inside of a rectangle: eight triangles, where ImGui's soft one with round corners has a
/// hundred.
void plain_outline(ImDrawList* list, ImVec2 a, ImVec2 b, ImU32 ink, float width) {
  const float w = std::max(1.f, std::round(width));
  if (b.x - a.x <= 2 * w || b.y - a.y <= 2 * w) return list->AddRectFilled(a, b, ink);
  list->AddRectFilled(a, {b.x, a.y + w}, ink);
  list->AddRectFilled({a.x, b.y - w}, b, ink);
  list->AddRectFilled({a.x, a.y + w}, {a.x + w, b.y - w}, ink);
  list->AddRectFilled({b.x - w, a.y + w}, {b.x, b.y - w}, ink);
}
}  // namespace

std::u32string letters(const std::string& s) {
  std::u32string out;
  for (size_t i = 0; i < s.size();) {
    unsigned char c = s[i];
    int n = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 0;
    if (n == 0 || i + n > s.size()) {
      out += U'\uFFFD';
      ++i;
      continue;
    }
    char32_t code = n == 1 ? c : c & (0xFF >> (n + 1));
    for (int k = 1; k < n; ++k) code = (code << 6) | (s[i + k] & 0x3F);
    out += code;
    i += n;
  }
  return out;
}

void ScenePainter::build_atlas(std::shared_ptr<Glyphs> glyphs) {
  ImFontAtlas* atlas = ImGui::GetIO().Fonts;
  atlas->Clear();
  atlas->AddFontDefault();  // ImGui wants one font; scenes draw none of it
  if (glyphs != glyphs_) packed_.clear();
  glyphs_ = std::move(glyphs);
  for (int f = 0; f < kFaces; ++f) {
    for (char32_t c : usual_letters()) packed_.try_emplace({f, c});
  }
  std::vector<std::pair<int, std::pair<int, char32_t>>> rects;
  for (auto& [key, p] : packed_) {
    const Glyphs::Glyph& g = glyphs_->glyph(static_cast<Face>(key.first), key.second);
    p.advance = g.advance;
    p.x = g.x;
    p.y = g.y;
    p.drawn = !g.alpha.isNull();
    if (p.drawn) rects.emplace_back(atlas->AddCustomRectRegular(g.alpha.width() + 1, g.alpha.height() + 1), key);
  }
  atlas->Build();
  unsigned char* pixels = nullptr;
  int width = 0, height = 0;
  atlas->GetTexDataAsAlpha8(&pixels, &width, &height);
  for (auto& [index, key] : rects) {
    const ImFontAtlasCustomRect* r = atlas->GetCustomRectByIndex(index);
    const QImage& image = glyphs_->glyph(static_cast<Face>(key.first), key.second).alpha;
    for (int y = 0; y < image.height(); ++y)
      std::memcpy(pixels + (r->Y + y) * width + r->X, image.constScanLine(y), image.width());
    Packed& p = packed_[key];
    p.w = static_cast<float>(image.width());
    p.h = static_cast<float>(image.height());
    p.u0 = static_cast<float>(r->X) / width;
    p.v0 = static_cast<float>(r->Y) / height;
    p.u1 = (r->X + p.w) / width;
    p.v1 = (r->Y + p.h) / height;
  }
  missing_ = false;
}

const ScenePainter::Packed* ScenePainter::packed(Face face, char32_t c) {
  auto at = packed_.find({static_cast<int>(face), c});
  if (at != packed_.end()) return &at->second;
  packed_.try_emplace({static_cast<int>(face), c});
  missing_ = true;
  return nullptr;
}

float ScenePainter::measure(const std::string& text, Face face) {
  float w = 0;
  for (char32_t c : letters(text))
    if (const Packed* p = packed(face, c)) w += p->advance;
  return w / static_cast<float>(glyphs_->dpr());
}

std::u32string ScenePainter::fit(const std::string& text, Face face, float width, float& used) {
  std::u32string s = letters(text);
  std::vector<float> advance(s.size());
  float total = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    const Packed* p = packed(face, s[i]);
    total += advance[i] = p ? p->advance : 0;
  }
  used = total;
  if (total <= width + 0.5f || s.size() < 2) return s;
  const Packed* dots = packed(face, U'…');
  float room = width - (dots ? dots->advance : 0);
  size_t head = 0, tail = s.size();
  float taken = 0;
  bool front = true;  // head and tail take turns, so that the middle goes
  while (head < tail) {
    float a = front ? advance[head] : advance[tail - 1];
    if (taken + a > room) break;
    taken += a;
    front ? ++head : --tail;
    front = !front;
  }
  if (room < 0) {
    used = 0;
    return {};
  }
  used = taken + (dots ? dots->advance : 0);
  return s.substr(0, head) + U"…" + s.substr(tail);
}

void ScenePainter::text(ImDrawList* list, const Scene::Prim& prim, const std::string& string, ThemeName theme) {
  float dpr = static_cast<float>(glyphs_->dpr());
  float used = 0;
  std::u32string s = fit(string, prim.face, prim.box.w * dpr, used);
  float x = prim.box.x * dpr;
  if (prim.align == Align::right) x = prim.box.right() * dpr - used;
  if (prim.align == Align::center) x += (prim.box.w * dpr - used) / 2;
  float ascent = glyphs_->ascent(prim.face), descent = glyphs_->descent(prim.face);
  float baseline = std::round(prim.box.y * dpr + (prim.box.h * dpr + ascent - descent) / 2);
  ImU32 ink = color32(prim.fill, prim.alpha, theme);
  float pen = std::round(x);
  for (char32_t c : s) {
    const Packed* p = packed(prim.face, c);
    if (!p) continue;
    if (p->drawn) {
      // Whole physical pixels: glyphs stay as sharp as Qt drew them.
      float gx = (std::round(pen) + p->x) / dpr, gy = (baseline + p->y) / dpr;
      list->PrimReserve(6, 4);
      list->PrimRectUV({gx, gy}, {gx + p->w / dpr, gy + p->h / dpr}, {p->u0, p->v0}, {p->u1, p->v1}, ink);
    }
    pen += p->advance;
  }
}

void ScenePainter::line(ImDrawList* list, const Scene& scene, const Scene::Prim& prim, ThemeName theme) {
  const Point* points = scene.points().data() + prim.first;
  if (prim.closed) {
    std::vector<ImVec2> v(prim.count);
    for (uint32_t i = 0; i < prim.count; ++i) v[i] = {points[i].x, points[i].y};
    list->AddConvexPolyFilled(v.data(), static_cast<int>(v.size()), color32(prim.fill, prim.alpha, theme));
    return;
  }
  ImU32 ink = color32(prim.stroke, prim.alpha, theme);
  if (prim.count == 2 && (points[0].x == points[1].x || points[0].y == points[1].y)) {  // hairlines on whole pixels
    float w = std::max(prim.width, 1.f), half = std::floor(w / 2);
    bool upright = points[0].x == points[1].x;
    float x0 = std::floor(std::min(points[0].x, points[1].x)), y0 = std::floor(std::min(points[0].y, points[1].y));
    float x1 = std::floor(std::max(points[0].x, points[1].x)), y1 = std::floor(std::max(points[0].y, points[1].y));
    if (upright)
      list->AddRectFilled({x0 - half, y0}, {x0 - half + w, y1}, ink);
    else
      list->AddRectFilled({x0, y0 - half}, {x1, y0 - half + w}, ink);
    return;
  }
  std::vector<ImVec2> v(prim.count);
  for (uint32_t i = 0; i < prim.count; ++i) v[i] = {points[i].x, points[i].y};
  // Soft edges make a thin line three times as wide: with so many of them the frame would take longer than they help.
  constexpr size_t kMostSoft = 6'000;
  const ImDrawListFlags flags = list->Flags;
  if (prim.width <= 1 && scene.points().size() > kMostSoft) list->Flags &= ~ImDrawListFlags_AntiAliasedLines;
  // ImGui makes a line as thin at a corner as the corner is sharp: the top of a spike would not be seen. A line that
  // turns back begins anew there.
  size_t from = 0;
  const auto upto = [&](size_t last) {
    list->AddPolyline(v.data() + from, static_cast<int>(last - from + 1), ink, 0, prim.width);
    from = last;
  };
  for (size_t i = 1; i + 1 < v.size(); ++i)
    if ((v[i].x - v[i - 1].x) * (v[i + 1].x - v[i].x) + (v[i].y - v[i - 1].y) * (v[i + 1].y - v[i].y) < 0) upto(i);
  upto(v.size() - 1);
  list->Flags = flags;
}

void ScenePainter::paint(ImDrawList* list, const Scene& scene, ThemeName theme) {
  // Of very many rectangles the small ones are drawn plainly: round corners and soft edges would take most of the
  // frame. The dots of a ground are none of them.
  constexpr size_t kMostRound = 600;
  constexpr float kSmall = 20;
  const bool many = scene.prims().size() > kMostRound,
             many_round = std::count_if(scene.prims().begin(), scene.prims().end(), [](const Scene::Prim&p) {
                            return p.kind == Scene::Kind::rect && p.radius > 0;
                          }) > static_cast<std::ptrdiff_t>(kMostRound);
  int clips = 0;
  for (const Scene::Prim& p : scene.prims()) {
    ImVec2 a{p.box.x, p.box.y}, b{p.box.right(), p.box.bottom()};
    const bool plain = p.radius == 0 ? many : many_round && std::min(p.box.w, p.box.h) < kSmall;
    switch (p.kind) {
      case Scene::Kind::rect:
        if (p.hatch) {
          list->PushClipRect(a, b, true);
          ImU32 ink = color32(p.stroke, p.alpha, theme);
          for (float x = std::floor(a.x / 6) * 6 - p.box.h; x < b.x; x += 6)
            list->AddLine({x, b.y}, {x + p.box.h, a.y}, ink, 1);
          list->PopClipRect();
        } else if (p.fill != Ink::none) {
          list->AddRectFilled(a, b, color32(p.fill, p.alpha, theme), plain ? 0.f : corner(p));
        } else if (plain) {
          plain_outline(list, a, b, color32(p.stroke, p.alpha, theme), p.width);
        } else {
          list->AddRect(a, b, color32(p.stroke, p.alpha, theme), corner(p), 0, p.width);
        }
        break;
      case Scene::Kind::line:
        line(list, scene, p, theme);
        break;
      case Scene::Kind::text:
        text(list, p, scene.string(p.first), theme);
        break;
      case Scene::Kind::clip:
        list->PushClipRect(a, b, true);
        ++clips;
        break;
      case Scene::Kind::unclip:
        if (clips > 0) {
          list->PopClipRect();
          --clips;
        }
        break;
    }
  }
  while (clips-- > 0) list->PopClipRect();
}

}  // namespace tenon::views
