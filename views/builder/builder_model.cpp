#include "views/builder/builder_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/spec/submodel.h"
#include "engine/train/freeze.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

void BuilderModel::set_spec(const ModelSpec& spec, int64_t batch) {
  batch_ = std::max<int64_t>(batch, 1);
  edits_.clear();
  done_ = 0;
  selected_.clear();
  primary_.clear();
  group_.clear();
  selected_wire_ = -1;
  drag_ = Drag::none;
  reveal_next_.clear();
  why_.clear();
  said_.clear();
  fit_next_ = true;
  own_view_ = false;
  take(spec, true);
  changed();
}

namespace {
/// Both are the same but for where the layers stand.
bool moved_only(const ModelSpec& was, ModelSpec& is) {
  if (was.layers.size() != is.layers.size() || was.name != is.name || was.wires != is.wires ||
      was.submodels != is.submodels)
    return false;
  for (size_t i = 0; i < is.layers.size(); ++i) {
    const LayerSpec& a = was.layers[i];
    LayerSpec& b = is.layers[i];
    const double x = std::exchange(b.x, a.x), y = std::exchange(b.y, a.y);
    const bool alike = a == b;
    b.x = x, b.y = y;
    if (!alike) return false;
  }
  return true;
}

/// What a drag under way counts.
bool same_layers(const ModelSpec& a, const ModelSpec& b) {
  return std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
                    [](const LayerSpec& x, const LayerSpec& y) { return x.name == y.name; });
}
}  // namespace

/// The model that is shown from now on, whatever led to it; returns the one that was.
ModelSpec BuilderModel::take(ModelSpec next, bool anew) {
  ++revision_;
  const bool moved = !anew && moved_only(spec_, next);
  ModelSpec was = std::exchange(spec_, std::move(next));
  if (moved) {  // nothing else of it is asked anew
    layout_.show_places(spec_);
    return was;
  }
  if (!same_layers(was, spec_) && (drag_ == Drag::move || drag_ == Drag::wire)) drag_ = Drag::none;
  index_.clear();
  for (size_t i = 0; i < spec_.layers.size(); ++i) index_.emplace(spec_.layers[i].name, static_cast<int>(i));
  used_in_.clear();
  used_out_.clear();
  ends_.clear();
  for (const WireSpec& w : spec_.wires) {
    const auto [from, to] = ends_.emplace_back(index_of(w.from), index_of(w.to));
    used_out_.insert({from, w.from_port});
    used_in_.insert({to, w.to_port});
  }
  layout_.show(spec_, anew);
  try {
    examine_now();
  } catch (...) {  // what is drawn next is by the layers that there are now
    sum_up();
    throw;
  }
  sum_up();
  if (!words_.empty()) search(words_);
  return was;
}

/// What the reports say of the whole, and of what lies within each scope.
void BuilderModel::sum_up() {
  warm_up();
  weight_owners_.reset();
  totals_ = {};
  for (const auto& [name, r] : reports_) {
    totals_.parameters += r.parameters;
    totals_.output_bytes += r.output_bytes;
    totals_.flops += r.flops;
  }
  errors_.clear();
  if (const LayerReport* r = report(""); r && !r->error.empty()) errors_.push_back(r->error);  // of no layers at all
  bad_.assign(spec_.layers.size(), 0);
  report_at_.assign(spec_.layers.size(), nullptr);
  below_.assign(layout_.tree().nodes().size(), {});
  for (size_t i = 0; i < spec_.layers.size(); ++i) {
    const LayerReport* r = report_at_[i] = report(spec_.layers[i].name);
    bad_[i] = r && !r->error.empty();
    if (bad_[i]) errors_.push_back(spec_.layers[i].name + ": " + r->error);
    for (int n = layout_.tree().leaf_of(static_cast<int>(i)); r && n >= 0; n = layout_.tree().at(n).parent) {
      Below& below = below_[static_cast<size_t>(n)];
      below.errors += bad_[i] ? 1 : 0;
      below.parameters += r->parameters;
      below.flops += r->flops;
    }
  }
}

int BuilderModel::index_of(const std::string& layer) const {
  const auto at = index_.find(layer);
  return at == index_.end() ? -1 : at->second;
}

void BuilderModel::set_batch(int64_t batch) {
  batch_ = std::max<int64_t>(batch, 1);
  examine_now();
  sum_up();
  changed();
}

void BuilderModel::set_frozen(const std::string& patterns) {
  if (patterns == frozen_) return;
  frozen_ = patterns;
  changed();
}

std::string BuilderModel::frozen_text(const LayerReport& report) const {
  if (frozen_.empty()) return {};
  const Freeze freeze(frozen_);
  const auto& names = report.parameter_names;
  const auto n = std::count_if(names.begin(), names.end(), [&](const std::string& p) { return freeze.holds(p); });
  return n == 0 ? "" : static_cast<size_t>(n) == names.size() ? tr("frozen") : tr("partly frozen");
}

