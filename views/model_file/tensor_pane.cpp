#include "views/model_file/tensor_pane.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/tensor_picture.h"

namespace tenon::views {

namespace {
constexpr float kTitle = 22, kLine = 18, kAxisChip = 24, kLeastSlice = 90;
}  // namespace

void TensorPane::show(File file, int tensor) {
  if (file == file_ && tensor == tensor_) return;
  file_ = std::move(file);
  tensor_ = tensor;
  slice_.reset();
  stats_.reset();
  stopped_.clear();
  share_ = -1;
  row_axis_ = col_axis_ = -1;
  index_ = {};
  const auto* e = entry();
  if (!e || e->shape.size() > kMaxDims) return;
  const Shape size(e->shape);
  std::tie(row_axis_, col_axis_) = first_slice(size);
  index_ = Dims::filled(size.n, 0);
}

const formats::ModelFile::Entry* TensorPane::entry() const {
  return file_ && tensor_ >= 0 ? &file_->tensors[static_cast<size_t>(tensor_)] : nullptr;
}

bool TensorPane::step(int axis, int64_t by) {
  if (!entry() || axis < 0 || axis >= index_.n || axis == row_axis_ || axis == col_axis_) return false;
  const int64_t last = std::max<int64_t>(entry()->shape[static_cast<size_t>(axis)] - 1, 0),
                to = std::clamp<int64_t>(index_[axis] + by, 0, last);
  if (to == index_[axis]) return false;
  index_[axis] = to;
  return true;
}

bool TensorPane::next_slice(int direction) {
  for (int a = index_.n - 1; a >= 0; --a) {
    if (a == row_axis_ || a == col_axis_) continue;
    if (step(a, direction)) return true;
    index_[a] = direction > 0 ? 0 : std::max<int64_t>(entry()->shape[static_cast<size_t>(a)] - 1, 0);
  }
  return index_.n > 2;  // round to the other end
}

bool TensorPane::swap_axes() {
  if (row_axis_ < 0) return false;
  std::swap(row_axis_, col_axis_);
  return true;
}

void TensorPane::set_stats(TensorStats stats) {
  stats_ = std::move(stats);
  stopped_.clear();
}

void TensorPane::stop(std::string why) {
  if (!stats_) stopped_ = std::move(why);
}

/// The axes along which one goes from slice to slice; how much height they took.
float TensorPane::draw_axes(Scene& scene, Box b) const {
  float x = b.x, y = b.y;
  bool any = false;
  for (int a = 0; a < index_.n; ++a) {
    if (a == row_axis_ || a == col_axis_) continue;
    const int64_t size = entry()->shape[static_cast<size_t>(a)];
    const std::string name = tr("axis {}", a), value = fmt::format("{} / {}", index_[a], size);
    const float tw = text_width(name, Face::small) + 6,
                vw = text_width(fmt::format("{} / {}", size, size), Face::mono_small) + 8, w = tw + vw + 52;
    if (x > b.x && x + w > b.right()) x = b.x, y += kAxisChip + 4;
    if (y + kAxisChip > b.bottom() || w > b.w) break;
    scene.rect({x, y, w, kAxisChip}, Ink::raised, 1, 4);
    scene.text({x + 8, y, tw, kAxisChip}, name, Ink::secondary, Face::small);
    const Box down{x + 8 + tw, y, 20, kAxisChip}, up{x + w - 22, y, 20, kAxisChip};
    scene.text(down, "‹", index_[a] > 0 ? Ink::text : Ink::secondary, Face::body, Align::center);
    scene.text({down.right(), y, vw, kAxisChip}, value, Ink::text, Face::mono_small, Align::center);
    scene.text(up, "›", index_[a] + 1 < size ? Ink::text : Ink::secondary, Face::body, Align::center);
    scene.target(down, {axis_down, a}, Cursor::hand, tr("The slice before this one ([; Shift: 10 back)"));
    scene.target(up, {axis_up, a}, Cursor::hand, tr("The next slice (]; Shift: 10 on)"));
    x += w + 8;
    any = true;
  }
  return any ? y + kAxisChip + 8 - b.y : 0;
}

float TensorPane::draw_slice(Scene& scene, Box b) const {
  if (!slice_ || slice_->cells.empty() || b.h < 60) return 0;
  const ValueSlice& s = *slice_;
  const float below = 16 + (s.blocks().empty() ? 0 : 16) + 4;
  const float side = std::clamp(
      std::floor(std::min(b.w / static_cast<float>(s.cell_cols), (b.h - below) / static_cast<float>(s.cell_rows))), 1.f,
      28.f);
  const float gap = side > 8 ? 1.f : 0.f;
  scene.rect({b.x, b.y, static_cast<float>(s.cell_cols) * side, static_cast<float>(s.cell_rows) * side}, Ink::base);
  for (int r = 0; r < s.cell_rows; ++r)
    for (int c = 0; c < s.cell_cols; ++c) {
      if (s.row_axis < 0 && (int64_t{r} * s.cell_cols + c) * s.block_cols >= s.cols) break;
      const double v = s.cells[static_cast<size_t>(r * s.cell_cols + c)];
      const Box box{b.x + static_cast<float>(c) * side, b.y + static_cast<float>(r) * side, side - gap, side - gap};
      tint_value(scene, box, v, s.scale, 1);
      scene.target({box.x, box.y, side, side}, {}, Cursor::arrow,
                   s.place(r, c) + "  " + (std::isnan(v) ? tr("not finite") : format_exact(v)));
    }
  float y = b.y + static_cast<float>(s.cell_rows) * side + 4;
  draw_tint_legend(scene, {b.x, y}, s.scale);
  y += 16;
  if (const std::string blocks = s.blocks(); !blocks.empty()) {
    scene.text({b.x, y, b.w, 16}, blocks, Ink::secondary, Face::small);
    y += 16;
  }
  return y + 10 - b.y;
}

void TensorPane::draw_stats(Scene& scene, Box b) const {
  if (b.h < 40) return;
  scene.text({b.x, b.y, b.w, 20}, tr("Statistics"), Ink::secondary, Face::small);
  if (stats_) return draw_statistics(scene, {b.x, b.y + 22, b.w, b.h - 22}, *stats_);
  auto button = [&](float y, const std::string& text, Hit hit, const std::string& tip) {
    const Box box{b.x, y, text_width(text, Face::small) + 20, kAxisChip};
    if (box.bottom() > b.bottom()) return;
    scene.rect(box, Ink::raised, 1, 4);
    scene.text(box, text, Ink::text, Face::small, Align::center);
    scene.target(box, hit, Cursor::hand, tip);
  };
  if (!stopped_.empty()) {
    scene.text({b.x, b.y + 22, b.w, 20}, stopped_, Ink::secondary, Face::small);
    return button(b.y + 46, tr("Read them"), {read_again, 0}, tr("Every value is read"));
  }
  const std::string far = share_ >= 0 ? tr("reading, {}", format_percent(share_)) : tr("reading…");
  scene.text({b.x, b.y + 22, b.w, 20}, far, Ink::secondary, Face::small);
  const Box bar{b.x, b.y + 44, b.w, 4};
  scene.rect(bar, Ink::raised, 1, 2);
  if (share_ > 0)
    scene.rect({bar.x, bar.y, bar.w * static_cast<float>(std::min(share_, 1.0)), bar.h}, Ink::accent, 1, 2);
  button(b.y + 56, tr("Cancel"), {cancel, 0}, tr("Stop reading"));
}

/// From top to bottom: what it is, the slice, the statistics. Where there is little room the slice goes first.
void TensorPane::draw(Scene& scene, Box b) const {
  const auto* e = entry();
  if (!e) {
    scene.text({b.x, b.y, b.w, 20}, tr("Choose a tensor: its values will be here."), Ink::secondary, Face::small);
    return;
  }
  scene.text({b.x, b.y, b.w, kTitle}, e->name, Ink::text, Face::title);
  scene.target({b.x, b.y, b.w, kTitle}, {}, Cursor::arrow, e->name);
  scene.text(
      {b.x, b.y + kTitle, b.w, kLine},
      fmt::format("{} · [{}] · {}", e->dtype, fmt::join(e->shape, ", "), format_bytes(static_cast<double>(e->bytes))),
      Ink::secondary, Face::mono_small);
  float y = b.y + kTitle + kLine + 8;
  if (!e->problem.empty()) {
    scene.text({b.x, y, b.w, 20}, tr("Its values cannot be shown:"), Ink::secondary, Face::small);
    scene.text({b.x, y + 20, b.w, 20}, tr("it {}", e->problem), Ink::text, Face::small);
    return;
  }
  const float room = b.bottom() - y, stats = 22 + statistics_height(b.w, room - kLeastSlice - 60);
  if (room - stats >= kLeastSlice) {
    if (index_.n > 2 && room - stats >= kLeastSlice + 30) y += draw_axes(scene, {b.x, y, b.w, room - stats - 60});
    y += draw_slice(scene, {b.x, y, b.w, std::min(b.bottom() - y - stats, b.w)});
  }
  draw_stats(scene, {b.x, y, b.w, b.bottom() - y});
}

std::string TensorPane::summary() const {
  const auto* e = entry();
  if (!e) return {};
  std::string out = tr("; chosen: {}", fmt::format("{}, {} [{}]", e->name, e->dtype, fmt::join(e->shape, ", ")));
  if (index_.n > 2) out += tr(", slice {}", to_string(index_));
  if (stats_)
    out += tr(", {} to {}, mean {}", format_value(stats_->min), format_value(stats_->max), format_value(stats_->mean));
  return out;
}

}  // namespace tenon::views
