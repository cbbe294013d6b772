#include "views/nan/nan_model.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using tracing::NanOrigin;

namespace {
constexpr float kPad = 20;

/// Words of a sentence in lines of at most `width`.
std::vector<std::string> wrapped(const std::string& text, float width, Face face) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string w; words >> w;) {
    std::string longer = lines.back().empty() ? w : lines.back() + " " + w;
    if (!lines.back().empty() && text_width(longer, face) > width)
      lines.push_back(w);
    else
      lines.back() = longer;
  }
  return lines;
}
}  // namespace

void NanModel::reset() {
  state_ = State::unknown;
  links_ = {};
  changed();
}
void NanModel::set_searching() {
  state_ = State::searching;
  changed();
}
void NanModel::set_clean(const std::string& run) {
  state_ = State::clean;
  run_ = run;
  links_ = {};
  changed();
}
void NanModel::set_found(const Links& links) {
  links_ = links;
  state_ = origin() ? State::found : State::clean;
  run_ = links_ ? links_.record()->run : "";
  changed();
}
void NanModel::set_step(const Links& links) {
  if (!links)
    reset();
  else if (links.record()->nan)
    set_found(links);
}
void NanModel::set_selection(const Selection& s) {
  selected_ = links_ && s.kind != Selection::Kind::module && s.kind != Selection::Kind::range ? links_.op_of(s) : 0;
  changed();
}

int NanModel::tensor_named(const std::string& name) const {
  const auto& tensors = links_.record()->tensors;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name) return static_cast<int>(i);
  return -1;
}

bool NanModel::pointer(const PointerEvent& e) {
  if (state_ != State::found || e.type != PointerEvent::Type::press || e.button != Button::left) return false;
  Hit hit = last_.hit_at(e.x, e.y);
  if (hit.kind == op && hit.id > 0)
    select(Selection::op(hit.id, "nan"));
  else if (hit.kind == operand)
    select_operand(static_cast<int>(hit.id));
  else
    return false;
  return true;
}

void NanModel::select_operand(int index) {
  operand_ = index;
  int t = tensor_named(origin()->operands[index].name);
  if (t >= 0)
    select(Selection::tensor(t, "nan"));
  else if (origin()->seq)
    select(Selection::op(origin()->seq, "nan"));
}

bool NanModel::wheel(const WheelEvent& e) {
  if (state_ != State::found || e.dy == 0 || content_ <= height_) return false;
  scroll_ -= e.dy * 60;
  return true;
}

bool NanModel::key(const KeyEvent& e) {
  if (state_ != State::found || !origin()) return false;
  const auto bad = bad_ops(*links_.record());
  const int operands = static_cast<int>(origin()->operands.size());
  if (e.key == "PgDown" || e.key == "PgUp") {
    scroll_ += (e.key == "PgDown" ? 0.8f : -0.8f) * height_;
  } else if ((e.key == "Left" || e.key == "Right") && !bad.empty()) {
    const auto at = std::lower_bound(bad.begin(), bad.end(), selected_);
    auto to = at;
    if (e.key == "Right")
      to = at != bad.end() && *at == selected_ ? at + 1 : at;
    else
      to = at == bad.begin() ? at : at - 1;
    if (to == bad.end()) --to;
    operand_ = -1;
    select(Selection::op(*to, "nan"));
  } else if ((e.key == "Up" || e.key == "Down") && operands > 0) {
    select_operand(std::clamp(operand_ + (e.key == "Down" ? 1 : -1), 0, operands - 1));
  } else if ((e.key == "Return" || e.key == "Enter" || e.key == "Home") && origin()->seq) {
    operand_ = -1;
    select(Selection::op(origin()->seq, "nan"));
  } else {
    return false;
  }
  return true;
}

std::string NanModel::summary() const {
  if (state_ == State::clean) return tr("NaN doctor: every value of {} is finite", run_);
  if (!origin()) return tr("NaN doctor: not searched");
  std::string text = tr("NaN doctor: {}", origin()->sentence);
  if (operand_ >= 0 && operand_ < static_cast<int>(origin()->operands.size())) {
    const auto& o = origin()->operands[operand_];
    text +=
        tr("; chosen: {}, {}", o.name, o.bad ? tr("{} not finite", format_grouped(o.bad)) : tr("every value finite"));
  } else if (selected_ && selected_ <= links_.record()->ops.size()) {
    text += tr("; chosen: {}", op_text(links_.record()->ops[selected_ - 1]));
  }
  return text;
}

