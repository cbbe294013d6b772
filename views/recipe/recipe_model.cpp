#include "views/recipe/recipe_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "engine/optim/schedule.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
struct Title {
  const char *title, *prefix;
};
/// In the order of the form; what begins with none of the prefixes belongs to the first.
constexpr std::array<Title, 11> kTitles{{{tr_later("Length and checks"), ""},
                                         {tr_later("Callbacks"), "callbacks"},
                                         {tr_later("Watches"), "watches"},
                                         {tr_later("Weights to begin with"), "init."},
                                         {tr_later("Data"), "data."},
                                         {tr_later("Loss"), "loss."},
                                         {tr_later("Teacher"), "distill."},
                                         {tr_later("Optimizer"), "optimizer."},
                                         {tr_later("Schedule of the learning rate"), "schedule."},
                                         {tr_later("Early stopping"), "stop."},
                                         {tr_later("Precision and averages"), "average."}}};
/// A run fills it in where it was told none: that is no other thing to be told.
bool told_otherwise(const Recipe& last, const Recipe& next, const std::string& key) {
  const bool filled_in = key == "init.sha256" || key == "distill.sha256";
  return last.at(key) != next.at(key) && !(filled_in && next.text(key).empty());
}
size_t section_of(const std::string& key) {
  if (key.starts_with("amp") || key == "tf32" || key == "recompute") return kTitles.size() - 1;
  for (size_t i = 1; i < kTitles.size(); ++i)
    if (key.starts_with(kTitles[i].prefix)) return i;
  return 0;
}

bool holds(const AttrDef& def, const std::string& search) {
  const std::string text = lower(def.name + " " + def.help);
  size_t from = 0;
  while (from < search.size()) {
    const size_t to = std::min(search.find(' ', from), search.size());
    if (text.find(lower(search.substr(from, to - from))) == std::string::npos) return false;
    from = to + 1;
  }
  return true;
}
}  // namespace

