#include "views/tensor/edit_draft.h"

#include <algorithm>

#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using tracing::OpRecord;
using tracing::TensorRecord;

namespace {

constexpr std::string_view kGradientOf = "grad of ";

/// The last op up to `seq` that gave the tensor, with the number of the output; null: none did.
const OpRecord* giver_of(const tracing::StepRecord& r, int tensor, uint32_t seq, int& output) {
  const OpRecord* last = nullptr;
  for (const OpRecord& op : r.ops) {
    const auto at = std::find(op.outputs.begin(), op.outputs.end(), tensor);
    if (at == op.outputs.end() || (seq > 0 && op.seq > seq && last)) continue;
    last = &op;
    output = static_cast<int>(at - op.outputs.begin());
    if (seq == 0) break;
  }
  return last;
}

}  // namespace

EditDraft::EditDraft(const tracing::StepRecord& r, int tensor, uint32_t seq, const Dims& element, double value)
    : run_(r.run), element_(element) {
  const TensorRecord& t = r.tensors.at(static_cast<size_t>(tensor));
  tensor_ = t.name;
  edit_.step = r.step;
  edit_.element = element;
  edit_.a = value;
  const auto named = [&](TensorEdit::Target target, std::string name, const std::string& otherwise) {
    edit_.target = target;
    edit_.name = std::move(name);
    edit_.seq = seq;
    when_ = seq ? tr("when {} has run", op_text(r.ops[seq - 1])) : otherwise;
  };
  if (r.sample >= 0) {
    refusal_ = tr("This is a sample of the test split, and no step of the run.");
  } else if (t.name.starts_with(kGradientOf)) {
    uint32_t complete = 0;
    for (const OpRecord& op : r.ops)
      if (op.origin.phase == Phase::backward) complete = op.seq;
    if (seq < complete) seq = 0;  // it is not whole before backward is done
    named(TensorEdit::Target::gradient, t.name.substr(kGradientOf.size()), tr("when backward is done"));
  } else if (t.producer == 0 && (t.category == Category::parameter || t.category == Category::buffer)) {
    named(TensorEdit::Target::weight, t.name, tr("before the first op"));
  } else if (t.producer == 0 && t.category == Category::optimizer) {
    named(TensorEdit::Target::state, t.name, tr("before the first op"));
  } else if (const OpRecord* op = giver_of(r, tensor, seq, edit_.output)) {
    edit_.seq = op->seq;
    when_ = tr("when {} has run", op_text(*op));
  } else {
    refusal_ = tr("No op gave this tensor, and it is no parameter: leave samples out to change the data.");
  }
}

void EditDraft::set_whole(bool whole) {
  if (whole)
    edit_.element.reset();
  else
    edit_.element = element_;
}

void EditDraft::set_bounds(double low, double high) {
  edit_.a = low;
  edit_.b = high;
}

std::string EditDraft::fault() const {
  return edit_.how == TensorEdit::How::clamp && !(edit_.a <= edit_.b)
             ? tr("The lower bound is to be no more than the upper one.")
             : std::string();
}

projects::TrainOptions EditDraft::options() const {
  projects::TrainOptions o;
  o.run_name = name_;
  o.from = run_;
  o.from_step = edit_.step - 1;
  o.edits = {edit_text(edit_)};
  return o;
}

}  // namespace tenon::views