Table NanModel::table() const {
  Table t;
  t.columns = {{tr("Order"), true}, {tr("Op")}, {tr("Module")}, {tr("Phase")}, {tr("Output")}};
  if (!origin()) return t;
  const auto& ops = links_.record()->ops;
  auto add = [&](uint32_t seq) {
    if (!seq || seq > ops.size()) return;
    const auto& o = ops[seq - 1];
    Table::Row row;
    row.selection = Selection::op(seq, "nan table");
    row.cells = {Table::Cell::number(static_cast<double>(t.rows.size()),
                                     t.rows.empty() ? tr("origin") : std::to_string(t.rows.size())),
                 {op_text(o), 0, {}, t.rows.empty() ? Ink::bad : ink_of(o.origin.phase)},
                 {module_path(o.origin.module), 0, {}, Ink::none},
                 {word(o.origin.phase), 0, {}, Ink::none},
                 {o.outputs.empty() ? "" : type_text(links_.record()->tensors[o.outputs[0]]), 0, {}, Ink::none}};
    t.rows.push_back(std::move(row));
  };
  add(origin()->seq);
  for (uint32_t s : origin()->spread)
    if (s != origin()->seq) add(s);
  return t;
}

float NanModel::draw_sentence(Scene& scene, float y, float width) {
  const NanOrigin& n = *origin();
  scene.rect({kPad, y, 4, 44}, Ink::bad, 1, 2);
  std::string head = n.seq ? tr("{} made the first {}", n.op, format_value(n.value))
                           : tr("The first {} was in the data", format_value(n.value));
  scene.text({kPad + 16, y - 2, width - 16, 22}, head, Ink::text, Face::title);
  std::string facts = tr("step {} · {}", format_grouped(n.step), n.phase);
  if (!n.module.empty()) facts += " · " + n.module;
  if (n.index.n) facts += tr(" · element {}", to_string(n.index));
  if (n.sample >= 0) facts += tr(" · sample {} of the data set", n.sample);
  if (!n.source.empty()) facts += " · " + n.source;
  scene.text({kPad + 16, y + 22, width - 16, 20}, facts, Ink::secondary, Face::body);
  y += 56;
  for (const std::string& line : wrapped(n.sentence, std::min(width, 860.f), Face::body)) {
    scene.text({kPad, y, width, 20}, line, Ink::text, Face::body);
    y += 20;
  }
  return y + 12;
}

void NanModel::draw_operand(Scene& scene, Box b, int index) {
  const auto& o = origin()->operands[index];
  bool bad = !std::isfinite(o.value);
  scene.rect(b, Ink::raised, 1, 4);
  scene.outline(b, index == operand_ ? Ink::accent : bad ? Ink::bad : Ink::line, index == operand_ ? 2.f : 1.f, 4);
  scene.target(b, {operand, index}, Cursor::hand, o.name + "\n" + tr("Click to see the tensor"));
  float x = b.x + 10, w = b.w - 20;
  float tw = text_width(o.type, Face::mono_small) + 4;
  scene.text({x, b.y + 4, w - tw - 6, 20}, o.name, Ink::text, Face::body);
  scene.text({b.right() - 10 - tw, b.y + 4, tw, 20}, o.type, Ink::secondary, Face::mono_small, Align::right);
  std::string value = o.index.n ? to_string(o.index) + " = " + format_value(o.value) : format_value(o.value);
  scene.text({x, b.y + 25, w, 18}, value, bad ? Ink::bad_text : Ink::text, Face::mono_small);
  std::string stats = tr("min {}  mean {}  max {}", format_value(o.min), format_value(o.mean), format_value(o.max));
  scene.text({x, b.y + 43, w, 18}, stats, Ink::secondary, Face::mono_small);
  if (o.bad)
    scene.text({x, b.y + 25, w, 18}, tr("{} not finite", format_grouped(o.bad)), Ink::bad_text, Face::small,
               Align::right);
}