std::string RecipeModel::Key::label() const {
  if (def.name == "average.type") return "average";
  if (def.name == "callbacks") return "listed";  // the others of the list are what other keys say
  if (def.name == "watches") return "all of them";
  const size_t dot = def.name.find('.');
  // Averages stand in a section with others: they keep their word.
  std::string text = dot == std::string::npos || def.name.starts_with("average.") ? def.name : def.name.substr(dot + 1);
  std::replace(text.begin(), text.end(), '.', ' ');
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

void RecipeModel::set_recipe(const Recipe& recipe) {
  recipe_ = recipe;
  changed();
}

void RecipeModel::forget() {
  done_.clear();
  undone_.clear();
}

void RecipeModel::set_last(std::optional<Recipe> last, int64_t total_steps) {
  last_ = std::move(last);
  last_steps_ = total_steps;
  changed();
}

std::vector<RecipeModel::Section> RecipeModel::sections(const std::string& search) const {
  std::vector<Section> all;
  for (const Title& t : kTitles) all.push_back({tr(t.title), {}});
  for (AttrDef& def : recipe_.used_keys()) {
    if (!holds(def, search)) continue;
    Key k{std::move(def), {}, false, {}};
    k.value = recipe_.at(k.def.name);
    k.set = k.value != recipe_.fallback(k.def.name);
    if (last_ && told_otherwise(*last_, recipe_, k.def.name)) k.last = last_->at(k.def.name);
    std::vector<Key>& keys = all[section_of(k.def.name)].keys;
    keys.push_back(std::move(k));
  }
  std::erase_if(all, [](const Section& s) { return s.keys.empty(); });
  return all;
}

int RecipeModel::differing() const {
  int n = 0;
  if (last_)
    for (const AttrDef& def : recipe_.used_keys()) n += told_otherwise(*last_, recipe_, def.name);
  return n;
}

Recipe RecipeModel::with(const std::string& key, const AttrValue& value) const {
  Recipe r = recipe_;
  r.set_value(key, value);
  return r;
}

Recipe RecipeModel::without(const std::string& key) const {
  Recipe r = recipe_;
  r.reset(key);
  return r;
}

void RecipeModel::remember() {
  done_.push_back(recipe_);
  undone_.clear();
}

Recipe RecipeModel::undo() {
  if (done_.empty()) return recipe_;
  undone_.push_back(recipe_);
  Recipe r = std::move(done_.back());
  done_.pop_back();
  return r;
}

Recipe RecipeModel::redo() {
  if (undone_.empty()) return recipe_;
  done_.push_back(recipe_);
  Recipe r = std::move(undone_.back());
  undone_.pop_back();
  return r;
}

int64_t RecipeModel::steps(bool& known) const {
  const int64_t most = recipe_.integer("max_steps");
  // A run's length in steps is known once a data set was counted: from the last run, whose batches may have been
  // others.
  known = last_ && last_steps_ > 0 && last_->integer("max_steps") == 0;
  if (!known) return std::max<int64_t>(most > 0 ? most : recipe_.integer("epochs") * 100, 1);
  const double epochs = static_cast<double>(recipe_.integer("epochs")) / static_cast<double>(last_->integer("epochs"));
  const double batches =
      static_cast<double>(last_->integer("data.batch_size")) / static_cast<double>(recipe_.integer("data.batch_size"));
  const int64_t steps = std::llround(static_cast<double>(last_steps_) * epochs * batches);
  return std::max<int64_t>(most > 0 ? std::min(steps, most) : steps, 1);
}

std::string RecipeModel::summary() const {
  std::string text = tr("Learning rate over the run: schedule {}, {} steps of warm-up", recipe_.text("schedule.type"),
                        recipe_.integer("schedule.warmup_steps"));
  return at_ < 0 || read_out_.empty() ? text : text + "; " + read_out_;
}

bool RecipeModel::key(const KeyEvent& e) {
  constexpr double kStride = 0.02;
  if (e.key == "Left" || e.key == "Right")
    at_ = std::clamp((at_ < 0 ? 0 : at_) + (e.key == "Right" ? kStride : -kStride), 0.0, 1.0);
  else if (e.key == "Home" || e.key == "End")
    at_ = e.key == "Home" ? 0 : 1;
  else if (e.key == "Esc" && at_ >= 0)
    at_ = -1;
  else
    return false;
  return true;
}

bool RecipeModel::pointer(const PointerEvent& e) {
  const double before = at_;
  const bool over = area_.contains(e.x, e.y) && e.type != PointerEvent::Type::leave;
  at_ = over ? std::clamp(static_cast<double>((e.x - area_.x) / area_.w), 0.0, 1.0) : -1;
  return at_ != before;
}

void RecipeModel::draw(Scene& scene) {
  constexpr float kLeft = 66, kTop = 24, kRight = 14, kBottom = 22;
  const Size size = scene.size();
  const Box area{kLeft, kTop, std::max(size.w - kLeft - kRight, 20.f), std::max(size.h - kTop - kBottom, 10.f)};
  area_ = area;
  read_out_.clear();
  scene.text({12, 2, size.w - 24, 20}, tr("Learning rate"), Ink::text, Face::small);
  bool known = false;
  const int64_t total = steps(known);
  const bool rated = std::any_of(Recipe::keys().begin(), Recipe::keys().end(),
                                 [](const AttrDef& k) { return k.name == "optimizer.lr"; });
  std::vector<double> rates;
  try {
    const double base = rated ? recipe_.number("optimizer.lr") : 1;
    const int64_t warmup = recipe_.integer("schedule.warmup_steps");
    const optim::ScheduleSpan span{total, std::max<int64_t>(1, total / std::max<int64_t>(1, recipe_.integer("epochs"))),
                                   warmup};
    const auto schedule =
        optim::warmed_up(optim::make_schedule(recipe_.text("schedule.type"), recipe_.attrs("schedule"), span), warmup);
    const int points = static_cast<int>(std::clamp<int64_t>(total, 2, std::max(2, static_cast<int>(area.w))));
    for (int i = 0; i < points; ++i) rates.push_back(schedule->at((total - 1) * i / (points - 1), base));
  } catch (const Error& e) {
    return scene.text({kLeft, kTop, area.w, 20}, e.message(), Ink::bad, Face::small);
  }
  double top = *std::max_element(rates.begin(), rates.end());
  if (!(top > 0) || !std::isfinite(top)) top = 1;
  for (double share : {0.0, 0.5, 1.0}) {
    const float y = area.bottom() - static_cast<float>(share) * area.h;
    scene.line({area.x, y}, {area.right(), y}, share == 0 ? Ink::secondary : Ink::grid);
    scene.text({4, y - 9, kLeft - 12, 18}, fmt::format("{:.3g}", top * share), Ink::secondary, Face::mono_small,
               Align::right);
  }
  std::vector<Point> line;
  for (size_t i = 0; i < rates.size(); ++i)
    line.push_back({area.x + area.w * static_cast<float>(i) / static_cast<float>(rates.size() - 1),
                    area.bottom() - static_cast<float>(std::clamp(rates[i] / top, 0.0, 1.0)) * area.h});
  scene.polyline(line, Ink::series0, 2);
  if (at_ >= 0) {
    const size_t i = static_cast<size_t>(std::llround(at_ * static_cast<double>(rates.size() - 1)));
    const int64_t step = 1 + (total - 1) * static_cast<int64_t>(i) / static_cast<int64_t>(rates.size() - 1);
    const double share = static_cast<double>(i) / static_cast<double>(rates.size() - 1);
    read_out_ = (known ? tr("step {}", format_grouped(step)) : tr("{} of the run", format_percent(share))) +
                fmt::format(": {:.4g}", rates[i]);
    scene.line({line[i].x, area.y}, {line[i].x, area.bottom()}, Ink::text);
    scene.text({area.right() - 220, 2, 220, 20}, read_out_, Ink::text, Face::mono_small, Align::right);
  }
  scene.text({area.x, area.bottom() + 2, 120, 18}, known ? tr("step {}", 1) : tr("begin"), Ink::secondary,
             Face::mono_small);
  scene.text({area.right() - 160, area.bottom() + 2, 160, 18},
             known ? tr("step {}", format_grouped(total)) : tr("end of the run"), Ink::secondary, Face::mono_small,
             Align::right);
}

}  // namespace tenon::views
