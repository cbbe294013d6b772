#include "views/results/sample_sight.h"

#include <algorithm>
#include <cmath>

#include "engine/data/dataset.h"
#include "views/shared/sample_picture.h"

namespace tenon::views {

using data::Image;
using projects::Prediction;
using projects::Results;

namespace {
constexpr size_t kBefore = 48, kAfter = 32;  // bytes of text

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
  if (is_picture(set.input()) || is_sound(set.input())) return Kind::picture;
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
  const bool up = results.data->bottom_first();
  sight.input = sample_picture(b.x.data<float>(), shape, up, levels);
  const auto answer = results.answers.find(p.row);
  if (results.task == "segmentation" && target.n == 2) {
    sight.target = mask_picture(b.y.data<int64_t>(), target[0], target[1], up);
    if (answer != results.answers.end() && static_cast<int64_t>(answer->second.classes.size()) == target.product())
      sight.answer = mask_picture(answer->second.classes.data(), target[0], target[1], up);
  }
  if (results.task == "reconstruction" && answer != results.answers.end() &&
      static_cast<int64_t>(answer->second.values.size()) == shape.product())
    sight.answer = sample_picture(answer->second.values.data(), shape, up, levels);
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
