// The builder with its layers coloured by what they cost.
#include "views/builder/builder_heat.h"

#include <algorithm>
#include <cmath>

#include "views/builder/builder_ink.h"
#include "views/builder/builder_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

const char* heat_title(Heat h) {
  switch (h) {
    case Heat::parameters:
      return tr_later("Parameters");
    case Heat::flops:
      return tr_later("FLOP");
    case Heat::activations:
      return tr_later("Activations");
    case Heat::memory:
      return tr_later("Memory of a step");
    case Heat::none:
      break;
  }
  return tr_later("No heat");
}

std::string heat_text(Heat h, double value) {
  if (h == Heat::flops) return format_flops(value);
  if (h == Heat::parameters) return format_count(value);
  return format_bytes(value);
}

void HeatMap::set(Heat h, std::vector<double> values) {
  what = h;
  layers = std::move(values);
  total = most = 0;
  for (const double v : layers) total += v, most = std::max(most, v);
}

double HeatMap::of(const std::vector<int>& some) const {
  double sum = 0;
  for (const int i : some)
    if (static_cast<size_t>(i) < layers.size()) sum += layers[static_cast<size_t>(i)];
  return sum;
}

float HeatMap::strength(double value) const {
  return most > 0 ? static_cast<float>(std::sqrt(std::clamp(value / most, 0.0, 1.0))) : 0;
}

std::string HeatMap::text(double value) const {
  return heat_text(what, value) + " · " + format_percent(total > 0 ? value / total : 0);
}

void BuilderModel::set_heat(Heat h) {
  if (h == heat_.what) return;
  heat_.what = h;
  warm_up();
  changed();
}

void BuilderModel::set_layer_memory(std::map<std::string, int64_t> bytes) {
  memory_ = std::move(bytes);
  warm_up();
  changed();
}

void BuilderModel::warm_up() {
  std::vector<double> values(spec_.layers.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& name = spec_.layers[i].name;
    const LayerReport* r = report(name);
    if (heat_.what == Heat::memory) {
      const auto known = memory_.find(name);
      values[i] = known == memory_.end() ? 0 : static_cast<double>(known->second);
    } else if (r) {
      values[i] = heat_.what == Heat::parameters ? static_cast<double>(r->parameters)
                  : heat_.what == Heat::flops    ? r->flops
                                                 : static_cast<double>(r->output_bytes);
    }
  }
  heat_.set(heat_.what, std::move(values));
}

/// What is seen is compared with what is seen: a folded group is as one layer.
void BuilderModel::find_hottest() {
  if (!heat_.shown()) return;
  heat_.most = 0;
  for (const GroupLayout::Cell& c : layout_.picture().cells) heat_.most = std::max(heat_.most, heat_of(c));
}

double BuilderModel::heat_of(const GroupLayout::Cell& c) const {
  const int index = layout_.layer_of(c);
  if (index < 0) return heat_.of(layout_.layers_below(c.node));
  return static_cast<size_t>(index) < heat_.layers.size() ? heat_.layers[static_cast<size_t>(index)] : 0;
}

void BuilderModel::draw_heat(Scene& scene, const GroupLayout::Cell& c, Box b) const {
  if (!heat_.shown()) return;
  const float strength = heat_.strength(heat_of(c));
  if (strength > 0.05f) scene.rect(b, Ink::warning, 0.5f * strength, 4);
}

/// From nothing to the most that is seen of one.
void BuilderModel::draw_heat_legend(Scene& scene) const {
  if (heat_.what == Heat::none) return;
  const std::string title = tr(heat_title(heat_.what));
  const std::string most = heat_.shown()                ? heat_.text(heat_.most)
                           : heat_.what == Heat::memory ? tr("not known")
                                                        : tr("none");
  constexpr float kRamp = 60, kHeight = 22;
  const float title_w = text_width(title, Face::small) + 4, most_w = text_width(most, Face::small) + 4;
  const float w = title_w + (heat_.shown() ? kRamp + 16 : 4) + most_w + 18;
  if (w + 24 > size_.w) return;
  const Box box{size_.w - w - 12, 10, w, kHeight};
  scene.rect(box, Ink::panel, 0.92f, 4);
  scene.outline(box, Ink::line, 1, 4);
  float x = box.x + 8;
  scene.text({x, box.y, title_w, kHeight}, title, Ink::secondary, Face::small);
  x += title_w + 4;
  if (heat_.shown()) {
    constexpr int kSteps = 6;
    for (int i = 0; i < kSteps; ++i) {
      const Box part{x + kRamp / kSteps * static_cast<float>(i), box.y + 6, kRamp / kSteps, kHeight - 12};
      scene.rect(part, Ink::raised);
      scene.rect(part, Ink::warning, 0.5f * static_cast<float>(i + 1) / kSteps);
    }
    x += kRamp + 8;
  }
  scene.text({x, box.y, most_w, kHeight}, most, Ink::text, Face::small);
}

}  // namespace tenon::views
