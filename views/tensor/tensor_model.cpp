#include "views/tensor/tensor_model.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include "core/error.h"
#include "engine/ops/view_steps.h"
#include "tracing/record/tensor_versions.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"
#include "views/shared/tensor_picture.h"

namespace tenon::views {

using tracing::TensorRecord;

void TensorModel::set_step(const Links& links) {
  const std::string before = source() ? source()->name : std::string(), views = views_;
  const int64_t row = focus_row_, col = focus_col_;
  links_ = links;
  cursor_.forget();
  tensor_ = -1;
  stats_.reset();
  if (links_ && !links_.record()->tensors.empty()) {
    // The tensor of that name, and the element that was looked at.
    const auto& all = links_.record()->tensors;
    const auto same = std::find_if(all.begin(), all.end(), [&](const TensorRecord& t) { return t.name == before; });
    show(same == all.end() ? 0 : static_cast<int>(same - all.begin()));
    if (same != all.end()) {
      try {
        try_views(views);
      } catch (const Error&) {
        // It has another size in this step.
      }
      set_focus(row, col);
    }
  }
  changed();
}

void TensorModel::set_selection(const Selection& s) {
  if (!links_) return;
  if (cursor_.take(links_, s) && changes()) look_again();
  if (s.source == "tensor") return;
  if (s.kind == Selection::Kind::module || s.kind == Selection::Kind::range || s.kind == Selection::Kind::step) return;
  int t = links_.tensor_of(s);
  if (t >= 0 && t != tensor_) show(t);
}

const TensorRecord* TensorModel::source() const {
  return links_ && tensor_ >= 0 ? &links_.record()->tensors[tensor_] : nullptr;
}
const TensorRecord* TensorModel::record() const { return source() && !steps_.empty() ? &viewed_ : source(); }
bool TensorModel::has_values() const {
  const Tensor v = value();
  return v.defined() && !v.is_meta() && v.numel() > 0;
}
Tensor TensorModel::source_value() const {
  const TensorRecord* r = source();
  return !r ? Tensor() : cursor_.seq() ? tracing::value_after(*r, cursor_.seq()) : r->value;
}
Tensor TensorModel::value() const { return steps_.empty() ? source_value() : viewed_.value; }

namespace {
/// Copies for a picture are made on the thread that draws.
constexpr int64_t kMostCopied = int64_t{64} << 20;

bool copies_little(const std::vector<ViewStep>& steps, DType dtype) {
  int64_t bytes = 0;
  for (const ViewStep& s : steps)
    if (!s.copies.empty() && (__builtin_mul_overflow(s.layout.numel(), itemsize(dtype), &bytes) || bytes > kMostCopied))
      return false;
  return true;
}
}  // namespace

void TensorModel::try_views(const std::string& text) {
  const TensorRecord* r = source();
  if (!r) return;
  const Tensor value = source_value();
  int64_t low = 0, high = 0;
  r->layout.extent(low, high);
  const int64_t storage =
      value.defined() && value.storage() ? static_cast<int64_t>(value.storage()->bytes / itemsize(r->dtype)) : high + 1;
  std::vector<ViewStep> steps = view_chain(text, r->layout, storage);
  if (steps.empty() && steps_.empty()) return refuse_views({});
  steps_ = std::move(steps);
  views_ = steps_.empty() ? std::string() : text;
  layout_changed();
}

void TensorModel::refuse_views(const std::string& why) {
  refusal_ = why;
  changed();
}

void TensorModel::layout_changed() {
  refusal_.clear();
  if (const TensorRecord* r = source(); r && !steps_.empty()) {
    viewed_ = *r;
    viewed_.name += " " + views_;
    viewed_.layout = steps_.back().layout;
    if (std::any_of(steps_.begin(), steps_.end(), [](const ViewStep& s) { return !s.copies.empty(); }))
      viewed_.storage = 0;  // memory of its own, which no step has
  }
  const TensorRecord* r = record();
  std::tie(row_axis_, col_axis_) = r ? first_slice(r->layout.size) : std::pair(-1, -1);
  std::fill(std::begin(index_), std::end(index_), 0);
  focus_row_ = focus_col_ = top_ = left_ = 0;
  slice_stale_ = true;
  heat_ = r && rows() >= 12 && cols() >= 12;
  cost_.reset();
  if (r) cost_ = walk_cost(r->layout, static_cast<int64_t>(itemsize(r->dtype)));
  look_again();
}

std::string TensorModel::walk_text() const {
  if (!record() || !cost_) return {};
  std::string text = views_.empty() ? std::string() : tr("a view, nothing is copied · ");
  for (const ViewStep& s : steps_)
    if (!s.copies.empty())
      text = tr("{} copies {}: {} · ", s.text,
                format_bytes(static_cast<double>(s.layout.numel()) * static_cast<double>(itemsize(record()->dtype))),
                s.copies);
  text += cost_->whole ? tr("read in order, ")
                       : tr("read in order, of the first {} elements ", format_grouped(cost_->elements));
  return text +
         tr("{} cache lines are fetched, {:.1f} × what they fill", format_grouped(cost_->fetched), cost_->times());
}

std::vector<int> TensorModel::aliases() const {
  constexpr size_t kMost = 6;
  if (!record() || (!steps_.empty() && viewed_.storage == 0)) return {};
  std::vector<int> all;
  if (!steps_.empty()) all.push_back(tensor_);  // what the views are of reads the memory, too
  for (const int i : links_.aliases_of(tensor_))
    if (all.size() < kMost) all.push_back(i);
  return all;
}

/// The same tensor holds other values now.
void TensorModel::look_again() {
  if (!steps_.empty()) {
    const Tensor value = source_value();
    const bool can = value.defined() && !value.is_meta() && copies_little(steps_, viewed_.dtype);
    viewed_.value = can ? viewed(value, steps_) : Tensor();
  }
  stats_.reset();
  if (has_values() && on_need_stats) on_need_stats(tensor_);
  changed();
}

void TensorModel::show(int tensor) {
  tensor_ = tensor;
  views_.clear();
  steps_.clear();
  layout_changed();
}

void TensorModel::set_stats(int tensor, const TensorStats& stats) {
  if (tensor != tensor_) return;
  stats_ = stats;
  changed();
}

void TensorModel::set_heat(bool heat) {
  heat_ = heat;
  top_ = left_ = 0;
  changed();
}

void TensorModel::set_axes(int row, int col) {
  const TensorRecord* r = record();
  if (!r || row == col || row < 0 || col < 0 || row >= r->layout.ndim() || col >= r->layout.ndim()) return;
  row_axis_ = row;
  col_axis_ = col;
  focus_row_ = focus_col_ = top_ = left_ = 0;
  slice_stale_ = true;
  changed();
}

void TensorModel::set_index(int axis, int64_t i) {
  const TensorRecord* r = record();
  if (!r || axis < 0 || axis >= r->layout.ndim()) return;
  index_[axis] = std::clamp<int64_t>(i, 0, std::max<int64_t>(r->layout.size[axis] - 1, 0));
  slice_stale_ = true;
  changed();
}

int64_t TensorModel::rows() const { return row_axis_ >= 0 ? record()->layout.size[row_axis_] : 1; }
int64_t TensorModel::cols() const { return col_axis_ >= 0 ? record()->layout.size[col_axis_] : 1; }

Dims TensorModel::at(int64_t r, int64_t c) const {
  Dims d = Dims::filled(record()->layout.ndim(), 0);
  for (int i = 0; i < d.n; ++i) d[i] = index_[i];
  if (row_axis_ >= 0) d[row_axis_] = r;
  if (col_axis_ >= 0) d[col_axis_] = c;
  return d;
}
int64_t TensorModel::position(const Dims& d) const {
  const Layout& l = record()->layout;
  int64_t p = l.offset;
  for (int i = 0; i < d.n; ++i) p += d[i] * l.stride[i];
  return p;
}
Dims TensorModel::focus() const { return record() ? at(focus_row_, focus_col_) : Dims{}; }
int64_t TensorModel::focus_position() const { return record() ? position(focus()) : 0; }

void TensorModel::set_focus(int64_t row, int64_t col) {
  if (!record()) return;
  focus_row_ = std::clamp<int64_t>(row, 0, std::max<int64_t>(rows() - 1, 0));
  focus_col_ = std::clamp<int64_t>(col, 0, std::max<int64_t>(cols() - 1, 0));
  if (focus_row_ < top_) top_ = focus_row_;
  if (focus_row_ >= top_ + visible_rows_) top_ = focus_row_ - visible_rows_ + 1;
  if (focus_col_ < left_) left_ = focus_col_;
  if (focus_col_ >= left_ + visible_cols_) left_ = focus_col_ - visible_cols_ + 1;
  changed();
}
void TensorModel::move_focus(int64_t dr, int64_t dc) { set_focus(focus_row_ + dr, focus_col_ + dc); }

void TensorModel::index_slice() {
  if (!slice_stale_) return;
  slice_stale_ = false;
  slice_.clear();
  constexpr int64_t kMost = 1 << 16;  // cells of a larger slice are indexed around the focus only
  int64_t nr = rows(), nc = cols(), r0 = 0, r1 = nr, c0 = 0, c1 = nc;
  if (nr * nc > kMost) {
    r0 = std::max<int64_t>(0, focus_row_ - 100), r1 = std::min(nr, focus_row_ + 100);
    c0 = std::max<int64_t>(0, focus_col_ - 100), c1 = std::min(nc, focus_col_ + 100);
    slice_stale_ = true;
  }
  for (int64_t r = r0; r < r1; ++r)
    for (int64_t c = c0; c < c1; ++c) {
      auto& [cell, count] =
          slice_.try_emplace(position(at(r, c)), std::pair<int64_t, int>{r * nc + c, 0}).first->second;
      ++count;
    }
}

double TensorModel::color_scale() const {
  if (stats_ && stats_->finite() > 0) return std::max(std::fabs(stats_->min), std::fabs(stats_->max));
  return 0;
}

bool TensorModel::pointer(const PointerEvent& e) {
  if (!record() || e.type != PointerEvent::Type::press || e.button != Button::left) return false;
  Hit hit = last_.hit_at(e.x, e.y);
  switch (hit.kind) {
    case cell:
      set_focus(hit.id / std::max<int64_t>(cols(), 1), hit.id % std::max<int64_t>(cols(), 1));
      return true;
    case storage_cell: {
      index_slice();
      auto found = slice_.find(hit.id);
      if (found == slice_.end()) return false;
      set_focus(found->second.first / cols(), found->second.first % cols());
      return true;
    }
    case axis: {
      int a = static_cast<int>(hit.id);
      if (a == row_axis_ || a == col_axis_)
        set_axes(col_axis_, row_axis_);
      else if (e.mods.shift)
        set_axes(row_axis_, a);
      else
        set_axes(a, col_axis_);
      return true;
    }
    case axis_down:
      set_index(static_cast<int>(hit.id), index_[hit.id] - (e.mods.shift ? 10 : 1));
      return true;
    case axis_up:
      set_index(static_cast<int>(hit.id), index_[hit.id] + (e.mods.shift ? 10 : 1));
      return true;
    case writer:
      select(Selection::op(hit.id, "tensor"));
      return true;
    case alias:
      select(Selection::tensor(hit.id, "tensor"));
      show(static_cast<int>(hit.id));
      return true;
    default:
      return false;
  }
}

bool TensorModel::wheel(const WheelEvent& e) {
  if (!record()) return false;
  const Scene::Target* t = last_.target_at(e.x, e.y);
  if (t && (t->hit.kind == axis || t->hit.kind == axis_up || t->hit.kind == axis_down)) {
    set_index(static_cast<int>(t->hit.id), index_[t->hit.id] + (e.dy > 0 ? 1 : -1));
    return true;
  }
  int64_t by = static_cast<int64_t>(std::lround(-(e.dx != 0 ? e.dx : e.dy) * 3));
  if (e.mods.shift || e.dx != 0)
    left_ = std::clamp<int64_t>(left_ + by, 0, std::max<int64_t>(cols() - visible_cols_, 0));
  else
    top_ = std::clamp<int64_t>(top_ + by, 0, std::max<int64_t>(rows() - visible_rows_, 0));
  return true;
}

/// The axes that are neither rows nor columns count like the digits of a number.
void TensorModel::next_slice(int direction) {
  const Layout& l = record()->layout;
  for (int a = l.ndim() - 1; a >= 0; --a) {
    if (a == row_axis_ || a == col_axis_) continue;
    const int64_t to = index_[a] + direction;
    set_index(a, to < 0 ? l.size[a] - 1 : to >= l.size[a] ? 0 : to);
    if (to >= 0 && to < l.size[a]) return;
  }
}

bool TensorModel::key(const KeyEvent& e) {
  if (!record() || e.mods.ctrl || e.mods.alt) return false;
  if (e.key == "Left")
    move_focus(0, -1);
  else if (e.key == "Right")
    move_focus(0, 1);
  else if (e.key == "Up")
    move_focus(-1, 0);
  else if (e.key == "Down")
    move_focus(1, 0);
  else if (e.key == "PgDown")
    move_focus(visible_rows_, 0);
  else if (e.key == "PgUp")
    move_focus(-visible_rows_, 0);
  else if (e.key == "Home")
    set_focus(0, 0);
  else if (e.key == "End")
    set_focus(rows() - 1, cols() - 1);
  else if (e.key == "H")
    set_heat(!heat_);
  else if (e.key == "T" && row_axis_ >= 0)
    set_axes(col_axis_, row_axis_);
  else if (e.key == "[" || e.key == "]")
    next_slice(e.key == "]" ? 1 : -1);
  else if (e.key == "Return" || e.key == "Enter")
    select(Selection::tensor(tensor_, "tensor"));
  else
    return false;
  return true;
}

std::string TensorModel::summary() const {
  const TensorRecord* r = record();
  if (!r) return tr("Tensor explorer: no tensor is chosen");
  std::string text = r->name + ", " + type_text(*r);
  if (has_values()) text += tr(", element {} is {}", to_string(focus()), format_value(value_at(value(), focus())));
  return text;
}

/// Whose tensors a name is about: "features.0.weight" of "features.0.weight/momentum" and "grad of features.0.weight".
static std::string subject_of(const std::string& name) {
  constexpr std::string_view kGradient = "grad of ";
  const std::string whole = name.starts_with(kGradient) ? name.substr(kGradient.size()) : name;
  return whole.substr(0, whole.find('/'));
}

/// The tensors of a module stand together, in the order in which modules and tensors come in the step.
Table TensorModel::list() const {
  Table t;
  t.columns = {{tr("Module")}, {tr("Tensor")}, {.title = tr("Type"), .whole = true}};
  if (!links_) return t;
  const auto& tensors = links_.record()->tensors;
  std::unordered_map<std::string, std::string> owners;  // of the parameters
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].category == Category::parameter)
      owners[tensors[i].name] = tensors[i].name.substr(0, tensors[i].name.find_last_of('.'));
  std::unordered_map<std::string, size_t> order;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorRecord& r = tensors[i];
    const auto owner = owners.find(subject_of(r.name));
    const std::string module = owner != owners.end() ? owner->second
                               : r.producer          ? links_.module_of(Selection::tensor(static_cast<int64_t>(i)))
                                                     : std::string();
    std::string name = r.name;
    if (owner != owners.end())
      if (const size_t at = name.find(module + "."); at != std::string::npos) name.erase(at, module.size() + 1);
    double bytes = static_cast<double>(r.layout.numel()) * static_cast<double>(itemsize(r.dtype));
    Table::Row row;
    row.selection = Selection::tensor(static_cast<int64_t>(i), "tensor list");
    row.cells = {
        {module.empty() ? "–" : module, 0, module.empty() ? tr("Of no module") : module, Ink::none},
        {name, 0, r.value.defined() || !r.versions.empty() ? r.name : r.name + "\n" + tr("Its values were not kept"),
         ink_of(r.category)},
        {type_text(r), 0, type_text(r) + ", " + format_bytes(bytes) + (r.storage ? tr(", storage #{}", r.storage) : ""),
         Ink::none}};
    order.try_emplace(row.cells[0].text, order.size());
    t.rows.push_back(std::move(row));
  }
  std::stable_sort(t.rows.begin(), t.rows.end(),
                   [&](const auto& a, const auto& b) { return order.at(a.cells[0].text) < order.at(b.cells[0].text); });
  return t;
}

Table TensorModel::values() const {
  Table t;
  if (!has_values()) return t;
  const Tensor numbers = value();
  int64_t nc = std::min<int64_t>(cols(), 512), nr = std::min<int64_t>(rows(), 4096);
  t.columns.push_back({"", true});
  for (int64_t c = 0; c < nc; ++c) t.columns.push_back({std::to_string(c), true});
  for (int64_t r = 0; r < nr; ++r) {
    Table::Row row;
    row.cells.push_back(Table::Cell::number(static_cast<double>(r), std::to_string(r)));
    for (int64_t c = 0; c < nc; ++c) {
      double v = value_at(numbers, at(r, c));
      row.cells.push_back({format_value(v), v, format_exact(v), Ink::none});
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
