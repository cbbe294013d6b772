#include <fmt/format.h>

#include "core/backend.h"
#include "core/pool.h"
#include "core/profile.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/node.h"
#include "engine/op/autocast.h"
#include "engine/op/op.h"
#include "engine/op/strided_loop.h"
#include "engine/ops/view.h"

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

constexpr uint32_t kSlow = mode::observe | mode::profile | mode::interrupt | mode::inference;
constexpr int kMaxOutputs = 8, kMaxInPlace = 8;

[[noreturn]] void fail(const OpDef& op, const Error& e) {
  const std::string& path = module_path(t_state.origin.module);
  throw e.in(path.empty() ? op.info.name : fmt::format("{} of module '{}'", op.info.name, path));
}

bool in_natural_order(const Tensor& t) {
  const TensorImpl& p = *t.impl();
  int64_t step = 1;
  for (int i = p.stride.n - 1; i >= 0; --i) {
    if (p.stride[i] != step && p.meta.shape[i] != 1) return false;
    step *= p.meta.shape[i];
  }
  return true;
}

/// Element by element, a result keeps the memory order of its first full-size operand: channels-last activations stay
/// so through a network.
bool keeps_order(const OpDef& op, const Tensor* in, int inputs, const Meta& result, Layout& order) {
  if (op.info.kind != OpKind::pointwise) return false;
  for (int i = 0; i < inputs; ++i) {
    if (!in[i] || !(in[i].size() == result.shape)) continue;
    if (in_natural_order(in[i])) return false;
    order = in[i].layout();
    order.offset = 0;
    return order.is_dense();
  }
  return false;
}

[[noreturn]] void refuse_devices(const Tensor* in, int a, int b) {
  auto text = [&](int i) {
    return fmt::format("input {} ({}, size {}) lies on {}", i, name(in[i].dtype()), to_string(in[i].size()),
                       to_string(in[i].device()));
  };
  throw Error(fmt::format("{} and {}", text(a), text(b)), "bring them to one device first: to()");
}

[[gnu::noinline]] Device device_of_some(const Tensor* in, int inputs) {
  int first = -1;
  bool meta = false;
  for (int i = 0; i < inputs; ++i) {
    if (!in[i].defined()) continue;
    const Device d = in[i].device();
    if (d.type == DeviceType::meta)
      meta = true;
    else if (first < 0)
      first = i;
    else if (!(d == in[first].device())) [[unlikely]]
      refuse_devices(in, first, i);
  }
  return meta ? Device{DeviceType::meta} : in[first].device();
}

/// The device that all inputs lie on; meta where one of them has no memory. Where there are no inputs, `other`.
inline Device device_of(const Tensor* in, int inputs, Device other) {
  unsigned beside_cpu = 0;
  bool any = false;
  for (int i = 0; i < inputs; ++i)
    if (in[i].defined()) {
      const Device d = in[i].device();
      any = true;
      beside_cpu |= static_cast<unsigned>(d.type) | d.index;
    }
  static_assert(static_cast<unsigned>(DeviceType::cpu) == 0);
  if (beside_cpu) [[unlikely]]
    return device_of_some(in, inputs);
  return any ? Device{} : other;
}

void make_outputs(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  if (op.view) {
    if (out[0]) return;
    out[0] = view_of(in[0], op.view(attrs, in[0].layout()));
    if (!grad_enabled()) return;
    const Ref<TensorImpl>& base = in[0].impl()->base;
    out[0].impl()->base = base ? base : Ref<TensorImpl>::share(in[0].impl());
    return;
  }
  Meta metas[kMaxOutputs];
  op.infer(attrs, in, inputs, metas);
  const Device device = op.info.any_device ? metas[0].device : device_of(in, inputs, metas[0].device);
  if (op.place) {
    Layout layouts[kMaxOutputs];
    for (int i = 0; i < op.info.outputs; ++i) layouts[i] = Layout::contiguous(metas[i].shape);
    op.place(attrs, in, layouts);
    for (int i = 0; i < op.info.outputs; ++i)
      if (!out[i]) out[i] = empty_strided(layouts[i], metas[i].dtype, device);
    return;
  }
  Layout order;
  if (!out[0] && keeps_order(op, in, inputs, metas[0], order)) {
    out[0] = empty_strided(order, metas[0].dtype, device);
    return;
  }
  for (int i = 0; i < op.info.outputs; ++i)
    if (!out[i]) out[i] = empty(metas[i].shape, metas[i].dtype, device);
}

