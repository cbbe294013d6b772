#include "tracing/record/f64_reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "core/quiet.h"
#include "engine/op/op.h"
#include "engine/ops/view.h"
#include "engine/train/session.h"

namespace tenon::tracing {
namespace {

bool is_float(const Tensor& t) { return t.defined() && is_floating(t.dtype()); }

/// Memory of its own, which an op of the reference may write over.
Tensor wide_copy(const Tensor& t) {
  if (!t.defined()) return {};
  return is_float(t) && t.dtype() != DType::f64 ? cast(t, DType::f64) : clone(t);
}

const OpDef* cast_op() {
  static const OpDef* op = all_ops().find("cast");
  return op;
}

class Referee : public OpObserver {
 public:
  explicit Referee(double tolerance) : tolerance_(tolerance) {}

  void before(const Call& call) override {
    open_.push_back({t_state.origin.seq, writes_over(call) ? inputs_of(call) : std::vector<Tensor>()});
  }

  void after(const Call& call, int64_t, int64_t) override {
    Open open = std::move(open_.back());
    open_.pop_back();
    if (call.op->info.kind == OpKind::random || call.op->view || !call.out[0].defined()) return;
    OpDifference d;
    d.op = call.op->info.name;
    d.module = module_path(t_state.origin.module);
    d.phase = name(t_state.origin.phase);
    d.a = d.b = open.seq;
    const Quiet quiet;
    if (open.inputs.empty()) open.inputs = inputs_of(call);
    const bool in_place = call.inputs > 0 && call.in[0].defined() && call.in[0].impl() == call.out[0].impl();
    std::vector<Tensor> out(static_cast<size_t>(call.outputs));
    // A cast rounds by what it is: its reference is what went in.
    if (call.op == cast_op()) return add(call, open.inputs[0], open.inputs, d);
    try {
      if (in_place)
        dispatch_in_place(*call.op, call.attrs, open.inputs.data(), call.inputs);
      else
        dispatch(*call.op, call.attrs, open.inputs.data(), call.inputs, out.data());
    } catch (const Error&) {
      ++all_.unknown;
      return;
    }
    add(call, in_place ? open.inputs[0] : out[0], open.inputs, d);
  }

  StepDifference result() && { return std::move(all_); }

 private:
  struct Open {
    uint32_t seq = 0;
    std::vector<Tensor> inputs;  ///< as they were, where the op writes over some; empty: they stay as they are
  };

  static bool writes_over(const Call& call) {
    for (int k = 0; k < call.outputs; ++k)
      if (call.out[k].defined()) return true;
    return call.op->writes != 0;
  }
  static std::vector<Tensor> inputs_of(const Call& call) {
    const Quiet quiet;
    std::vector<Tensor> in;
    for (int i = 0; i < call.inputs; ++i) in.push_back(wide_copy(call.in[i]));
    return in;
  }

  /// The output, and what the op wrote over: the one that is farthest from its reference.
  void add(const Call& call, const Tensor& reference, const std::vector<Tensor>& written, OpDifference d) {
    std::vector<std::pair<Tensor, Tensor>> pairs{{call.out[0], reference}};
    for (int i = 0; i < call.inputs; ++i)
      if ((call.op->writes >> i & 1u) && call.in[i].defined())
        pairs.emplace_back(call.in[i], written[static_cast<size_t>(i)]);
    OpDifference worst = d;
    bool any = false;
    for (const auto& [is, should_be] : pairs) {
      if (!is_float(is) || !should_be.defined() || !(is.size() == should_be.size())) continue;
      OpDifference one = d;
      compare_values(is, should_be, one);
      if (!any || beyond_by(one) > beyond_by(worst)) worst = one;
      any = true;
    }
    if (!any) return;
    if (all_.first < 0 && worst.beyond(tolerance_)) all_.first = static_cast<int64_t>(all_.ops.size());
    all_.ops.push_back(std::move(worst));
  }
  static double beyond_by(const OpDifference& d) {
    return std::max(d.relative, std::isinf(d.largest) ? d.largest : 0.0);
  }

  double tolerance_;
  std::vector<Open> open_;
  StepDifference all_;
};

}  // namespace

F64Reference compare_with_f64(TrainingSession& session, double tolerance) {
  Referee referee(tolerance);
  F64Reference r;
  {
    const ObserveScope observe(referee);
    r.loss = session.step().loss;
  }
  r.difference = std::move(referee).result();
  return r;
}

}  // namespace tenon::tracing
