#include "views/results/sample_sight.h"

#include <algorithm>
#include <cmath>

#include "engine/data/dataset.h"
#include "views/shared/tokens.h"

namespace tenon::views {

using data::Image;
using projects::Prediction;
using projects::Results;

namespace {
constexpr size_t kBefore = 48, kAfter = 32;  // bytes of text

bool is_picture(const Meta& m) {
  return m.dtype == DType::f32 && m.shape.n == 3 && (m.shape[0] == 1 || m.shape[0] == 3) && m.shape[1] >= 4 &&
         m.shape[2] >= 4;
}

/// The sizes at which a picture's longer side is no longer than kSide.
std::pair<int64_t, int64_t> fitted(int64_t h, int64_t w) {
  const int64_t most = std::max(h, w);
  if (most <= SampleSight::kSide) return {h, w};
  return {std::max<int64_t>(1, h * SampleSight::kSide / most), std::max<int64_t>(1, w * SampleSight::kSide / most)};
}

/// Values that are shown from black to white: 0 to 1 where all of them lie there, else from the least to the largest,
/// for data sets shift and scale their values as they please.
struct Levels {
  float low = 0, high = 1;
  explicit Levels(const float* values, int64_t n) {
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; ++i)
      if (std::isfinite(values[i])) least = std::min(least, values[i]), most = std::max(most, values[i]);
    if (least >= 0 && most <= 1) return;
    if (most > least) low = least, high = most;
  }
  uint8_t byte(float v) const {
    return std::isfinite(v) ? static_cast<uint8_t>(std::lround(255 * std::clamp((v - low) / (high - low), 0.f, 1.f)))
                            : 0;
  }
};

Image picture(const float* planes, const Shape& s, const Levels& levels) {
  const auto [h, w] = fitted(s[1], s[2]);
  Image out{h, w, s[0], std::vector<uint8_t>(static_cast<size_t>(h * w * s[0]))};
  std::vector<float> plane(static_cast<size_t>(h * w));
  for (int64_t c = 0; c < s[0]; ++c) {
    data::resize_plane(planes + c * s[1] * s[2], s[1], s[2], plane.data(), h, w);
    for (int64_t i = 0; i < h * w; ++i)
      out.pixels[static_cast<size_t>(i * s[0] + c)] = levels.byte(plane[static_cast<size_t>(i)]);
  }
  return out;
}

/// The first class, most often the ground, is dark; the others have the colours of series, further ones a shade of
/// them.
Rgb class_color(int64_t c) {
  if (c < 0) return color(Ink::bad, ThemeName::light);
  if (c == 0) return color(Ink::line, ThemeName::dark);
  Rgb out = color(static_cast<Ink>(static_cast<int>(Ink::series0) + static_cast<int>((c - 1) % 8)), ThemeName::dark);
  for (int64_t i = (c - 1) / 8 % 3; i > 0; --i)
    out = {static_cast<uint8_t>(out.r * 2 / 3), static_cast<uint8_t>(out.g * 2 / 3),
           static_cast<uint8_t>(out.b * 2 / 3)};
  return out;
}

Image mask(const int64_t* classes, int64_t height, int64_t width) {
  const auto [h, w] = fitted(height, width);
  Image out{h, w, 3, {}};
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x) {
      const Rgb c = class_color(classes[y * height / h * width + x * width / w]);
      out.pixels.insert(out.pixels.end(), {c.r, c.g, c.b});
    }
  return out;
}

/// A text that can be read on one line: breaks and tabs as signs, bytes that are no UTF-8 as U+FFFD.
std::string readable(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x80                ? 1
                          : c >= 0xc2 && c < 0xe0 ? 2
                          : c >= 0xe0 && c < 0xf0 ? 3
                          : c >= 0xf0 && c < 0xf5 ? 4
                                                  : 0;
    size_t good = length ? 1 : 0;
    while (good && good < length && i + good < text.size() &&
           (static_cast<unsigned char>(text[i + good]) & 0xc0) == 0x80)
      ++good;
    if (c == '\n')
      out += "⏎";
    else if (c == '\t')
      out += "⇥";
    else if (c < 0x20 || c == 0x7f)
      out += "·";
    else if (!length || good < length)
      out += "\xef\xbf\xbd";
    else
      out.append(text, i, length);
    i += length && good == length ? length : 1;
  }
  return out;
}

void look_at_text(SampleSight& sight, const Results& r, const Prediction& p, const data::Batch& b) {
  const int64_t n = b.x.numel();
  if (p.worst < 0 || p.worst >= n || b.y.numel() != n) return;
  const auto *seen = b.x.data<int64_t>(), *next = b.y.data<int64_t>();
  std::string before, after;
  for (int64_t t = p.worst; t >= 0 && before.size() < kBefore; --t) before = r.data->token_text(seen[t]) + before;
  for (int64_t t = p.worst + 1; t < n && after.size() < kAfter; ++t) after += r.data->token_text(next[t]);
  sight.before = readable(before);
  sight.after = readable(after);
  auto alone = [&](int64_t token) {
    const std::string text = readable(r.data->token_text(token));
    return text.find_first_not_of(' ') == std::string::npos ? std::string(text.size(), '_') : text;
  };
  sight.at = alone(next[p.worst]);
  sight.guess = p.worst_guess < 0 ? "–" : alone(p.worst_guess);
}
}  // namespace

SampleSight::Kind SampleSight::kind(const data::Dataset& set) {
  if (is_picture(set.input())) return Kind::picture;
  return set.task() == "language" ? Kind::text : Kind::none;
}

SampleSight sight_of(const Results& results, const Prediction& p) {
  SampleSight sight;
  if (!results.data) return sight;
  const SampleSight::Kind kind = SampleSight::kind(*results.data);
  if (kind == SampleSight::Kind::none) return sight;
  const data::Batch b = data::fetch(*results.data, {p.row});
  if (kind == SampleSight::Kind::text) return look_at_text(sight, results, p, b), sight;
  const Shape shape = results.data->input().shape, target = results.data->target().shape;
  const Levels levels(b.x.data<float>(), b.x.numel());
  sight.input = picture(b.x.data<float>(), shape, levels);
  const auto answer = results.answers.find(p.row);
  if (results.task == "segmentation" && target.n == 2) {
    sight.target = mask(b.y.data<int64_t>(), target[0], target[1]);
    if (answer != results.answers.end() && static_cast<int64_t>(answer->second.classes.size()) == target.product())
      sight.answer = mask(answer->second.classes.data(), target[0], target[1]);
  }
  if (results.task == "reconstruction" && answer != results.answers.end() &&
      static_cast<int64_t>(answer->second.values.size()) == shape.product())
    sight.answer = picture(answer->second.values.data(), shape, levels);
  return sight;
}

std::string class_text(const Results& r, int64_t index) {
  if (index < 0) return "–";
  return index < static_cast<int64_t>(r.classes.size()) ? r.classes[static_cast<size_t>(index)] : std::to_string(index);
}

std::string outcome_text(const Results& r, const Prediction& p) {
  if (p.truth >= 0)
    return p.truth == p.guess ? class_text(r, p.truth) : class_text(r, p.truth) + " → " + class_text(r, p.guess);
  return p.worst >= 0 && r.task == "language" ? class_text(r, p.worst_truth) + " → " + class_text(r, p.worst_guess)
                                              : std::string();
}

}  // namespace tenon::views
