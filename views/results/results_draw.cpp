// The picture of the results; state and tables are in results_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/results/results_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kBorder = 14, kCaption = 26;

}  // namespace

/// Rows are what samples are, columns what they were taken for; a cell is as full as its share of the row.
void ResultsModel::draw_confusion(Scene& scene, Box box) const {
  const auto& names = results_->classes;
  const size_t n = names.size();
  float label = 0;
  for (const std::string& name : names) label = std::max(label, text_width(name, Face::small));
  const float widest = label;
  label = std::min(label + 10, std::min(110.f, box.w * 0.3f));
  float side = std::min(box.w - label, box.h - 2 * kCaption);
  // Beside each other names are cut until they say nothing: a column then has the number of a row.
  const float number_w = text_width(std::to_string(n - 1), Face::mono_small), narrow = side / static_cast<float>(n);
  const bool numbered = narrow >= 11 && narrow < widest + 3 && narrow >= number_w + 2 && widest > number_w + 2;
  const float digits = numbered ? number_w + 6 : 0;
  label += digits;
  side = std::min(box.w - label, box.h - 2 * kCaption);
  if (side < 40) return;
  const float each = side / static_cast<float>(n);
  const Box area{box.x + label, box.y + 2 * kCaption, side, side};
  scene.text({box.x, box.y, box.w, kCaption}, tr("Confusion"), Ink::text, Face::body);
  scene.text({area.x, box.y, side, kCaption}, n > 1 && side > 190 ? tr("row: truth · column: guess") : std::string(),
             Ink::secondary, Face::small, Align::right);
  const bool spaced = each > 6;
  if (!spaced) scene.rect(area, Ink::line, 0.2f);  // cells this small are drawn where something was counted
  for (size_t t = 0; t < n; ++t) {
    int64_t all = 0;
    for (size_t g = 0; g < n; ++g) all += results_->count(t, g);
    const float y = area.y + each * static_cast<float>(t);
    if (each >= 11) {
      scene.text({box.x, y, label - digits - 6, each}, names[t], Ink::secondary, Face::small, Align::right);
      const Box head{area.x + each * static_cast<float>(t), box.y + kCaption, each, kCaption - 2};
      const std::string number = std::to_string(t);
      if (numbered)
        scene.text({area.x - digits - 3, y, digits, each}, number, Ink::secondary, Face::mono_small, Align::right);
      const Face face = numbered ? Face::mono_small : Face::small;
      if (const std::string& said = numbered ? number : names[t]; text_width(said, face) <= each)
        scene.text(head, said, Ink::secondary, face, Align::center);
      scene.target(head, {}, Cursor::arrow, names[t]);
    }
    for (size_t g = 0; g < n; ++g) {
      const int64_t count = results_->count(t, g);
      const Box b{area.x + each * static_cast<float>(g), y, each - (spaced ? 1.f : 0.f), each - (spaced ? 1.f : 0.f)};
      const double part = all ? static_cast<double>(count) / static_cast<double>(all) : 0;
      if (spaced) scene.rect(b, Ink::line, 0.2f);
      // A single error among thousands is still seen.
      if (count) scene.rect(b, t == g ? Ink::good : Ink::bad, static_cast<float>(0.12 + 0.68 * std::sqrt(part)));
      const std::string text = format_grouped(count);
      if (count && each >= 16 && text_width(text, Face::mono_small) + 4 <= each)
        scene.text(b, text, Ink::text, Face::mono_small, Align::center);
      if (each >= 3)
        scene.target(
            b, {cell, static_cast<int64_t>(t * n + g)}, Cursor::hand,
            fmt::format(
                "{}: {}", t == g ? tr("{} recognised", names[t]) : tr("{} taken for {}", names[t], names[g]),
                tr("{} of {} ({})", format_grouped(count), format_grouped(all), all ? format_percent(part) : "–")));
    }
  }
  if (chosen_)
    scene.outline({area.x + each * static_cast<float>(chosen_->second),
                   area.y + each * static_cast<float>(chosen_->first), each, each},
                  Ink::accent, 2);
}

void ResultsModel::draw_calibration(Scene& scene, Box box) const {
  const auto bins = results_->calibration();
  scene.text({box.x, box.y, box.w, kCaption}, tr("Calibration"), Ink::text, Face::body);
  scene.text({box.x, box.y, box.w, kCaption}, tr("error {:.1f} %", 100 * results_->calibration_error()), Ink::secondary,
             Face::small, Align::right);
  const Box area{box.x + 44, box.y + kCaption + 4, box.w - 64, box.h - kCaption - 44};
  if (area.w < 60 || area.h < 40) return;
  for (int k = 0; k <= 4; k += 2) {
    const float y = area.bottom() - area.h * static_cast<float>(k) / 4, x = area.x + area.w * static_cast<float>(k) / 4;
    scene.line({area.x, y}, {area.right(), y}, Ink::line, 1, k ? 0.8f : 1);
    scene.text({box.x, y - 8, 38, 16}, fmt::format("{} %", k * 25), Ink::secondary, Face::mono_small, Align::right);
    scene.text({x - 24, area.bottom() + 3, 48, 16}, fmt::format("{} %", k * 25), Ink::secondary, Face::mono_small,
               Align::center);
  }
  scene.text({area.x, area.bottom() + 20, area.w, 18},
             area.w > 250 ? tr("how sure it was → how often it was right") : tr("sure → right"), Ink::secondary,
             Face::small, Align::center);
  const float each = area.w / static_cast<float>(bins.size());
  for (size_t i = 0; i < bins.size(); ++i) {
    const auto& b = bins[i];
    if (!b.samples) continue;
    const float h = area.h * static_cast<float>(b.accuracy);
    const Box bar{area.x + each * static_cast<float>(i) + 1, area.bottom() - h, each - 2, h};
    scene.rect(bar, Ink::series0, 0.75f);
    scene.target({bar.x, area.y, bar.w, area.h}, {}, Cursor::arrow,
                 tr("{} samples that it was {:.0f} % to {:.0f} % sure of ({:.1f} % on average): {:.1f} % right",
                    format_grouped(b.samples), 100 * b.from, 100 * b.to, 100 * b.confidence, 100 * b.accuracy));
  }
  scene.line({area.x, area.bottom()}, {area.right(), area.y}, Ink::secondary, 1, 0.9f);
}