[[noreturn]] void refuse_device(Device device) {
  throw Error(fmt::format("there is no kernel for device {}", to_string(device)), "compute it on the CPU: to_host()");
}

// Working memory is for one call: it comes from the device's pool and goes back there.
[[gnu::noinline]] void compute_with_workspace(const Call& given, Kernel kernel) {
  if (given.stream.device.type != DeviceType::cpu && backend_of(given.stream.device).own_workspace)
    return kernel(given);
  const size_t bytes = given.op->workspace(given.attrs, given);
  if (bytes == 0) return kernel(given);
  CategoryScope category(Category::workspace);
  Call call = given;
  const Device device = call.stream.device;
  const Ref<Storage> room = device.type == DeviceType::cpu ? pool_take(bytes) : backend_take(bytes, device);
  call.workspace = room->data;
  kernel(call);
}

/// Where there is no kernel of the device: a tensor without memory, a view, or an op whose kernel is of every device.
[[gnu::noinline]] void compute_elsewhere(const Call& call) {
  const Kernel kernel = call.op->kernels[static_cast<size_t>(DeviceType::cpu)];
  if (call.stream.device.type == DeviceType::meta || !kernel) return;
  if (!call.op->info.any_device) refuse_device(call.stream.device);
  kernel(call);
}

inline void compute(const Call& call) {
  const Kernel kernel = call.op->kernels[static_cast<size_t>(call.stream.device.type)];
  if (!kernel) [[unlikely]]
    return compute_elsewhere(call);
  if (call.op->workspace) [[unlikely]]
    return compute_with_workspace(call, kernel);
  kernel(call);
}

Call call_of(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  return {&op, attrs, in, inputs, out, op.info.outputs, current_stream(out[0].device()), nullptr};
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
  if (word & mode::profile) profile_add(call.op->profile_name, start, end, origin, t_forward_seq);
  if ((word & mode::observe) && t_observer) t_observer->after(call, start, end);
  if (word & mode::inference)
    for (int i = 0; i < call.outputs; ++i) call.out[i].impl()->flags |= TensorImpl::inference;
}

inline void run(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  const Call call = call_of(op, attrs, in, inputs, out);
  uint32_t word = mode_word();
  if (word & kSlow) [[unlikely]]
    compute_watched(call, word);
  else
    compute(call);
}

inline void run_and_count(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  run(op, attrs, in, inputs, out);
  for (int i = 0; op.writes >> i; ++i)
    if ((op.writes >> i & 1u) && i < inputs && in[i].defined() && in[i].storage()) in[i].storage()->wrote();
}

// Operands of one f32 layout without gaps: the output is alike, nothing has to be inferred.
inline bool alike(const OpDef& op, const Tensor* in, int inputs) {
  if (!op.quick) return false;
  const TensorImpl& a = *in[0].impl();
  if (a.meta.dtype != DType::f32 || a.meta.device.type != DeviceType::cpu ||
      !contiguous_strides(a.meta.shape, a.stride))
    return false;
  if (inputs == 2) {
    const TensorImpl& b = *in[1].impl();
    if (b.meta.dtype != DType::f32 || b.meta.device.type != DeviceType::cpu || !(a.meta.shape == b.meta.shape) ||
        !(a.stride == b.stride))
      return false;
  }
  return a.meta.shape.product() <= kLoopGrain;
}

inline void run_quick(const OpDef& op, const Tensor* in, int inputs, const Tensor& out) {
  char* data[3] = {static_cast<char*>(out.raw()), static_cast<char*>(in[0].raw()),
                   inputs == 2 ? static_cast<char*>(in[1].raw()) : nullptr};
  static constexpr int64_t strides[3] = {4, 4, 4};
  op.quick(data, strides, out.numel());
}

bool any_requires_grad(const Tensor* in, int inputs) {
  for (int i = 0; i < inputs; ++i)
    if (in[i].defined() && in[i].requires_grad()) return true;
  return false;
}

}  // namespace

