#include "engine/op/autocast.h"

#include <fmt/format.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/backend.h"
#include "core/dry_device.h"
#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/op/op.h"
#include "engine/ops/view.h"

namespace tenon {

struct AutocastState {
  DType low = DType::bf16;
  struct Kept {
    Tensor from, to;
    uint32_t version = 0;
    bool recorded = false;  ///< `to` has a history
  };
  std::unordered_map<const TensorImpl*, Kept> kept;
};

namespace {

thread_local AutocastState* t_autocast = nullptr;

bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }

/// A parameter is cast once a scope, not once a use.
Tensor cast_kept(const Tensor& t, DType to) {
  if (!t_autocast || !t.requires_grad() || !is_leaf(t)) return cast(t, to);
  AutocastState::Kept& k = t_autocast->kept[t.impl()];
  if (!k.to || k.to.dtype() != to || k.version != t.version() || k.recorded != grad_enabled())
    k = {t, cast(t, to), t.version(), grad_enabled()};
  return k.to;
}

/// Whether the kernel that serves this call takes these halves as they are.
bool takes_halves(const OpDef& op, const Tensor* in, int inputs) {
  if (!op.info.own_halves) return false;
  // The op of a gradient works in the types of its forward pass, and on what that kept in f32.
  const bool keeps_f32 = op.amp == Amp::leave;
  const Tensor* first = nullptr;
  for (int i = 0; i < inputs; ++i) {
    if (!in[i] || !is_floating(in[i].dtype()) || (keeps_f32 && in[i].dtype() == DType::f32)) continue;
    if (!first) first = in + i;
    if (in[i].dtype() != first->dtype()) return false;
  }
  const Device d = first->device();
  return d.type == DeviceType::cpu || d.type == DeviceType::meta || is_dry(d) || backend_of(d).own_halves;
}

/// Casts an op made for f32 around: halves in as f32, results out as halves.
void run_widened(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  ModeGuard types_are_chosen(0, mode::autocast);
  std::vector<Tensor> wide(in, in + inputs), results(static_cast<size_t>(op.info.outputs));
  DType half = DType::f32;
  bool other = false;
  for (Tensor& t : wide)
    if (t && is_half(t.dtype())) {
      other |= half != DType::f32 && half != t.dtype();
      half = t.dtype();
      t = cast(t, DType::f32);
    }
  std::vector<uint32_t> versions;
  for (const Tensor& t : wide) versions.push_back(t ? t.version() : 0);
  dispatch(op, attrs, wide.data(), inputs, results.data());
  // An op may also write into an input (running statistics): what it wrote into the cast copy goes back.
  for (size_t i = 0; i < wide.size(); ++i)
    if (wide[i] && !wide[i].same(in[i]) && wide[i].version() != versions[i]) copy_(in[i], wide[i]);
  for (size_t i = 0; i < results.size(); ++i) {
    bool narrow = results[i].dtype() == DType::f32 && !other && (i == 0 || op.info.kind != OpKind::norm);
    Tensor r = narrow ? cast(results[i], half) : results[i];
    if (out[i])
      copy_(out[i], r);
    else
      out[i] = r;
  }
}

}  // namespace

AutocastScope::AutocastScope(DType low, bool enabled) : outer_(t_autocast), saved_mode_(t_state.mode) {
  if (!is_half(low))
    throw Error(fmt::format("autocast to {} was asked for", name(low)), "the low-precision types are f16 and bf16");
  if (!enabled) {
    t_state.mode &= ~mode::autocast;
    return;
  }
  t_autocast = new AutocastState{low, {}};
  t_state.mode |= mode::autocast;
}

AutocastScope::~AutocastScope() {
  if (t_autocast != outer_) delete t_autocast;
  t_autocast = outer_;
  t_state.mode = saved_mode_;
}

bool autocast_enabled(DType* low) {
  if (!(t_state.mode & mode::autocast) || !t_autocast) return false;
  if (low) *low = t_autocast->low;
  return true;
}

bool dispatch_cast(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  DType low;
  if (op.amp != Amp::leave && autocast_enabled(&low)) {
    DType to = op.amp == Amp::low ? low : DType::f32;
    bool any = false;
    for (int i = 0; i < inputs; ++i)
      any |= in[i].defined() && in[i].dtype() != to && (in[i].dtype() == DType::f32 || is_half(in[i].dtype()));
    if (any) {
      std::vector<Tensor> given(in, in + inputs);
      for (Tensor& t : given)
        if (t && t.dtype() != to && (t.dtype() == DType::f32 || is_half(t.dtype()))) t = cast_kept(t, to);
      dispatch(op, attrs, given.data(), inputs, out);
      return true;
    }
  }
  if (!op.widens) return false;
  bool any = false;
  for (int i = 0; i < inputs; ++i) any |= in[i].defined() && is_half(in[i].dtype());
  if (!any || takes_halves(op, in, inputs)) return false;
  run_widened(op, attrs, in, inputs, out);
  return true;
}

}  // namespace tenon
