// The picture of a tensor; state and intents are in tensor_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"
#include "views/shared/tensor_picture.h"
#include "views/tensor/tensor_model.h"

namespace tenon::views {

using tracing::TensorRecord;

namespace {
constexpr float kPad = 12, kHead = 46, kChip = 24, kStats = 240, kStorage = 118, kLegend = 22;
constexpr float kCellW = 68, kCellH = 20, kIndexW = 48, kStripCell = 58;
}  // namespace

void TensorModel::draw_head(Scene& scene, Box b) {
  const TensorRecord& r = *record();
  float w = std::min(text_width(r.name, Face::title) + 8, b.w - 20);
  scene.rect({b.x, b.y + 7, 8, 8}, ink_of(r.category), 1, 4);
  scene.text({b.x + 14, b.y, w, 22}, r.name, Ink::text, Face::title);
  std::string kind = word(r.category);
  if (r.producer && r.producer <= links_.record()->ops.size())
    kind += tr(" · written by {}", op_text(links_.record()->ops[r.producer - 1]));
  if (changes())
    kind += as_of() ? tr(" · as of {}", op_text(links_.record()->ops[as_of() - 1])) : tr(" · written over later");
  if (b.w - w - 30 > 60) scene.text({b.x + 22 + w, b.y + 1, b.w - w - 30, 22}, kind, Ink::secondary, Face::small);
  const Layout& l = r.layout;
  std::string memory = l.numel() == 0         ? tr("empty")
                       : l.is_contiguous()    ? tr("contiguous")
                       : l.is_channels_last() ? tr("channels last")
                       : l.may_overlap()      ? tr("overlapping")
                       : l.is_dense()         ? tr("dense, permuted")
                                              : tr("strided");
  std::string line = tr("{} · size {} · stride {} · offset {} · {}", name(r.dtype), to_string(l.size),
                        to_string(l.stride), l.offset, memory);
  if (r.storage) line += tr(" · storage #{} version {}", r.storage, r.version);
  scene.text({b.x, b.y + 23, b.w, 18}, line, Ink::secondary, Face::mono_small);
}

/// The chips of the axes, in as many rows as they need, as far as there is room for rows.
float TensorModel::draw_axes(Scene& scene, Box b) {
  const Layout& l = record()->layout;
  float x = b.x, y = b.y + 4;
  for (int a = 0; a < l.ndim(); ++a) {
    const bool row = a == row_axis_, col = a == col_axis_, shown = row || col;
    const std::string text = !shown ? tr("axis {}", a)
                             : row  ? tr("axis {}  {} ↓ rows", a, l.size[a])
                                    : tr("axis {}  {} → columns", a, l.size[a]);
    const std::string value = fmt::format("{} / {}", index_[a], l.size[a]);
    const float tw = text_width(text, Face::small) + (shown ? 16 : 4),
                vw = text_width(fmt::format("{} / {}", l.size[a], l.size[a]), Face::mono_small) + 6;
    const float w = shown ? tw : tw + vw + 58;
    if (x > b.x && x + w > b.right()) {
      if (y + 2 * kChip + 4 > b.bottom()) return y + kChip + 6 - b.y;
      x = b.x;
      y += kChip + 4;
    }
    const Box chip{x, y, std::min(w, b.w), kChip};
    x += w + 8;
    if (shown) {
      scene.rect(chip, Ink::accent, 0.18f, 4);
      scene.outline(chip, Ink::accent, 1, 4);
      scene.text({chip.x + 8, chip.y, chip.w - 10, kChip}, text, Ink::text, Face::small);
      scene.target(chip, {axis, a}, Cursor::hand, tr("Swap rows and columns"));
      continue;
    }
    scene.rect(chip, Ink::raised, 1, 4);
    scene.text({chip.x + 8, chip.y, tw, kChip}, text, Ink::secondary, Face::small);
    scene.target(chip, {axis, a}, Cursor::hand,
                 tr("Click: show this axis as rows. Shift: as columns. Wheel: step through it"));
    Box down{chip.x + 8 + tw, chip.y, 20, kChip}, up{chip.x + w - 22, chip.y, 20, kChip};
    scene.text(down, "‹", index_[a] > 0 ? Ink::text : Ink::secondary, Face::body, Align::center);
    scene.text({down.right(), chip.y, vw, kChip}, value, Ink::text, Face::mono_small, Align::center);
    scene.text(up, "›", index_[a] + 1 < l.size[a] ? Ink::text : Ink::secondary, Face::body, Align::center);
    scene.target(down, {axis_down, a}, Cursor::hand, tr("Back (Shift: 10)"));
    scene.target(up, {axis_up, a}, Cursor::hand, tr("On (Shift: 10)"));
  }
  if (has_values() && b.right() - x > 120) {
    double v = value_at(value(), focus());
    std::string text = to_string(focus()) + " = " + format_value(v);
    scene.target({x, y, b.right() - x, kChip}, {}, Cursor::arrow, format_exact(v));
    scene.text({x, y, b.right() - x, kChip}, text, std::isfinite(v) ? Ink::text : Ink::bad_text, Face::mono_small,
               Align::right);
  }
  return y + kChip + 6 - b.y;
}

void TensorModel::draw_cells(Scene& scene, Box b) {
  const Tensor t = value();
  double scale = color_scale();
  float grid_x = b.x + kIndexW;
  visible_cols_ = std::clamp<int64_t>(static_cast<int64_t>((b.w - kIndexW) / kCellW), 1, std::max<int64_t>(cols(), 1));
  visible_rows_ = std::clamp<int64_t>(static_cast<int64_t>((b.h - kCellH) / kCellH), 1, std::max<int64_t>(rows(), 1));
  top_ = std::clamp<int64_t>(top_, 0, rows() - visible_rows_);
  left_ = std::clamp<int64_t>(left_, 0, cols() - visible_cols_);
  for (int64_t c = 0; c < visible_cols_; ++c) {
    bool on = left_ + c == focus_col_;
    scene.text({grid_x + static_cast<float>(c) * kCellW, b.y, kCellW - 6, kCellH}, std::to_string(left_ + c),
               on ? Ink::text : Ink::secondary, Face::mono_small, Align::right);
  }
  for (int64_t r = 0; r < visible_rows_; ++r) {
    float y = b.y + kCellH + static_cast<float>(r) * kCellH;
    bool on = top_ + r == focus_row_;
    scene.text({b.x, y, kIndexW - 8, kCellH}, std::to_string(top_ + r), on ? Ink::text : Ink::secondary,
               Face::mono_small, Align::right);
    for (int64_t c = 0; c < visible_cols_; ++c) {
      Box box{grid_x + static_cast<float>(c) * kCellW, y, kCellW - 1, kCellH - 1};
      double v = value_at(t, at(top_ + r, left_ + c));
      tint_value(scene, box, v, scale, heat_ ? 1 : 0.5f);
      scene.text({box.x + 2, y, box.w - 7, kCellH - 1}, format_value(v),
                 std::isfinite(v) ? Ink::text : Ink::dark_on_fill, Face::mono_small, Align::right);
      scene.target(box, {cell, (top_ + r) * cols() + left_ + c}, Cursor::arrow,
                   to_string(at(top_ + r, left_ + c)) + "  " + format_exact(v));
    }
  }
  float fx = grid_x + static_cast<float>(focus_col_ - left_) * kCellW,
        fy = b.y + kCellH + static_cast<float>(focus_row_ - top_) * kCellH;
  if (focus_row_ >= top_ && focus_row_ < top_ + visible_rows_ && focus_col_ >= left_ &&
      focus_col_ < left_ + visible_cols_)
    scene.outline({fx, fy, kCellW - 1, kCellH - 1}, Ink::accent, 2, 2);
}

void TensorModel::draw_heat(Scene& scene, Box b) {
  const Tensor t = value();
  b.h -= kLegend;
  float size =
      std::clamp(std::floor(std::min(b.w / static_cast<float>(cols()), b.h / static_cast<float>(rows()))), 4.f, 36.f);
  visible_cols_ = std::clamp<int64_t>(static_cast<int64_t>(b.w / size), 1, cols());
  visible_rows_ = std::clamp<int64_t>(static_cast<int64_t>(b.h / size), 1, rows());
  while (visible_cols_ * visible_rows_ > 6000 && size < 22) {  // budget of a frame
    size += 1;
    visible_cols_ = std::clamp<int64_t>(static_cast<int64_t>(b.w / size), 1, cols());
    visible_rows_ = std::clamp<int64_t>(static_cast<int64_t>(b.h / size), 1, rows());
  }
  top_ = std::clamp<int64_t>(top_, 0, rows() - visible_rows_);
  left_ = std::clamp<int64_t>(left_, 0, cols() - visible_cols_);
  float gap = size > 8 ? 1.f : 0.f;
  // Full colour is the largest value in sight: a slice is often far quieter than the tensor.
  double scale = 0;
  for (int64_t r = 0; r < visible_rows_; ++r)
    for (int64_t c = 0; c < visible_cols_; ++c)
      if (double v = std::fabs(value_at(t, at(top_ + r, left_ + c))); std::isfinite(v)) scale = std::max(scale, v);
  float below = b.y + static_cast<float>(visible_rows_) * size + 6;
  draw_tint_legend(scene, {b.x, below}, scale);
  scene.rect({b.x, b.y, static_cast<float>(visible_cols_) * size, static_cast<float>(visible_rows_) * size}, Ink::base);
  for (int64_t r = 0; r < visible_rows_; ++r)
    for (int64_t c = 0; c < visible_cols_; ++c) {
      Box box{b.x + static_cast<float>(c) * size, b.y + static_cast<float>(r) * size, size - gap, size - gap};
      double v = value_at(t, at(top_ + r, left_ + c));
      tint_value(scene, box, v, scale, heat_ ? 1 : 0.5f);
      scene.target(box, {cell, (top_ + r) * cols() + left_ + c}, Cursor::arrow,
                   to_string(at(top_ + r, left_ + c)) + "  " + format_exact(v));
    }
  if (focus_row_ >= top_ && focus_row_ < top_ + visible_rows_ && focus_col_ >= left_ &&
      focus_col_ < left_ + visible_cols_)
    scene.outline({b.x + static_cast<float>(focus_col_ - left_) * size - 1,
                   b.y + static_cast<float>(focus_row_ - top_) * size - 1, size + 1, size + 1},
                  Ink::text, 2, 1);
}

void TensorModel::draw_stats(Scene& scene, Box b) {
  scene.line({b.x - 12, b.y}, {b.x - 12, b.bottom()}, Ink::line);
  scene.text({b.x, b.y, b.w, 20}, tr("Statistics"), Ink::secondary, Face::small);
  if (!has_values()) return;
  if (!stats_) {
    scene.text({b.x, b.y + 22, b.w, 20}, tr("counting…"), Ink::secondary, Face::small);
    return;
  }
  draw_statistics(scene, {b.x, b.y + 22, b.w, b.h - 22}, *stats_);
}

void TensorModel::draw_overview(Scene& scene, Box bar, int64_t elements, int64_t window_a, int64_t window_b) {
  auto x = [&](int64_t p) {
    return bar.x +
           static_cast<float>(static_cast<double>(p) / static_cast<double>(std::max<int64_t>(elements, 1))) * bar.w;
  };
  scene.rect(bar, Ink::raised, 1, 2);
  int64_t lo, hi;
  record()->layout.extent(lo, hi);
  if (hi >= lo)
    scene.rect({x(lo), bar.y, std::max(x(hi + 1) - x(lo), 2.f), bar.h}, ink_of(record()->category), 0.8f, 2);
  int row = 0;
  for (int i : links_.aliases_of(tensor_)) {
    const TensorRecord& a = links_.record()->tensors[i];
    a.layout.extent(lo, hi);
    if (hi < lo || row >= 2) continue;
    Box box{x(lo), bar.bottom() + 2 + static_cast<float>(row) * 5, std::max(x(hi + 1) - x(lo), 3.f), 4};
    scene.rect(box, Ink::secondary, 1, 2);
    scene.target({box.x, box.y - 1, box.w, 6}, {alias, i}, Cursor::hand,
                 tr("Shares the memory: {}\n{} stride {}", a.name, type_text(a), to_string(a.layout.stride)));
    ++row;
  }
  scene.outline({x(window_a) - 1, bar.y - 2, std::max(x(window_b) - x(window_a), 2.f) + 2, bar.h + 4}, Ink::text, 1, 2);
}

void TensorModel::draw_storage(Scene& scene, Box b) {
  const TensorRecord& r = *record();
  int64_t lo, hi;
  r.layout.extent(lo, hi);
  int64_t elements = r.value.defined() && r.value.storage()
                         ? static_cast<int64_t>(r.value.storage()->bytes / itemsize(r.dtype))
                         : hi + 1;
  scene.line({b.x, b.y}, {b.right(), b.y}, Ink::line);
  size_t aliases = links_.aliases_of(tensor_).size();
  const std::string count = format_grouped(elements),
                    bytes = format_bytes(static_cast<double>(elements) * static_cast<double>(itemsize(r.dtype)));
  std::string title = r.storage ? tr("Storage #{} · {} elements · {}", r.storage, count, bytes)
                                : tr("Storage · {} elements · {}", count, bytes);
  if (aliases)
    title += aliases == 1 ? tr(" · 1 other tensor looks here") : tr(" · {} other tensors look here", aliases);
  scene.text({b.x, b.y + 4, b.w, 18}, title, Ink::secondary, Face::small);
  int cells = std::max(1, static_cast<int>(b.w / kStripCell));
  int64_t p = focus_position();
  int64_t first = std::clamp<int64_t>(p - cells / 2, 0, std::max<int64_t>(elements - cells, 0));
  int64_t end = std::min<int64_t>(first + cells, elements);
  draw_overview(scene, {b.x, b.y + 28, b.w, 8}, elements, first, end);
  index_slice();
  double scale = color_scale();
  for (int64_t q = first; q < end; ++q) {
    Box box{b.x + static_cast<float>(q - first) * kStripCell, b.y + 70, kStripCell - 2, 26};
    auto in = slice_.find(q);
    bool inside = q >= lo && q <= hi;
    scene.text({box.x, box.y - 17, box.w, 16}, std::to_string(q), q == p ? Ink::text : Ink::secondary, Face::mono_small,
               Align::center);
    scene.rect(box, Ink::raised, in != slice_.end() ? 1 : 0.5f, 2);
    double v = has_values() ? storage_value(r.value, q) : 0;
    if (has_values() && in != slice_.end())
      tint_value(scene, {box.x + 1, box.y + 1, box.w - 2, box.h - 2}, v, scale * (heat_ ? 2 : 1), heat_ ? 1 : 0.5f);
    if (!inside) scene.hatch(box, Ink::secondary, 0.35f);
    if (has_values())
      scene.text({box.x + 2, box.y, box.w - 4, box.h}, format_value(v), in != slice_.end() ? Ink::text : Ink::secondary,
                 Face::mono_small, Align::center);
    if (in != slice_.end()) {
      int64_t rr = in->second.first / cols(), cc = in->second.first % cols();
      std::string where = in->second.second > 1 ? tr("{} cells", in->second.second)
                          : row_axis_ >= 0      ? fmt::format("{},{}", rr, cc)
                                                : std::to_string(cc);
      scene.text({box.x, box.bottom() + 1, box.w, 15}, where, Ink::secondary, Face::mono_small, Align::center);
    }
    if (q == p) scene.outline(box, Ink::accent, 2, 2);
    std::string tip = in == slice_.end() ? inside ? tr("In another slice of the tensor") : tr("Not part of this tensor")
                                         : to_string(at(in->second.first / cols(), in->second.first % cols()));
    scene.target(box, {storage_cell, q}, in != slice_.end() ? Cursor::hand : Cursor::arrow,
                 tr("element {} of the storage, byte {}\n{}", q, q * static_cast<int64_t>(itemsize(r.dtype)), tip));
  }
}

/// From top to bottom: what the tensor is, the axes, the cells, the storage. Where the canvas is low the storage goes
/// first, then the axes: three rows of cells are what the view is for.
void TensorModel::draw(Scene& scene) {
  if (!record()) return;
  constexpr float kLeastCells = 4 * kCellH, kGap = 6;
  const Size size = scene.size();
  const float w = size.w - 2 * kPad;
  if (w < kIndexW + kCellW || size.h < kHead) return;
  draw_head(scene, {kPad, 8, w, kHead});
  float top = 8 + kHead;
  const float least = kLeastCells + (heat_ ? kLegend : 0) + 2 * kGap;
  const bool storage = record()->layout.numel() > 0 && size.h - top - (kChip + 10) - kStorage >= least;
  float bottom = storage ? size.h - kStorage - 8 : size.h - kGap;
  if (bottom - top - (kChip + 10) >= kCellH + kCellH) top += draw_axes(scene, {kPad, top, w, bottom - top - least});
  top += kGap;
  const bool side = w > 520;
  Box grid{kPad, top, side ? w - kStats - 24 : w, bottom - top - kGap};
  if (!has_values()) {
    const char* why = record()->layout.numel() == 0
                          ? tr_later("The tensor has no elements.")
                          : tr_later("Its values were overwritten later in the step and were not kept.");
    if (grid.h >= 20) scene.text({grid.x, grid.y, grid.w, 20}, tr(why), Ink::secondary);
  } else if (grid.h >= 2 * kCellH) {
    scene.clip(grid);
    if (heat_)
      draw_heat(scene, grid);
    else
      draw_cells(scene, grid);
    scene.unclip();
  }
  if (side && grid.h >= 40) draw_stats(scene, {size.w - kPad - kStats, top, kStats, grid.h});
  if (storage) draw_storage(scene, {kPad, size.h - kStorage - 2, w, kStorage});
}

}  // namespace tenon::views
