// What the plan shows: its kernels, what is selected among them, and its intents. The picture is in plan_draw.cpp.
#include "views/plan/plan_model.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tracing/ops/plan_page.h"
#include "tracing/record/step_record.h"
#include "views/shared/finding_page.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using tracing::PlannedKernel;

namespace {
constexpr float kStill = 3;  // pixels that a click may move

std::string kernel_text(const PlannedKernel& k) {
  const std::string op = std::string(k.row.op) + " #" + format_grouped(k.row.seq);
  return k.row.again ? tr("{}, again", op) : op;
}
}  // namespace

PlanModel::PlanModel() {
  x_.min_span = 3;
  y_.min_span = 256;
}

void PlanModel::set_step(const Links& links) {
  links_ = links;
  link();
  set_selection(selection_);
}

void PlanModel::set_plan(Plan plan) {
  plan_ = std::move(plan);
  page_ = plan_ ? tracing::plan_page(*plan_) : tracing::Finding();
  hover_ = pressed_ = {};
  held_ = pulling_ = false;
  tips_.clear();
  marked_.clear();
  chosen_ = -1;
  if (planned()) {
    x_.set_full(0, static_cast<double>(plan_->kernels.size()));
    y_.set_full(0, static_cast<double>(std::max<int64_t>(plan_->figures.arena_bytes, 1)));
    x_.fit(), y_.fit();
  }
  link();
  set_selection(selection_);
  changed();
}

namespace {
/// Where a recorder holds a sum of gradients, another is made instead of adding to it in its place.
std::string_view without_place(std::string_view op) { return op.substr(0, op.size() - op.ends_with('_')); }
}  // namespace

/// A recorded step numbers its ops as its plan does. One of another model or recipe has other ops there: it is no
/// kernel's.
void PlanModel::link() {
  op_of_.clear();
  kernel_of_op_.clear();
  tips_.clear();
  if (!planned()) return;
  const auto& kernels = plan_->kernels;
  op_of_.assign(kernels.size(), 0);
  if (links_) {
    const auto& ops = links_.record()->ops;
    kernel_of_op_.assign(ops.size() + 1, -1);
    for (size_t i = 0; i < kernels.size(); ++i) {
      const StepPlanRow& row = kernels[i].row;
      if (row.again || row.seq == 0 || row.seq > ops.size()) continue;
      const tracing::OpRecord& op = ops[row.seq - 1];
      if (without_place(op.name) != without_place(row.op) || module_path(op.origin.module) != row.module ||
          op.origin.phase != row.phase)
        continue;
      op_of_[i] = row.seq;
      kernel_of_op_[row.seq] = static_cast<int>(i);
    }
  }
  for (size_t i = 0; i < kernels.size(); ++i) tips_.push_back(told_of(i));
}

void PlanModel::set_selection(const Selection& s) {
  selection_ = s;
  const int before = chosen_;
  marked_.clear();
  chosen_ = -1;
  if (!planned()) return;
  const auto& kernels = plan_->kernels;
  if (s.kind == Selection::Kind::module && !s.document) {
    for (size_t i = 0; i < kernels.size(); ++i)
      if (in_module(kernels[i].row.module, s.name)) marked_.push_back(i);
  } else if (links_) {
    for (const uint32_t seq : links_.ops_of(s))
      if (seq < kernel_of_op_.size() && kernel_of_op_[seq] >= 0)
        marked_.push_back(static_cast<size_t>(kernel_of_op_[seq]));
    std::sort(marked_.begin(), marked_.end());
    marked_.erase(std::unique(marked_.begin(), marked_.end()), marked_.end());
  }
  const bool stays = before >= 0 && std::binary_search(marked_.begin(), marked_.end(), static_cast<size_t>(before));
  if (!marked_.empty()) chosen_ = stays && s.source == "plan" ? before : static_cast<int>(marked_.front());
  if (chosen_ >= 0) x_.reveal(chosen_, chosen_ + 1);
  changed();
}

Selection PlanModel::selection_of(size_t kernel) const {
  if (op_of_[kernel]) return Selection::op(op_of_[kernel], "plan");
  const std::string& module = plan_->kernels[kernel].row.module;
  return module.empty() ? Selection() : Selection::module(module, "plan");
}