void dispatch(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  if ((op.widens || (mode_word() & mode::autocast)) && dispatch_cast(op, attrs, in, inputs, out)) return;
  uint32_t seq = ++t_state.origin.seq;
  t_state.op = op.profile_name;
  try {
    bool quick = alike(op, in, inputs) && !out[0];
    if (quick)
      out[0] = empty_like(in[0]);
    else
      make_outputs(op, attrs, in, inputs, out);
    // The node is made before computing, so that an observer sees the outputs with their history.
    bool record = grad_enabled() && any_requires_grad(in, inputs) && op.backward;
    if (record) record_node(op, attrs, in, inputs, out, seq);
    if (quick && !(mode_word() & kSlow))
      run_quick(op, in, inputs, out[0]);
    else
      run_and_count(op, attrs, in, inputs, out);
    if (record && op.saves.outputs && SavedTensorHooks::current()) [[unlikely]]
      pack_saved_outputs(out[0]);
  } catch (const Error& e) {
    fail(op, e);
  }
}

void run_kernel(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out) {
  try {
    compute(call_of(op, attrs, in, inputs, out));
  } catch (const Error& e) {
    fail(op, e);
  }
}

void dispatch_out(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor& out) {
  try {
    if (grad_enabled() && (any_requires_grad(in, inputs) || out.requires_grad()))
      throw Error("the out form records no gradient, and one is required",
                  "use the form that returns a new tensor, or NoGrad");
    Meta metas[kMaxOutputs];
    op.infer(attrs, in, inputs, metas);
    if (!(metas[0].shape == out.size()))
      throw Error(
          fmt::format("the result has size {}, out has size {}", to_string(metas[0].shape), to_string(out.size())));
    bool shares = out.layout().may_overlap() || out.dtype() != metas[0].dtype || op.place;
    for (int i = 0; i < inputs; ++i)
      shares |= in[i].defined() && (partly_overlaps(out, in[i]) ||
                                    (op.info.kind != OpKind::pointwise && in[i].storage() == out.storage()));
    NoGrad no_grad;
    Tensor result = shares ? Tensor() : out;
    dispatch(op, attrs, in, inputs, &result);
    if (result.same(out))
      out.storage()->wrote();
    else
      copy_(out, result);
  } catch (const Error& e) {
    fail(op, e);
  }
}

// Note [Writing into a view]
// A base and its views share elements, so a recorded write into one of them changes the history of all. Writing into
// the base gives it a new node; its views notice by their version that what they recorded is past, and take a new
// history from the base when it is next asked for (edge_of). Writing into a view also gives the base a node:
// strided_replace of the base as it was and the view as it is now. The base is counted by its views and never the other
// way round, so nothing holds itself.
void dispatch_in_place(const OpDef& op, const void* attrs, Tensor* in, int inputs) {
  uint32_t seq = ++t_state.origin.seq;
  t_state.op = op.profile_name;
  for (int i = 1; i < inputs; ++i)
    if (in[i].defined() && in[0].storage() == in[i].storage() && partly_overlaps(in[0], in[i]))
      fail(op, Error(fmt::format("input {} shares some of the memory that the in-place form writes", i),
                     "clone() it first"));
  if (alike(op, in, inputs) && !(mode_word() & kSlow) && !(grad_enabled() && any_requires_grad(in, inputs))) {
    run_quick(op, in, inputs, in[0]);
    in[0].storage()->wrote();
    return;
  }
  try {
    Meta meta[kMaxOutputs];
    op.infer(attrs, in, inputs, meta);
    if (!(meta[0].shape == in[0].size()))
      throw Error(fmt::format("the in-place form would write a result of size {} into a tensor of size {}",
                              to_string(meta[0].shape), to_string(in[0].size())));
    if (meta[0].dtype != in[0].dtype())
      throw Error(fmt::format("the in-place form would write {} values into a tensor of {}", name(meta[0].dtype),
                              name(in[0].dtype())));
    if (in[0].layout().may_overlap())
      throw Error("the tensor's elements share memory (an expanded view); write to a copy: clone()");
    bool grad = grad_enabled() && any_requires_grad(in, inputs);
    if (grad) check_in_place_allowed(in[0]);
    Tensor before[kMaxInPlace];
    if (inputs > kMaxInPlace) throw Error(fmt::format("an in-place form of {} inputs", inputs));
    for (int i = 0; i < inputs; ++i) before[i] = in[i];
    Tensor out = in[0];
    if (grad) {
      // Inputs are saved with the version before the write: reading the overwritten one in backward is then an error
      // that names both.
      record_in_place(op, attrs, before, inputs, out, seq);
    }
    device_of(in, inputs, {});
    run_and_count(op, attrs, before, inputs, &out);
    if (out.storage()) out.storage()->wrote();
    if (grad) finish_in_place(out);
  } catch (const Error& e) {
    fail(op, e);
  }
}

}  // namespace tenon