float NanModel::draw_flow(Scene& scene, float y, float width) {
  const NanOrigin& n = *origin();
  float card_w = std::clamp(width * 0.42f, 240.f, 380.f), card_h = 66, gap = 8;
  int count = static_cast<int>(n.operands.size());
  scene.text({kPad, y, card_w, 18}, count ? tr("What went in") : "", Ink::secondary, Face::small);
  float top = y + 22, stack_h = std::max(static_cast<float>(count) * (card_h + gap) - gap, 84.f);
  float op_x = kPad + (count ? card_w + 56 : 0), op_w = 150, op_y = top + stack_h / 2 - 30;
  for (int i = 0; i < count; ++i) {
    Box b{kPad, top + static_cast<float>(i) * (card_h + gap), card_w, card_h};
    scene.curve({b.right(), b.y + b.h / 2}, {op_x, op_y + 30},
                std::isfinite(n.operands[i].value) ? Ink::secondary : Ink::bad, 1.5f);
    draw_operand(scene, b, i);
  }
  Box ob{op_x, op_y, op_w, 60};
  scene.rect(ob, Ink::raised, 1, 4);
  scene.outline(ob, n.seq && selected_ == n.seq ? Ink::accent : Ink::bad, 2, 4);
  scene.text({ob.x + 10, ob.y + 8, ob.w - 20, 22}, n.seq ? n.op + " #" + std::to_string(n.seq) : tr("data"), Ink::text,
             Face::body, Align::center);
  scene.text({ob.x + 10, ob.y + 30, ob.w - 20, 20}, n.module.empty() ? n.phase : n.module, Ink::secondary, Face::small,
             Align::center);
  scene.target(ob, {op, n.seq}, Cursor::hand, tr("Click to see the op everywhere"));
  float rx = ob.right() + 44, rw = width + kPad - rx;
  if (rw > 120) {
    scene.line({ob.right(), ob.y + 30}, {rx - 6, ob.y + 30}, Ink::bad, 2);
    scene.polygon({{rx, ob.y + 30}, {rx - 8, ob.y + 26}, {rx - 8, ob.y + 34}}, Ink::bad);
    Box r{rx + 2, op_y, std::min(rw - 4, 260.f), 60};
    scene.rect(r, Ink::bad, 0.16f, 4);
    scene.hatch(r, Ink::bad, 0.18f);
    scene.outline(r, Ink::bad, 1, 4);
    scene.text({r.x + 10, r.y + 8, r.w - 20, 22}, (n.index.n ? to_string(n.index) + " = " : "") + format_value(n.value),
               Ink::text, Face::mono);
    double share = n.total ? static_cast<double>(n.bad) / static_cast<double>(n.total) : 0;
    scene.text({r.x + 10, r.y + 32, r.w - 20, 20},
               tr("{} of {} not finite ({})", format_grouped(n.bad), format_grouped(n.total), format_percent(share)),
               Ink::secondary, Face::small);
  }
  return top + stack_h + 20;
}

void NanModel::draw_spread(Scene& scene, Box b) {
  const auto& r = *links_.record();
  if (r.ops.empty() || b.h < 60) return;
  auto bad = bad_ops(r);
  std::string title =
      tr("How it spread: {} of the {} ops of the step wrote values that are not finite", bad.size(), r.ops.size());
  scene.text({b.x, b.y, b.w, 18}, title, Ink::secondary, Face::small);
  Box strip{b.x, b.y + 24, b.w, std::min(b.h - 52, 56.f)};
  float w = strip.w / static_cast<float>(r.ops.size());
  scene.rect(strip, Ink::raised, 1, 2);
  Phase shown = Phase::none;
  float label_end = 0;
  for (size_t i = 0; i < r.ops.size(); ++i) {
    const auto& o = r.ops[i];
    bool is_bad = std::binary_search(bad.begin(), bad.end(), o.seq), first = o.seq == origin()->seq;
    float x = strip.x + static_cast<float>(i) * w;
    float h = first ? strip.h : is_bad ? strip.h * 0.72f : strip.h * 0.3f;
    Box bar{x, strip.bottom() - h, std::max(w - (w > 3 ? 1.f : 0.f), 1.f), h};
    scene.rect(bar, is_bad ? Ink::bad : ink_of(o.origin.phase), is_bad ? 1 : 0.7f);
    if (is_bad && w > 4) scene.hatch(bar, Ink::dark_on_fill, 0.4f);
    if (o.seq == selected_) scene.outline({bar.x - 1, strip.y - 1, bar.w + 2, strip.h + 2}, Ink::accent, 2);
    scene.target({x, strip.y, std::max(w, 1.f), strip.h}, {op, o.seq}, Cursor::hand,
                 op_text(o) + "\n" + module_path(o.origin.module) + (is_bad ? "\n" + tr("not finite") : ""));
    if (o.origin.phase != shown && x > label_end) {
      shown = o.origin.phase;
      float tw = text_width(word(shown), Face::small) + 8;
      scene.text({x, strip.bottom() + 4, tw, 16}, word(shown), Ink::secondary, Face::small);
      label_end = x + tw + 6;
    }
  }
}

/// Where the canvas is lower than what is to be said, it scrolls.
void NanModel::draw(Scene& scene) {
  if (state_ != State::found || !origin()) return;
  constexpr float kSpread = 110;
  const float width = scene.size().w - 2 * kPad;
  if (width < 40) return;
  height_ = scene.size().h;
  scroll_ = std::clamp(scroll_, 0.f, std::max(0.f, content_ - height_));
  scene.clip({0, 0, scene.size().w, height_});
  float y = draw_sentence(scene, kPad - scroll_, width);
  y = draw_flow(scene, y, width);
  content_ = y + scroll_ + kSpread + 8;
  draw_spread(scene, {kPad, y, width, std::max(kSpread, height_ - y - 8)});
  scene.unclip();
  if (content_ <= height_) return;
  const float track = height_ - 4, share = height_ / content_;
  scene.rect({scene.size().w - 8, 2 + scroll_ / content_ * track, 6, share * track}, Ink::line, 1, 3);
}

}  // namespace tenon::views