void PlanModel::choose(size_t kernel) {
  // Of a module the window tells which kernels are its: the one that was meant is among them.
  if (!std::binary_search(marked_.begin(), marked_.end(), kernel)) marked_ = {kernel};
  chosen_ = static_cast<int>(kernel);
  x_.reveal(chosen_, chosen_ + 1);
  changed();
  if (const Selection s = selection_of(kernel)) select(s);
  if (on_choose) on_choose();
}

void PlanModel::choose_row(const Selection& row) {
  if (planned() && row.id >= 1 && row.id <= static_cast<int64_t>(plan_->kernels.size()))
    choose(static_cast<size_t>(row.id) - 1);
}

Table PlanModel::table() const {
  if (!planned() || page_.tables.empty()) return {};
  tracing::Finding shown = page_;
  tracing::Table& from = shown.tables.front();
  const auto take_away = [&](size_t c) {
    from.columns.erase(from.columns.begin() + static_cast<std::ptrdiff_t>(c));
    for (auto& row : from.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  };
  const auto& kernels = plan_->kernels;
  const bool chains = std::any_of(kernels.begin(), kernels.end(),
                                  [](const PlannedKernel& k) { return k.row.chain >= 0 || !k.row.why.empty(); });
  for (size_t c = from.columns.size(); c-- > 0;)
    if (from.columns[c].wide || (from.columns[c].name == "chain" && !chains)) take_away(c);
  Table t = make_page(shown, Subject{.source = "plan"}).tables.front().table;
  for (size_t i = 0; i < t.rows.size(); ++i) {
    const StepPlanRow& row = kernels[i].row;
    t.rows[i].selection = row_of(i);
    for (size_t c = 0; c < t.rows[i].cells.size(); ++c) {
      Table::Cell& cell = t.rows[i].cells[c];
      const std::string& name = from.columns[c].name;
      if (name == "phase") {
        cell.text = word(row.phase);
        cell.mark = ink_of(row.phase);
      } else if (name == "offset" && row.offset >= 0) {
        cell.text = tracing::bytes_text(row.offset);
        cell.tip = tr("{} bytes", format_grouped(row.offset));
      } else if (name == "offset") {
        if (row.tile) cell.text = tr("tile");
        cell.key = row.tile ? -1 : -2;
      } else if (name == "last_seq" && kernels[i].row.last >= static_cast<int>(kernels.size())) {
        cell.text = tr("left behind");
        cell.key = 1e300;
      } else if (name == "chain") {
        cell.key = row.chain;
        cell.tip = row.why;
      }
    }
  }
  return t;
}

void PlanModel::fit() {
  x_.fit(), y_.fit();
  changed();
}

void PlanModel::go_to_peak() {
  if (planned() && plan_->peak >= 0) choose(static_cast<size_t>(plan_->peak));
}

bool PlanModel::pointer(const PointerEvent& e) {
  if (!planned()) return false;
  const Hit under = e.type == PointerEvent::Type::leave ? Hit{} : last_.hit_at(e.x, e.y);
  switch (e.type) {
    case PointerEvent::Type::press:
      if (e.button != Button::left && e.button != Button::middle) return false;
      held_ = true;
      pulling_ = false;
      held_at_ = {e.x, e.y};
      pull_x_.begin(x_, e.x);
      pull_y_.begin(y_, -e.y);  // bytes count upwards
      pressed_ = e.button == Button::left ? under : Hit{};
      return false;
    case PointerEvent::Type::release: {
      const bool clicked = held_ && !pulling_ && pressed_ && pressed_ == under;
      pressed_ = {};
      held_ = pulling_ = false;
      if (clicked) choose(static_cast<size_t>(under.id));
      return clicked;
    }
    case PointerEvent::Type::move:
      if (held_ && (pulling_ || std::hypot(e.x - held_at_.x, e.y - held_at_.y) > kStill)) {
        pulling_ = true;
        pull_x_.to(x_, e.x);
        pull_y_.to(y_, -e.y);
        return true;
      }
      [[fallthrough]];
    case PointerEvent::Type::leave: {
      const bool other = !(hover_ == under);
      hover_ = under;
      return other;
    }
    case PointerEvent::Type::double_click:
      x_.fit(), y_.fit();
      return true;
  }
  return false;
}

/// With Ctrl that of the bytes.
bool PlanModel::wheel(const WheelEvent& e) {
  if (!planned()) return false;
  if (!e.mods.ctrl) return x_.wheel(e);
  const float along = y_.x + y_.w - (e.y - y_.x);
  return y_.wheel({along, e.y, e.dx, e.dy, {e.mods.shift, false, false}});
}

bool PlanModel::key(const KeyEvent& e) {
  if (!planned()) return false;
  if (e.key == "F" && !e.mods.ctrl && !e.mods.alt) {
    x_.fit(), y_.fit();
    return true;
  }
  if (e.mods.shift ? y_.key({e.key, e.text, {false, e.mods.ctrl, e.mods.alt}}) : x_.key(e)) return true;
  const int last = static_cast<int>(plan_->kernels.size()) - 1;
  int to = chosen_;
  if (e.key == "P" && plan_->peak >= 0 && !e.mods.ctrl && !e.mods.alt)
    to = plan_->peak;
  else if (e.key == "Right" || e.key == "Down")
    to = std::min(to + 1, last);
  else if (e.key == "Left" || e.key == "Up")
    to = std::max(to - 1, 0);
  else if (e.key == "Home")
    to = 0;
  else if (e.key == "End")
    to = last;
  else
    return false;
  choose(static_cast<size_t>(to));
  return true;
}

std::string PlanModel::told_of(size_t kernel) const {
  const PlannedKernel& k = plan_->kernels[kernel];
  const StepPlanRow& row = k.row;
  std::string s = kernel_text(k);
  if (!row.module.empty()) s += "  " + row.module;
  s += "\n" + word(row.phase) + " · " +
       tr("kernel {} of {}", format_grouped(static_cast<int64_t>(kernel) + 1),
          format_grouped(static_cast<int64_t>(plan_->kernels.size())));
  if (row.again) s += "\n" + tr("It ran before in the step: what it gave was not kept until here");
  if (row.chain >= 0) s += "\n" + tr("Chain {}: its kernels run together, tile by tile", row.chain);
  if (!row.results.empty())
    s += "\n" + elide_middle(row.results, 80) + " · " + format_bytes(static_cast<double>(row.bytes));
  const bool stays = k.row.last >= static_cast<int>(plan_->kernels.size());
  if (row.tile) {
    s += "\n" + tr("In a tile of its chain: it takes no memory");
  } else if (row.offset < 0) {
    s += "\n" + (stays ? tr("Left behind by the step: it lies outside of the arena") : tr("Outside of the arena"));
  } else {
    const std::string at = format_bytes(static_cast<double>(row.offset));
    s += "\n" + (k.arena_bytes == row.bytes ? tr("In the arena at {}", at)
                                            : tr("The first result, {}, in the arena at {}",
                                                 format_bytes(static_cast<double>(k.arena_bytes)), at));
    if (k.taken_by >= 0 && k.row.last == k.taken_by)
      s += " · " + tr("needed until {}, which puts its result there",
                      kernel_text(plan_->kernels[static_cast<size_t>(k.taken_by)]));
    else if (stays)
      s += " · " + tr("to the end of the step");
    else if (k.row.last != static_cast<int>(kernel))
      s += " · " + tr("needed until {}", kernel_text(plan_->kernels[static_cast<size_t>(k.row.last)]));
    else
      s += " · " + tr("needed by nobody after it");
  }
  if (k.taken_by >= 0 && k.row.last != k.taken_by)
    s += "\n" + tr("{} puts its result into a part of this memory",
                   kernel_text(plan_->kernels[static_cast<size_t>(k.taken_by)]));
  if (k.peak_bytes > 0) s += "\n" + tr("Alive at the peak");
  if (!row.why.empty()) s += "\n" + tr("Not in the chain of the kernel before it: {}", row.why);
  return s;
}

std::string PlanModel::summary() const {
  if (!plan_) return tr("Plan: nothing to show yet");
  if (chosen_ < 0) return headline();
  std::string told = told_of(static_cast<size_t>(chosen_));
  std::replace(told.begin(), told.end(), '\n', ';');
  return told;
}

}  // namespace tenon::views