/// Where a layer stands says nothing about its shapes: while one is dragged the model is not run again.
void BuilderModel::examine_now() {
  ModelSpec shapes = spec_;
  for (LayerSpec& l : shapes.layers) {
    l.x = l.y = 0;
    l.comment.clear();
  }
  if (batch_ == examined_batch_ && shapes == examined_) return;
  std::vector<LayerReport> fresh = examiner_.examine(spec_, batch_);
  reports_.clear();
  for (LayerReport& r : fresh) reports_[r.layer] = std::move(r);
  examined_ = std::move(shapes);
  examined_batch_ = batch_;
}

const LayerReport* BuilderModel::report(const std::string& layer) const {
  auto at = reports_.find(layer);
  return at == reports_.end() ? nullptr : &at->second;
}

bool BuilderModel::refuse(const std::string& why) {
  why_ = why;
  changed();
  return false;
}

bool BuilderModel::apply(const std::string& text, ModelSpec next) {
  why_.clear();
  said_.clear();
  if (next == spec_) return false;
  for (const auto& [name, others] : mirror_edits(spec_, next)) {
    said_ = others == 1 ? tr("{} changed: its other instance, too", name)
                        : tr("{} changed: its {} other instances, too", name, others);
    forget_idle_shares(next, examiner_.examine(next, batch_));
  }
  edits_.resize(done_);
  ModelSpec before = take(next, false);
  edits_.push_back({text, std::move(before), std::move(next)});
  done_ = edits_.size();
  changed();
  if (on_edit) on_edit();
  return true;
}

bool BuilderModel::replace(const std::string& text, const ModelSpec& spec) {
  forget_missing(spec);
  return apply(text, spec);
}

/// What the model that comes does not have is not chosen any longer.
void BuilderModel::forget_missing(const ModelSpec& next) {
  std::set<std::string> names;
  for (const LayerSpec& l : next.layers) names.insert(l.name);
  std::erase_if(selected_, [&](const std::string& n) { return !names.contains(n); });
  if (!names.contains(primary_)) primary_.clear();
  if (selected_.empty()) group_.clear();
  selected_wire_ = -1;
  drag_ = Drag::none;
}

void BuilderModel::undo() {
  if (!can_undo()) return;
  const ModelSpec before = edits_[--done_].before;
  said_.clear();
  forget_missing(before);
  take(before, false);
  changed();
  if (on_edit) on_edit();
}
void BuilderModel::redo() {
  if (!can_redo()) return;
  const ModelSpec after = edits_[done_++].after;
  forget_missing(after);
  take(after, false);
  changed();
  if (on_edit) on_edit();
}

void BuilderModel::select_names(std::set<std::string> names, const std::string& primary) {
  selected_wire_ = -1;
  group_.clear();
  selected_ = std::move(names);
  primary_ = selected_.contains(primary) ? primary : selected_.empty() ? std::string() : *selected_.begin();
  tell_selected();
}

void BuilderModel::tell_selected() {
  if (!group_.empty())
    select(Selection::module(group_, "builder"));
  else if (!primary_.empty())
    select(Selection::module(primary_, "builder"));
  if (on_selected) on_selected();
  changed();
}

void BuilderModel::choose(const std::string& layer) {
  const bool there = index_of(layer) >= 0;
  select_names(there ? std::set<std::string>{layer} : std::set<std::string>{}, layer);
}

void BuilderModel::choose_wire(int wire) {
  selected_.clear();
  primary_.clear();
  group_.clear();
  selected_wire_ = wire >= 0 && wire < static_cast<int>(spec_.wires.size()) ? wire : -1;
  if (on_selected) on_selected();
  changed();
}

void BuilderModel::choose_group(int node, bool add) {
  std::set<std::string> names;
  std::string first;
  for (int i : layout_.layers_below(node)) {
    const std::string& name = spec_.layers[static_cast<size_t>(i)].name;
    if (first.empty()) first = name;
    names.insert(name);
  }
  if (add) {
    names.insert(selected_.begin(), selected_.end());
    return select_names(std::move(names), primary_.empty() ? first : primary_);
  }
  selected_wire_ = -1;
  selected_ = std::move(names);
  primary_ = first;
  group_ = layout_.tree().path(node);
  tell_selected();
}

void BuilderModel::clear_selection() {
  selected_wire_ = -1;
  selected_.clear();
  primary_.clear();
  group_.clear();
  if (on_selected) on_selected();
  changed();
}

void BuilderModel::set_selection(const Selection& s) {
  if (s.source == "builder") return;
  // An op, a tensor, a node or a block of the step shown elsewhere belongs to a layer too.
  const std::string module = s.kind == Selection::Kind::module ? s.name : links_ ? links_.module_of(s) : std::string();
  if (module.empty()) return;
  selected_.clear();
  selected_wire_ = -1;
  primary_.clear();
  group_.clear();
  for (const LayerSpec& l : spec_.layers)
    if (in_module(l.name, module)) {
      selected_.insert(l.name);
      if (primary_.empty()) primary_ = l.name;
    }
  if (selected_.size() > 1) group_ = module;
  if (on_selected) on_selected();
  changed();
}

