#include "engine/train/step_edits.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"

namespace tenon {
namespace {

const nn::Named* find_named(const std::vector<nn::Named>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const nn::Named& n) { return n.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

StepEdits::StepEdits(std::vector<TensorEdit> edits, const std::vector<nn::Named>& tensors,
                     const std::vector<nn::Named>& state)
    : edits_(std::move(edits)),
      made_(edits_.size()),
      tensors_(tensors),
      state_(state),
      outer_(current_observer()),
      scope_(*this) {
  for (size_t i = 0; i < edits_.size(); ++i)
    if (edits_[i].seq == 0 && edits_[i].target != TensorEdit::Target::gradient)
      apply(i, named(edits_[i]), edits_[i].name);
}

Tensor StepEdits::named(const TensorEdit& edit) const {
  const nn::Named* found =
      find_named(edit.target == TensorEdit::Target::state ? state_ : tensors_, edit.name);  // checked by the session
  if (!found) throw Error(fmt::format("edits: there is no tensor {}", edit.name));
  return edit.target == TensorEdit::Target::gradient ? grad_of(found->tensor) : found->tensor;
}

void StepEdits::apply(size_t at, const Tensor& to, const std::string& what) {
  const TensorEdit& edit = edits_[at];
  try {
    if (!to) throw Error(fmt::format("{} is not there at that moment", what));
    const bool graph = t_state.origin.phase == Phase::forward || t_state.origin.phase == Phase::backward;
    const uint32_t version = to.version();
    apply_edit(edit, to);
    // To backward it is what the op gave, not a write behind its back.
    if (graph && to.storage()) to.storage()->version = version;
  } catch (const Error& e) {
    throw e.in(fmt::format("edit \"{}\"", edit_text(edit)));
  }
  made_[at] = true;
}

void StepEdits::before(const Call& call) {
  open_.push_back(t_state.origin.seq);
  if (outer_) outer_->before(call);
}

void StepEdits::after(const Call& call, int64_t start_ns, int64_t end_ns) {
  const uint32_t seq = open_.back();
  open_.pop_back();
  for (size_t i = 0; i < edits_.size(); ++i) {
    const TensorEdit& e = edits_[i];
    if (e.seq != seq || made_[i]) continue;
    if (e.target != TensorEdit::Target::output)
      apply(i, named(e), e.target == TensorEdit::Target::gradient ? "the gradient of " + e.name : e.name);
    else
      apply(i, e.output < call.outputs ? call.out[e.output] : Tensor(),
            fmt::format("output {} of {}", e.output, call.op->info.name));
  }
  if (outer_) outer_->after(call, start_ns, end_ns);
}

void StepEdits::backward_node(const Node& node) {
  if (outer_) outer_->backward_node(node);
}

void StepEdits::on_backward() {
  for (size_t i = 0; i < edits_.size(); ++i) {
    const TensorEdit& e = edits_[i];
    if (made_[i]) continue;
    if (e.seq == 0) apply(i, named(e), "the gradient of " + e.name);
  }
}

void StepEdits::on_end() const {
  for (size_t i = 0; i < edits_.size(); ++i)
    if (!made_[i])
      throw Error(fmt::format("edit \"{}\": step {} has no op #{}; it has {}", edit_text(edits_[i]), edits_[i].step,
                              edits_[i].seq, t_state.origin.seq),
                  "tenon walk PROJECT RUN --step N lists the ops of a step");
}

}  // namespace tenon
