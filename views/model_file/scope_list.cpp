#include "views/model_file/scope_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/tensor_stats.h"

namespace tenon::views {

namespace {
constexpr float kListHead = 24, kListRow = 22, kIndent = 14, kLeastName = 170;
constexpr int kDeepest = 8;  // beyond it nothing is set in further

struct ListColumn {
  const char* title;
  float width;
  int rank;  ///< in which order they come as there is room
  bool number;
};
enum { kDtype, kShape, kElements, kBytes, kShare };
constexpr std::array<ListColumn, 5> kListColumns = {{{tr_later("dtype"), 74, 2, false},
                                                     {tr_later("shape"), 124, 1, false},
                                                     {tr_later("elements"), 84, 3, true},
                                                     {tr_later("bytes"), 76, 0, true},
                                                     {tr_later("share"), 96, 4, true}}};

/// How many of the columns, by their rank, stand beside a name.
int columns_in(float width) {
  float left = width - kLeastName;
  int n = 0;
  for (int rank = 0; rank < static_cast<int>(kListColumns.size()); ++rank)
    for (const ListColumn& c : kListColumns)
      if (c.rank == rank) {
        left -= c.width;
        if (left < 0) return n;
        ++n;
      }
  return n;
}
}  // namespace

void ScopeList::show(std::shared_ptr<const FileOutline> outline) {
  outline_ = std::move(outline);
  open_ = outline_->open_tensors;
  focus_ = -1;
  scroll_ = 0;
  fill();
}

void ScopeList::search(const std::string& words) {
  const std::string typed = lower(words);
  if (typed == words_) return;
  words_ = typed;
  scroll_ = 0;
  fill();
}

void ScopeList::fill() {
  rows_.clear();
  found_ = 0;
  if (!outline_) return;
  const auto& tensors = outline_->file->tensors;
  found_in_.assign(tensors.size(), true);
  found_ = static_cast<int>(tensors.size());
  if (!searches()) {
    rows_ = outline_->tensors.rows(open_);
    return;
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!holds_words(tensors[i].name, words_)) found_in_[i] = false, --found_;
  rows_ = outline_->tensors.rows_with(found_in_);
}

void ScopeList::toggle(int node) {
  if (searches() || outline_->tensors.at(node).leaf()) return;
  if (!open_.erase(node)) open_.insert(node);
  fill();
}

void ScopeList::open_all(bool open) {
  open_.clear();
  if (!outline_) return;
  const auto& nodes = outline_->tensors.nodes();
  for (size_t i = 1; open && i < nodes.size(); ++i)
    if (!nodes[i].leaf()) open_.insert(static_cast<int>(i));
  fill();
  into_sight();
}

int ScopeList::tensor() const { return focus_ > 0 ? outline_->tensors.at(focus_).item : -1; }

std::string ScopeList::row_text(int node) const {
  const ScopeTree::Node& n = outline_->tensors.at(node);
  if (n.leaf()) return outline_->file->tensors[static_cast<size_t>(n.item)].name;
  return tr("{}, {}, {}", n.name, format_tensors(static_cast<size_t>(n.items)),
            is_open(node) ? tr("unfolded") : tr("folded"));
}

void ScopeList::set_focus(int node) {
  focus_ = node;
  into_sight();
}

void ScopeList::reveal(int tensor) {
  if (!outline_) return;
  const int leaf = outline_->tensors.leaf_of(tensor);
  bool opened = false;
  for (int n = outline_->tensors.at(leaf).parent; n > ScopeTree::kRoot; n = outline_->tensors.at(n).parent)
    opened |= open_.insert(n).second;
  if (opened) fill();
  set_focus(leaf);
}

void ScopeList::into_sight() {
  const auto at = std::find(rows_.begin(), rows_.end(), focus_);
  if (at == rows_.end() || height_ <= 0) return;
  const float y = static_cast<float>(at - rows_.begin()) * kListRow, room = height_ - kListHead - kListRow;
  if (y < scroll_) scroll_ = y;
  if (y > scroll_ + room) scroll_ = y - room;
}

bool ScopeList::move(int by) {
  if (rows_.empty()) return false;
  const auto at = std::find(rows_.begin(), rows_.end(), focus_);
  const auto last = static_cast<std::ptrdiff_t>(rows_.size()) - 1;
  const auto to = at == rows_.end() ? 0 : std::clamp<std::ptrdiff_t>(at - rows_.begin() + by, 0, last);
  set_focus(rows_[static_cast<size_t>(to)]);
  return true;
}

void ScopeList::draw_row(Scene& scene, int node, Box b, float name_w) const {
  const ScopeTree& tree = outline_->tensors;
  const ScopeTree::Node& n = tree.at(node);
  if (node == focus_) scene.rect(b, Ink::accent, 0.22f);
  const float indent = 8 + kIndent * static_cast<float>(std::min(n.depth, kDeepest));
  const formats::ModelFile::Entry* e = n.leaf() ? &outline_->file->tensors[static_cast<size_t>(n.item)] : nullptr;
  std::string name = n.name;
  if (n.repeats) name = fmt::format("{}  ×{}", n.name, n.repeats);
  const std::string tip =
      e ? e->name + (e->problem.empty() ? "" : "\n" + tr("its values cannot be shown: it {}", e->problem))
        : (n.repeats ? tr("{} {}, all built alike", tree.path(n.parent), name) : tree.path(node)) + "\n" +
              tr("{}, {} elements", format_tensors(static_cast<size_t>(n.items)), format_grouped(n.elements));
  scene.target(b, {row, node}, Cursor::hand, tip);
  if (!e) {
    scene.text({b.x + indent, b.y, kIndent, b.h}, is_open(node) ? "▾" : "▸", Ink::secondary, Face::small);
    scene.target({b.x + indent - 4, b.y, kIndent + 6, b.h}, {fold, node}, Cursor::hand,
                 is_open(node) ? tr("Fold it (Left)") : tr("Unfold it (Right)"));
  }
  const float x = b.x + indent + kIndent;
  scene.text({x, b.y, b.x + name_w - x - 4, b.h}, name, Ink::text, Face::body);
  const int columns = columns_in(b.w);
  float at = b.x + name_w;
  const double all = std::max(1.0, static_cast<double>(outline_->file->bytes()));
  for (size_t i = 0; i < kListColumns.size(); ++i) {
    const ListColumn& c = kListColumns[i];
    if (c.rank >= columns) continue;
    const Box cell{at, b.y, c.width - 10, b.h};
    at += c.width;
    if (i == kShare) {
      const double share = static_cast<double>(n.bytes) / all;
      const float bar = cell.w - 44;
      scene.rect({cell.x, b.y + b.h / 2 - 3, bar, 6}, Ink::raised, 1, 2);
      if (n.bytes)
        scene.rect({cell.x, b.y + b.h / 2 - 3, std::max(1.f, bar * static_cast<float>(share)), 6},
                   Ink::memory_parameter, 1, 2);
      scene.text({cell.x + bar + 2, b.y, 42, b.h}, format_percent(share), Ink::secondary, Face::mono_small,
                 Align::right);
      continue;
    }
    std::string text;
    if (i == kDtype && e) text = e->dtype;
    if (i == kShape)
      text = e ? fmt::format("[{}]", fmt::join(e->shape, ", ")) : format_tensors(static_cast<size_t>(n.items));
    if (i == kElements) text = format_count(static_cast<double>(n.elements));
    if (i == kBytes) text = format_bytes(static_cast<double>(n.bytes));
    const bool problem = i == kDtype && e && !e->problem.empty();
    scene.text(cell, text,
               problem                          ? Ink::warning_text
               : e && (c.number || i == kShape) ? Ink::text
                                                : Ink::secondary,
               c.number || e ? Face::mono_small : Face::small, c.number ? Align::right : Align::left);
  }
}

void ScopeList::draw(Scene& scene, Box b) {
  height_ = b.h;
  if (!outline_ || b.h < kListHead + kListRow) return;
  const float w = b.w - 8;  // the rest is the scroll bar's
  const int columns = columns_in(w);
  float name_w = w;
  for (const ListColumn& c : kListColumns)
    if (c.rank < columns) name_w -= c.width;
  scene.text({b.x + 8 + kIndent, b.y, name_w - 30, kListHead}, tr("tensor"), Ink::secondary, Face::small);
  float x = b.x + name_w;
  for (const ListColumn& c : kListColumns) {
    if (c.rank >= columns) continue;
    scene.text({x, b.y, c.width - 10, kListHead}, tr(c.title), Ink::secondary, Face::small,
               c.number ? Align::right : Align::left);
    x += c.width;
  }
  scene.line({b.x, b.y + kListHead}, {b.right(), b.y + kListHead}, Ink::line);
  const Box inside{b.x, b.y + kListHead, b.w, b.h - kListHead};
  const float all = static_cast<float>(rows_.size()) * kListRow;
  scroll_ = std::clamp(scroll_, 0.f, std::max(0.f, all - inside.h));
  scene.clip(inside);
  const int first = static_cast<int>(scroll_ / kListRow),
            last = std::min(static_cast<int>(rows_.size()), first + static_cast<int>(inside.h / kListRow) + 2);
  for (int i = first; i < last; ++i)
    draw_row(scene, rows_[static_cast<size_t>(i)],
             {b.x, inside.y + static_cast<float>(i) * kListRow - scroll_, w, kListRow}, name_w);
  if (all > inside.h) {
    const float length = std::max(24.f, inside.h * inside.h / all), way = inside.h - length;
    scene.rect({b.right() - 6, inside.y + way * scroll_ / (all - inside.h), 4, length}, Ink::line, 1, 2);
  }
  scene.unclip();
  if (rows_.empty())
    scene.text({b.x + 8, inside.y + 8, b.w - 16, 20},
               searches() ? tr("No tensor has these letters in its name.") : tr("The file holds no tensors."),
               Ink::secondary);
}

}  // namespace tenon::views
