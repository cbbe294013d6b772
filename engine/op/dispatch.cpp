#include <fmt/format.h>

#include "core/profile.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"

namespace tenon {

thread_local uint32_t t_forward_seq = 0;
static thread_local OpObserver* t_observer = nullptr;

ObserveScope::ObserveScope(OpObserver& observer) : saved_(t_observer), saved_mode_(t_state.mode) {
  t_observer = &observer;
  t_state.mode |= mode::observe;
}
ObserveScope::~ObserveScope() {
  t_observer = saved_;
  t_state.mode = saved_mode_;
}

OpObserver* current_observer() { return t_state.mode & mode::observe ? t_observer : nullptr; }

namespace {

constexpr uint32_t kSlow = mode::observe | mode::profile | mode::interrupt;
constexpr int kMaxOutputs = 4;

[[noreturn]] void fail(const OpDef& op, const Error& e) {
  const std::string& path = module_path(t_state.origin.module);
  throw e.in(path.empty() ? op.info.name : fmt::format("{} of module '{}'", op.info.name, path));
}

void make_outputs(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  if (op.view) {
    if (!out[0]) out[0] = view_of(in[0], op.view(attrs, in[0].layout()));
    return;
  }
  Meta metas[kMaxOutputs];
  op.infer(attrs, in, inputs, metas);
  bool meta = false;
  for (int i = 0; i < inputs; ++i) meta |= in[i].defined() && in[i].is_meta();
  Device device{meta ? DeviceType::meta : DeviceType::cpu};
  if (op.place) {
    Layout layouts[kMaxOutputs];
    for (int i = 0; i < op.info.outputs; ++i) layouts[i] = Layout::contiguous(metas[i].shape);
    op.place(attrs, in, layouts);
    for (int i = 0; i < op.info.outputs; ++i)
      if (!out[i]) out[i] = empty_strided(layouts[i], metas[i].dtype, device);
    return;
  }
  for (int i = 0; i < op.info.outputs; ++i)
    if (!out[i]) out[i] = empty(metas[i].shape, metas[i].dtype, device);
}

void compute(const Call& call) {
  if (call.op->cpu && !call.out[0].is_meta()) call.op->cpu(call);
}

// The out-of-line half of every call: someone is looking.
[[gnu::noinline]] void compute_watched(const Call& call, uint32_t word) {
  if ((word & mode::observe) && t_observer) t_observer->before(call);
  Origin origin = t_state.origin;
  ++t_profile_depth;
  int64_t start = now_ns();
  compute(call);
  int64_t end = now_ns();
  --t_profile_depth;
  if (word & mode::profile) profile_add(call.op->profile_name, start, end, origin);
  if ((word & mode::observe) && t_observer) t_observer->after(call, start, end);
}

inline void run(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  Call call{&op, attrs, in, inputs, out, op.info.outputs};
  uint32_t word = mode_word();
  if (word & kSlow) [[unlikely]] compute_watched(call, word);
  else compute(call);
}

bool any_requires_grad(const Tensor* in, int inputs) {
  for (int i = 0; i < inputs; ++i)
    if (in[i].defined() && in[i].requires_grad()) return true;
  return false;
}

}  // namespace

void dispatch(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  uint32_t seq = ++t_state.origin.seq;
  try {
    make_outputs(op, attrs, in, inputs, out);
    // The node is made before computing, so that an observer sees the outputs with their history.
    if (grad_enabled() && any_requires_grad(in, inputs) && op.backward) record_node(op, attrs, in, inputs, out, seq);
    run(op, attrs, in, inputs, out);
  } catch (const Error& e) {
    fail(op, e);
  }
}

void dispatch_in_place(const OpDef& op, const void* attrs, Tensor* in, int inputs) {
  uint32_t seq = ++t_state.origin.seq;
  try {
    Meta meta[kMaxOutputs];
    op.infer(attrs, in, inputs, meta);
    if (!(meta[0].shape == in[0].size()))
      throw Error(fmt::format("the in-place form would write a result of size {} into a tensor of size {}", to_string(meta[0].shape), to_string(in[0].size())));
    if (meta[0].dtype != in[0].dtype())
      throw Error(fmt::format("the in-place form would write {} values into a tensor of {}", name(meta[0].dtype), name(in[0].dtype())));
    if (in[0].layout().may_overlap()) throw Error("the tensor's elements share memory (an expanded view); write to a copy: clone()");
    bool grad = grad_enabled() && any_requires_grad(in, inputs);
    if (grad) check_in_place_allowed(in[0]);
    Tensor before[8];
    for (int i = 0; i < inputs; ++i) before[i] = in[i];
    Tensor out = in[0];
    if (grad) {
      // Inputs are saved with the version before the write: reading the overwritten one in backward is then an error that names both.
      record_in_place(op, attrs, before, inputs, out, seq);
    }
    run(op, attrs, before, inputs, &out);
    if (out.storage()) ++out.storage()->version;
    if (grad) refresh_saved_output(out);
  } catch (const Error& e) {
    fail(op, e);
  }
}

}  // namespace tenon