void BuilderModel::select_all() {
  std::set<std::string> names;
  for (const LayerSpec& l : spec_.layers) names.insert(l.name);
  select_names(std::move(names), primary_);
}

/// A group of a model that was placed by hand may need room: that is an edit, which can be undone.
void BuilderModel::toggle_group(int node) {
  const bool open = layout_.is_open(node);
  if (!open) {
    if (ModelSpec roomy = layout_.with_room(spec_, node); !(roomy == spec_)) {
      const std::string title = layout_.title(node);
      apply(tr("Make room for {}", title), std::move(roomy));
    }
  }
  layout_.set_open(node, !open);
  if (!own_view_) fit_next_ = true;
  changed();
}

void BuilderModel::open_groups(bool open) {
  layout_.set_all_open(open);
  fit_next_ = true;
  own_view_ = false;
  changed();
}

bool BuilderModel::toggle_selected_group() {
  int node = group_.empty() ? -1 : layout_.node_of(group_);
  if (node < 0 && !primary_.empty()) {  // the group around a layer: the outermost that is folded, else the innermost
    const auto& cells = layout_.picture().cells;
    const int cell = layout_.cell_of_layer(index_of(primary_));
    if (cell >= 0 && layout_.layer_of(cells[static_cast<size_t>(cell)]) < 0) {
      toggle_group(cells[static_cast<size_t>(cell)].node);
      return true;
    }
    node = layout_.tree().at(layout_.tree().leaf_of(index_of(primary_))).parent;
    while (node > ScopeTree::kRoot && !is_group(layout_.tree(), node)) node = layout_.tree().at(node).parent;
  }
  if (node <= ScopeTree::kRoot) return refuse(tr("No group is selected"));
  toggle_group(node);
  return true;
}

int BuilderModel::search(const std::string& words) {
  words_ = words;
  found_.clear();
  for (size_t i = 0; i < spec_.layers.size() && !words.empty(); ++i) {
    const LayerSpec& l = spec_.layers[i];
    std::string text = l.name + " " + l.type + " " + l.comment;
    for (const Attr& a : l.attrs) text += " " + a.name + "=" + attr_text(a.value);
    if (holds_words(text, words)) found_.push_back(static_cast<int>(i));
  }
  changed();
  return found();
}

bool BuilderModel::next_found(int direction) {
  if (found_.empty()) return false;
  const int now = index_of(primary_);
  auto next = std::upper_bound(found_.begin(), found_.end(), now);
  if (direction < 0) {
    next = std::lower_bound(found_.begin(), found_.end(), now);
    next = next == found_.begin() ? found_.end() - 1 : next - 1;
  } else if (next == found_.end()) {
    next = found_.begin();
  }
  const std::string name = spec_.layers[static_cast<size_t>(*next)].name;
  choose(name);
  reveal(name);
  return true;
}

Table BuilderModel::table() const {
  Table t;
  t.columns = {{tr("Layer")},      {tr("Type")}, {.title = tr("Output"), .whole = true}, {tr("Parameters"), true},
               {tr("FLOP"), true}, {tr("Error")}};
  for (const LayerSpec& l : spec_.layers) {
    const LayerReport* r = report(l.name);
    Table::Row row;
    row.selection = Selection::module(l.name, "builder table");
    row.cells = {
        {l.name, 0, l.comment, Ink::none},
        {l.off ? tr("{}, off", l.type) : l.type, 0, {}, Ink::none},
        {r && !r->outputs.empty() ? r->outputs[0] : "", 0, {}, Ink::none},
        Table::Cell::number(r ? static_cast<double>(r->parameters) : 0, r ? format_grouped(r->parameters) : ""),
        Table::Cell::number(r ? r->flops : 0, r && r->flops > 0 ? format_flops(r->flops) : "–"),
        {r ? r->error : "", 0, r ? r->hint : "", r && !r->error.empty() ? Ink::bad : Ink::none}};
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string BuilderModel::summary() const {
  std::string text =
      tr("Model {}: {} layers, {} parameters", spec_.name, spec_.layers.size(), format_grouped(parameters()));
  if (!said_.empty()) text += "; " + said_;
  if (!errors().empty()) text += tr(", with errors");
  if (selected_.size() > 1) {
    text += !group_.empty() ? tr("; chosen: group {}", group_) : tr("; chosen: {} layers", selected_.size());
    return text;
  }
  const int at = index_of(primary_);
  if (at < 0) return text;
  const LayerSpec& l = spec_.layers[static_cast<size_t>(at)];
  text += tr("; chosen: {}, {}", l.name, l.type);
  if (l.off) return text + tr(", off");
  if (const LayerReport* r = report(l.name))
    text += !r->error.empty()     ? tr(", error: {}", r->error)
            : !r->outputs.empty() ? tr(", gives {}", r->outputs[0])
                                  : "";
  return text;
}

}  // namespace tenon::views
