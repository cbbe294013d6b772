#include "views/shared/meaning.h"

#include <algorithm>

#include "tracing/record/step_record.h"
#include "tracing/trace/trace_store.h"
#include "views/shared/language.h"

namespace tenon::views {

Ink ink_of(Phase p) {
  switch (p) {
    case Phase::data:
      return Ink::phase_data;
    case Phase::forward:
    case Phase::evaluate:
      return Ink::phase_forward;
    case Phase::backward:
      return Ink::phase_backward;
    case Phase::optimizer:
      return Ink::phase_optimizer;
    case Phase::communication:
      return Ink::phase_communication;
    case Phase::none:
    case Phase::build:
      return Ink::phase_other;
  }
  return Ink::phase_other;
}

Ink ink_of(Category c) {
  switch (c) {
    case Category::parameter:
      return Ink::memory_parameter;
    case Category::gradient:
      return Ink::memory_gradient;
    case Category::activation:
      return Ink::memory_activation;
    case Category::optimizer:
      return Ink::memory_optimizer;
    case Category::buffer:
      return Ink::memory_buffer;
    case Category::workspace:
      return Ink::memory_workspace;
    case Category::data:
      return Ink::memory_data;
    case Category::other:
      return Ink::memory_other;
  }
  return Ink::memory_other;
}

/// The first two are those of the shown run's own curves (training and test).
Ink compared_ink(int i) { return series_ink(2 + i % 6); }
Ink ink_of(traces::EventKind kind) {
  switch (kind) {
    case traces::EventKind::cpu_op:
      return Ink::series0;
    case traces::EventKind::kernel:
      return Ink::series2;
    case traces::EventKind::memcpy:
    case traces::EventKind::memset:
      return Ink::series1;
    case traces::EventKind::runtime:
      return Ink::series7;
    case traces::EventKind::annotation:
    case traces::EventKind::gpu_annotation:
      return Ink::series4;
    case traces::EventKind::python:
      return Ink::series5;
    case traces::EventKind::gpu_sync:
    case traces::EventKind::overhead:
      return Ink::series6;
    default:
      return Ink::phase_other;
  }
}

Ink series_ink(int i) { return static_cast<Ink>(static_cast<int>(Ink::series0) + i % 8); }

std::string word(Phase p) {
  switch (p) {
    case Phase::none:
      return tr("other");
    case Phase::build:
      return tr("build");
    case Phase::data:
      return tr("data");
    case Phase::forward:
      return tr("forward");
    case Phase::backward:
      return tr("backward");
    case Phase::optimizer:
      return tr("optimizer");
    case Phase::communication:
      return tr("communication");
    case Phase::evaluate:
      return tr("evaluate");
  }
  return name(p);
}

std::string word(Category c) {
  switch (c) {
    case Category::parameter:
      return tr("parameter");
    case Category::gradient:
      return tr("gradient");
    case Category::activation:
      return tr("activation");
    case Category::optimizer:
      return tr("optimizer state");
    case Category::buffer:
      return tr("buffer");
    case Category::workspace:
      return tr("workspace");
    case Category::data:
      return tr("data");
    case Category::other:
      return tr("other");
  }
  return name(c);
}

std::string state_word(const std::string& state) {
  for (const char* known :
       {tr_later("running"), tr_later("paused"), tr_later("finished"), tr_later("stopped early"), tr_later("stopped"),
        tr_later("failed"), tr_later("pruned"), tr_later("interrupted"), tr_later("open"), tr_later("waits")})
    if (state == known) return tr(known);
  return state;
}

Ink ink_of_state(const std::string& state) {
  if (state == "running") return Ink::accent;
  if (state == "paused" || state == "interrupted" || state == "waits") return Ink::warning;
  if (state == "failed") return Ink::bad;
  return state == "finished" ? Ink::good : Ink::secondary;
}

const std::vector<Category>& stack_order() {
  static const std::vector<Category> order{Category::parameter, Category::optimizer,  Category::buffer,
                                           Category::data,      Category::activation, Category::gradient,
                                           Category::workspace, Category::other};
  return order;
}

std::string type_text(const tracing::TensorRecord& t) {
  return std::string(name(t.dtype)) + " " + to_string(t.layout.size);
}
std::string op_text(const tracing::OpRecord& op) { return op.name + " #" + std::to_string(op.seq); }

std::vector<uint32_t> bad_ops(const tracing::StepRecord& r) {
  std::vector<uint32_t> out;
  if (!r.nan) return out;
  out = r.nan->spread;
  if (r.nan->seq) out.push_back(r.nan->seq);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace tenon::views
