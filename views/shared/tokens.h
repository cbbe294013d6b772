#pragma once
#include <array>
#include <cstdint>

namespace tenon::views {

/// Every colour of the window by meaning. Scenes, the Qt palette and the style sheet name inks; only painting turns
/// them into numbers, so one scene serves every theme.
enum class Ink : uint8_t {
  none,
  base,
  panel,
  raised,
  line,
  grid,  // of a plot: quieter than what is plotted, in every theme
  text,
  secondary,
  accent,
  on_accent,
  bad,
  warning,
  good,  // fills, strokes and glyphs
  bad_text,
  warning_text,
  good_text,  // the same meaning where it is read as text
  dark_on_fill,
  light_on_fill,  // text over a coloured fill, see on_fill()
  phase_data,
  phase_forward,
  phase_backward,
  phase_optimizer,
  phase_communication,
  phase_other,
  memory_parameter,
  memory_gradient,
  memory_activation,
  memory_optimizer,
  memory_buffer,
  memory_workspace,
  memory_data,
  memory_other,
  series0,
  series1,
  series2,
  series3,
  series4,
  series5,
  series6,
  series7,
  baseline,
  negative,
  positive,  // ends of the diverging ramp of tensor values
};
inline constexpr int kInks = static_cast<int>(Ink::positive) + 1;

enum class ThemeName : uint8_t { dark, light, contrast };
inline constexpr int kThemes = 3;

struct Rgb {
  uint8_t r = 0, g = 0, b = 0;
  bool operator==(const Rgb&) const = default;
};
constexpr Rgb rgb(uint32_t hex) { return {uint8_t(hex >> 16), uint8_t(hex >> 8), uint8_t(hex)}; }

/// One ink in the three themes, with the name that the style sheet and scene dumps use.
struct Token {
  Ink ink;
  const char* name;
  Rgb color[kThemes];
};

namespace detail {
constexpr Token tok(Ink i, const char* name, uint32_t dark, uint32_t light, uint32_t contrast) {
  return {i, name, {rgb(dark), rgb(light), rgb(contrast)}};
}
constexpr Token tok(Ink i, const char* name, uint32_t all) { return tok(i, name, all, all, all); }
}  // namespace detail

// The one definition of the look's colours. A table in the language rather than a data file: the models read it without
// Qt and without parsing, the compiler proves it complete, and no file can be missing at start.
inline constexpr std::array<Token, kInks> kTokens = {
    detail::tok(Ink::none, "none", 0x000000),
    detail::tok(Ink::base, "base", 0x16181D, 0xF7F8FA, 0x000000),
    detail::tok(Ink::panel, "panel", 0x1C1F26, 0xFFFFFF, 0x000000),
    detail::tok(Ink::raised, "raised", 0x242832, 0xEEF0F3, 0x1A1A1A),
    detail::tok(Ink::line, "line", 0x2E333D, 0xDADEE4, 0xFFFFFF),
    detail::tok(Ink::grid, "grid", 0x2A2F38, 0xE6E9ED, 0x4A4A4A),
    detail::tok(Ink::text, "text", 0xE6E8EC, 0x1B1E24, 0xFFFFFF),
    detail::tok(Ink::secondary, "secondary", 0x9AA1AD, 0x5C6470, 0xFFFFFF),
    detail::tok(Ink::accent, "accent", 0x5B9DFF, 0x1A62D6, 0xFFFF00),
    detail::tok(Ink::on_accent, "on-accent", 0x0B0D11, 0xFFFFFF, 0x000000),
    detail::tok(Ink::bad, "bad", 0xE5484D, 0xE5484D, 0xFF7A7E),
    detail::tok(Ink::warning, "warning", 0xF5A524),
    detail::tok(Ink::good, "good", 0x30A46C, 0x30A46C, 0x3FC586),
    detail::tok(Ink::bad_text, "bad-text", 0xFF8589, 0xB4232A, 0xFF9EA1),
    detail::tok(Ink::warning_text, "warning-text", 0xF5A524, 0x8A4B00, 0xFFFF00),
    detail::tok(Ink::good_text, "good-text", 0x4CC38A, 0x18704A, 0x7DF0B5),
    detail::tok(Ink::dark_on_fill, "dark-on-fill", 0x0B0D11),
    detail::tok(Ink::light_on_fill, "light-on-fill", 0xFFFFFF),
    detail::tok(Ink::phase_data, "phase-data", 0xE69F00),
    detail::tok(Ink::phase_forward, "phase-forward", 0x56B4E9),
    detail::tok(Ink::phase_backward, "phase-backward", 0xCC79A7, 0xCC79A7, 0xDB8DBA),
    detail::tok(Ink::phase_optimizer, "phase-optimizer", 0x009E73, 0x009E73, 0x00B886),
    detail::tok(Ink::phase_communication, "phase-communication", 0xD55E00, 0xD55E00, 0xF57C1F),
    detail::tok(Ink::phase_other, "phase-other", 0x8A8F99, 0x8A8F99, 0xA3A8B2),
    detail::tok(Ink::memory_parameter, "memory-parameter", 0x0072B2, 0x0072B2, 0x005C96),
    detail::tok(Ink::memory_gradient, "memory-gradient", 0xCC79A7, 0xCC79A7, 0xDB8DBA),
    detail::tok(Ink::memory_activation, "memory-activation", 0x56B4E9),
    detail::tok(Ink::memory_optimizer, "memory-optimizer", 0x009E73, 0x009E73, 0x00B886),
    detail::tok(Ink::memory_buffer, "memory-buffer", 0x8A8F99, 0x8A8F99, 0xA3A8B2),
    detail::tok(Ink::memory_workspace, "memory-workspace", 0xF0E442),
    detail::tok(Ink::memory_data, "memory-data", 0xE69F00),
    detail::tok(Ink::memory_other, "memory-other", 0xB8BCC4, 0xA0A5AE, 0xFFFFFF),
    detail::tok(Ink::series0, "series-0", 0x5B9DFF, 0x1F6FEB, 0xFFFF00),
    detail::tok(Ink::series1, "series-1", 0xE69F00, 0xB87A00, 0x56B4E9),
    detail::tok(Ink::series2, "series-2", 0x3DC79A, 0x009E73, 0x00FF9C),
    detail::tok(Ink::series3, "series-3", 0xCC79A7, 0xB0508A, 0xFF9EDB),
    detail::tok(Ink::series4, "series-4", 0xD9D04A, 0x8F8500, 0xA6E22E),
    detail::tok(Ink::series5, "series-5", 0xB08CFF, 0x7C4DDB, 0xC9B0FF),
    detail::tok(Ink::series6, "series-6", 0xFF8F5C, 0xD55E00, 0xFFA06B),
    detail::tok(Ink::series7, "series-7", 0x6FD3E8, 0x0A87A3, 0x80F0FF),
    detail::tok(Ink::baseline, "baseline", 0x8A8F99, 0x7A808B, 0xC0C0C0),
    detail::tok(Ink::negative, "negative", 0xE69F00),
    detail::tok(Ink::positive, "positive", 0x4C9BE8, 0x4C9BE8, 0x6BB0F2),
};

constexpr const Token& token(Ink i) { return kTokens[static_cast<int>(i)]; }
constexpr Rgb color(Ink i, ThemeName t) { return token(i).color[static_cast<int>(t)]; }
constexpr const char* name(Ink i) { return token(i).name; }

/// WCAG 2 contrast ratio of two colours, 1 to 21.
double contrast(Rgb a, Rgb b);
/// The ink of text that is readable over a fill (the same in every theme, as fills that carry text are).
Ink on_fill(Ink fill);

/// Sizes in logical pixels.
namespace px {
inline constexpr float grid = 4, gap = 8, group = 16, control = 28, row = 24, dense_row = 20, radius = 4, hairline = 1;
inline constexpr float body = 13, small = 11, title = 15;
}  // namespace px

}  // namespace tenon::views
