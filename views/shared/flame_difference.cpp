// A flame graph of two: how boxes are filled, and what they say.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/flame_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kLegend = 22;
constexpr double kUnchanged = 0.005, kSome = 0.1, kMuch = 0.5;  // of the larger of the two

/// From -1 (only in A) to 1 (only in B).
double relative_change(const tracing::FlamePair::Side& a, const tracing::FlamePair::Side& b) {
  const int64_t larger = std::max(a.total, b.total);
  return larger > 0 ? static_cast<double>(b.total - a.total) / static_cast<double>(larger) : 0;
}
}  // namespace

Selection FlameModel::in_side(uint32_t node, const tracing::FlamePair::Side& side, int document) const {
  if (!node) return {};
  if (flame_->unit() == tracing::Unit::bytes)
    return side.total > 0 ? Selection::place(document, flame_->text(node), "flame") : Selection();
  return side.longest == traces::kNone ? Selection() : Selection::event(document, side.longest, "flame");
}

Selection FlameModel::in_a(uint32_t node) const {
  return pair_ && node < pair_->a.size() ? in_side(node, pair_->a[node], first_) : Selection();
}
Selection FlameModel::in_b(uint32_t node) const {
  return pair_ && node < pair_->b.size() ? in_side(node, pair_->b[node], document_) : Selection();
}

FlameModel::Fill FlameModel::fill_of(uint32_t node) const {
  if (!pair_) {
    const Ink ink = node ? ink_of_node(node) : Ink::raised;
    return {ink, node ? on_fill(ink) : Ink::text};
  }
  const double change = relative_change(pair_->a[node], pair_->b[node]), size = std::abs(change);
  if (size < kUnchanged) return {Ink::raised, Ink::text};
  // More is the warm end, as in every difference of flame graphs.
  const Ink ink = change > 0 ? Ink::negative : Ink::positive;
  const bool much = size >= kMuch;
  return {ink, much ? on_fill(ink) : Ink::text, much ? 0.95f : size >= kSome ? 0.42f : 0.2f, size >= 1};
}

std::string FlameModel::change_text(uint32_t node) const {
  const int64_t change = pair_->change(node);
  if (change == 0) return tr("unchanged");
  return (change > 0 ? "+" : "−") + amount(std::abs(change));
}

std::string FlameModel::difference_label(uint32_t node, float width) const {
  const std::string name = node                                     ? flame_->text(node)
                           : flame_->unit() == tracing::Unit::bytes ? tr("everything")
                                                                    : tr("all threads and streams");
  const std::string whole = name + "  " + change_text(node);
  return pair_->change(node) != 0 && text_width(whole, Face::small) <= width ? whole : name;
}

std::string FlameModel::difference_tip(uint32_t node) const {
  const tracing::FlamePair::Side &a = pair_->a[node], &b = pair_->b[node];
  std::string text = node ? flame_->text(node) : tr("everything");
  text += "\n" + tr("{} in A, {} in B: {}", amount(a.total), amount(b.total), change_text(node));
  if (a.total > 0) {
    const double share = std::abs(static_cast<double>(b.total - a.total)) / static_cast<double>(a.total);
    text += ", " + tr("{} of what A has", format_percent(share));
  }
  text += "\n" + tr("in itself {} and {}", amount(a.self), amount(b.self));
  const std::string of_a = format_grouped(a.count), of_b = format_grouped(b.count);
  if (a.count + b.count > 0)
    text += "\n" + (flame_->unit() == tracing::Unit::bytes ? tr("{} and {} blocks", of_a, of_b)
                                                           : tr("{} and {} events", of_a, of_b));
  return text;
}

float FlameModel::top() const { return pair_ ? kLegend : 0; }

/// Over the boxes, so that they scroll below it.
void FlameModel::draw_legend(Scene& scene) {
  scene.rect({0, 0, scene.size().w, kLegend + 2}, Ink::panel);
  float x = 9;
  struct Sign {
    std::string text;
    Ink ink;
    bool hatched;
  };
  for (const Sign& sign : {Sign{tr("more in B"), Ink::negative, false}, Sign{tr("less in B"), Ink::positive, false},
                           Sign{tr("unchanged"), Ink::raised, false}, Sign{tr("in one alone"), Ink::raised, true}}) {
    const Box box{x, 7, 11, 11};
    scene.rect(box, sign.ink, 0.95f, 2);
    if (sign.ink == Ink::raised) scene.outline(box, Ink::line, 1, 2);
    if (sign.hatched) scene.hatch(box, Ink::text, 0.6f);
    const float width = text_width(sign.text, Face::small);
    if (x + 17 + width > scene.size().w) return;
    scene.text({x + 17, 3, width + 4, 19}, sign.text, Ink::secondary, Face::small);
    x += 17 + width + 18;
  }
  const std::string rest = tr("a box is as wide as the larger of the two");
  if (x + text_width(rest, Face::small) + 10 < scene.size().w)
    scene.text({x, 3, text_width(rest, Face::small) + 6, 19}, rest, Ink::secondary, Face::small);
}

}  // namespace tenon::views