/// How many samples have which loss.
void ResultsModel::draw_losses(Scene& scene, Box box) const {
  constexpr int kBins = 24;
  scene.text({box.x, box.y, box.w, kCaption}, tr("Loss of the samples"), Ink::text, Face::body);
  const Box area{box.x + 44, box.y + kCaption + 4, box.w - 48, box.h - kCaption - 26};
  if (area.w < 60 || area.h < 30 || results_->predictions.empty()) return;
  double low = HUGE_VAL, top = 0;
  int64_t bad = 0;
  for (const auto& p : results_->predictions)
    if (std::isfinite(p.loss))
      low = std::min(low, p.loss), top = std::max(top, p.loss);
    else
      ++bad;
  if (!(top > 0)) top = 1;
  if (low < top / 2 || low == top) low = 0;  // from nothing on, unless all of them are far from it
  const auto edge = [&](int i) { return low + (top - low) * i / kBins; };
  std::vector<int64_t> counts(kBins, 0);
  for (const auto& p : results_->predictions)
    if (std::isfinite(p.loss))
      ++counts[static_cast<size_t>(std::clamp(static_cast<int>((p.loss - low) / (top - low) * kBins), 0, kBins - 1))];
  const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const float each = area.w / kBins;
  scene.line({area.x, area.bottom()}, {area.right(), area.bottom()}, Ink::line);
  for (int i = 0; i < kBins; ++i) {
    const int64_t c = counts[static_cast<size_t>(i)];
    if (!c) continue;
    // Heights grow with the logarithm: the few that went wrong are what one looks for.
    const float h = std::max(2.f, area.h * static_cast<float>(std::log1p(static_cast<double>(c)) / std::log1p(most)));
    const Box bar{area.x + each * static_cast<float>(i) + 1, area.bottom() - h, each - 2, h};
    scene.rect(bar, Ink::series1, 0.8f);
    scene.target({bar.x, area.y, bar.w, area.h}, {}, Cursor::arrow,
                 tr("{} samples with a loss from {} to {}", format_grouped(c), format_value(edge(i)),
                    format_value(edge(i + 1))));
  }
  scene.text({area.x, area.bottom() + 3, 60, 16}, low == 0 ? "0" : format_value(low), Ink::secondary, Face::mono_small);
  scene.text({area.right() - 90, area.bottom() + 3, 90, 16}, format_value(top), Ink::secondary, Face::mono_small,
             Align::right);
  scene.text({box.x - 8, area.y - 8, 46, 16}, format_count(most), Ink::secondary, Face::mono_small, Align::right);
  scene.text({box.x, box.y, box.w, kCaption}, bad ? tr("{} not finite", format_grouped(bad)) : tr("log scale"),
             bad ? Ink::bad_text : Ink::secondary, Face::small, Align::right);
}

void ResultsModel::draw_errors(Scene& scene, Box rest) const {
  if (!results_->classes.empty()) {
    const bool beside = rest.w > 520;
    const float w = beside ? std::min(rest.h + 60, rest.w * 0.6f) : rest.w;
    draw_confusion(scene, {rest.x, rest.y, w, beside ? rest.h : std::min(rest.h, rest.w)});
    if (!beside) return;
    rest.x += w + 2 * kBorder;
    rest.w -= w + 2 * kBorder;
    if (!std::isnan(results_->calibration_error())) {
      const float h = rest.h > 300 ? rest.h * 0.58f : rest.h;
      draw_calibration(scene, {rest.x, rest.y, rest.w, h});
      if (rest.h <= 300) return;
      rest.y += h + 6;
      rest.h -= h + 6;
    }
  }
  draw_losses(scene, rest);
}

void ResultsModel::draw(Scene& scene) {
  if (!results_) return;
  const Size size = scene.size();
  const Box all{kBorder, kBorder - 6, size.w - 2 * kBorder, size.h - 2 * kBorder + 6};
  if (page_ == Page::curves)
    draw_curves(scene, all);
  else if (page_ == Page::embedding)
    draw_embedding(scene, all);
  else
    draw_errors(scene, all);
}

}  // namespace tenon::views
