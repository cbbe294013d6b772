#include "views/model_file/run_outputs.h"

#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kOutputMargin = 12;
}  // namespace

void RunOutputs::show(std::shared_ptr<const ModelRun> run) {
  if (run == run_) return;
  const std::string before = pane_.entry() ? pane_.entry()->name : std::string();
  run_ = std::move(run);
  file_ = run_ ? run_->as_file() : nullptr;
  pane_.show(file_, -1);
  if (!file_ || file_->tensors.empty()) return changed();
  choose(file_->find_tensor(before) >= 0 ? before : file_->tensors.front().name);
}

void RunOutputs::choose(const std::string& output) {
  const int at = file_ ? file_->find_tensor(output) : -1;
  if (at < 0 || (pane_.file() == file_ && pane_.tensor() == at)) return;
  pane_.show(file_, at);
  pane_.set_stats(run_->stats[static_cast<size_t>(at)]);
  tell();
}

bool RunOutputs::wants_slice() const {
  const auto& s = pane_.slice();
  return pane_.entry() &&
         (!s || s->row_axis != pane_.row_axis() || s->col_axis != pane_.col_axis() || !(s->index == pane_.index()));
}

void RunOutputs::set_slice(const TensorPane::File& file, int output, ValueSlice slice) {
  if (file != file_ || output != pane_.tensor()) return;
  pane_.set_slice(std::move(slice));
  changed();
}

bool RunOutputs::pointer(const PointerEvent& e) {
  if (e.type != PointerEvent::Type::release || e.button != Button::left) return false;
  const Hit hit = last_.hit_at(e.x, e.y);
  if (hit.kind != TensorPane::axis_down && hit.kind != TensorPane::axis_up) return false;
  const int by = (hit.kind == TensorPane::axis_up ? 1 : -1) * (e.mods.shift ? 10 : 1);
  if (pane_.step(static_cast<int>(hit.id), by)) tell();
  return true;
}

bool RunOutputs::key(const KeyEvent& e) {
  const bool slice = e.key == "[" || e.key == "]";
  if (!pane_.entry() || (!slice && e.key != "T")) return false;
  if (slice ? pane_.next_slice(e.key == "]" ? 1 : -1) : pane_.swap_axes()) tell();
  return true;
}

void RunOutputs::draw(Scene& scene) {
  const Size size = scene.size();
  if (size.w < 4 * kOutputMargin || size.h < 4 * kOutputMargin) return;
  const Box box{kOutputMargin, kOutputMargin, size.w - 2 * kOutputMargin, size.h - 2 * kOutputMargin};
  if (!pane_.entry()) return;
  scene.clip(box);
  pane_.draw(scene, box);
  scene.unclip();
}

std::string RunOutputs::summary() const {
  return pane_.entry() ? tr("Output of the run") + pane_.summary() : tr("Output of a run: the model was not run yet");
}

}  // namespace tenon::views
