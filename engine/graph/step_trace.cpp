#include "engine/graph/step_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/backend.h"
#include "core/pool.h"
#include "core/state.h"
#include "engine/autograd/node.h"
#include "engine/nn/random_state.h"

namespace tenon {
namespace {

constexpr uint32_t kWritten = ~0u;

bool writes_input(const Call& call, int i) {
  if (call.op->writes >> i & 1u) return true;
  for (int k = 0; k < call.outputs; ++k)
    if (call.out[k].defined() && call.out[k].storage() == call.in[i].storage()) return true;
  return false;
}

bool crosses(const Call& call) {
  return call.op->info.any_device && call.inputs == 1 && call.outputs == 1 &&
         !(call.in[0].device() == call.out[0].device());
}

std::string step_name(const StepTrace::Step& s) {
  return fmt::format("{} #{} of module '{}'", s.op->info.name, s.origin.seq, module_path(s.origin.module));
}

}  // namespace

bool StepTrace::Window::operator==(const Window& o) const {
  return block == o.block &&
         (block < 0 || (dtype == o.dtype && layout.size == o.layout.size && layout.stride == o.layout.stride &&
                        layout.offset == o.layout.offset && requires_grad == o.requires_grad));
}

std::string StepTrace::difference(const StepTrace& o) const {
  for (size_t i = 0; i < std::min(steps.size(), o.steps.size()); ++i) {
    const Step &a = steps[i], &b = o.steps[i];
    if (a.op != b.op) return fmt::format("{} is {} in another step", step_name(a), b.op->info.name);
    if ((a.attrs != nullptr) != (b.attrs != nullptr) || (a.attrs && !a.op->attrs.equal(a.attrs.get(), b.attrs.get())))
      return fmt::format("{} has other attributes in every step", step_name(a));
    if (a.in != b.in || a.out != b.out) return fmt::format("{} works on other memory in another step", step_name(a));
    if (a.no_grad != b.no_grad || a.origin.module != b.origin.module || a.origin.seq != b.origin.seq)
      return fmt::format("{} is called from elsewhere in another step", step_name(a));
  }
  if (steps.size() != o.steps.size())
    return fmt::format("one step has {} kernels and the next {}", steps.size(), o.steps.size());
  if (blocks.size() != o.blocks.size() || results != o.results || last_seq != o.last_seq || drawn != o.drawn)
    return "two steps do not end alike";
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block &a = blocks[i], &b = o.blocks[i];
    if (a.origin != b.origin || a.number != b.number || a.bytes != b.bytes)
      return "the memory of two steps comes from different places";
    if (a.filled == b.filled && a.values == b.values) continue;
    for (const Step& s : steps)
      for (const Window& w : s.in)
        if (w.block == static_cast<int>(i)) return fmt::format("{} reads a constant that changes", step_name(s));
    return "a constant changes";
  }
  return {};
}

StepTracer::StepTracer(const std::vector<Tensor>& given, const std::vector<Tensor>& named)
    : device_(given[0].device()) {
  const auto add_all = [&](const std::vector<Tensor>& all, StepTrace::Origin origin) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].storage() || find(all[i]) >= 0) continue;  // two names of one tensor
      held_.push_back(all[i]);
      add(all[i], origin, static_cast<int>(i));
    }
  };
  add_all(given, StepTrace::Origin::given);
  add_all(named, StepTrace::Origin::named);
}

int StepTracer::find(const Tensor& t) const {
  if (!t.storage()) return -1;
  const auto at = blocks_.find(storage_id(t.storage()));
  return at == blocks_.end() ? -1 : at->second;
}

int StepTracer::add(const Tensor& t, StepTrace::Origin origin, int number) {
  const int block = static_cast<int>(trace_.blocks.size());
  trace_.blocks.push_back({origin, number, t.storage()->bytes});
  versions_.push_back(t.version());
  blocks_[storage_id(t.storage())] = block;
  return block;
}

void StepTracer::keep_values(StepTrace::Block& b, const Tensor& t) {
  const auto* bytes = static_cast<const char*>(t.storage()->data);
  std::string crossed;
  if (!(device_ == Device{})) {
    crossed.resize(b.bytes);
    copy_bytes(crossed.data(), {}, bytes, device_, b.bytes);
    bytes = crossed.data();
  }
  uint32_t first = 0;
  if (b.bytes >= sizeof first && b.bytes % sizeof first == 0) {
    std::memcpy(&first, bytes, sizeof first);
    // All alike: each is what lies four bytes further.
    if (b.bytes == sizeof first || std::memcmp(bytes, bytes + sizeof first, b.bytes - sizeof first) == 0) {
      b.filled = first;
      return;
    }
  }
  b.values.assign(bytes, b.bytes);
}

StepTrace::Window StepTracer::window(const Tensor& t) const {
  const int block = find(t);
  return block < 0 ? Window{} : Window{block, t.dtype(), t.layout(), t.requires_grad()};
}

void StepTracer::check_version(const Tensor& t, const Call& call) {
  uint32_t& known = versions_[static_cast<size_t>(find(t))];
  if (known != kWritten && known != t.version())
    refuse(fmt::format("what {} #{} reads was written by something that is no op", call.op->info.name,
                       t_state.origin.seq));
  known = t.version();
}

void StepTracer::before(const Call& call) {
  if (running_) refuse(fmt::format("{} runs inside the kernel of {}", call.op->info.name, running_->info.name));
  running_ = call.op;
  loops_.seen.clear();
  if (crosses(call)) {  // what comes from elsewhere is a constant to who reads it
    if (call.in[0].device() == device_) refuse("a value leaves the device on the way");
    return;
  }
  const auto here = [&](const Tensor& t) {
    if (t.storage() && t.device() == device_) return true;
    refuse(fmt::format("{} works on memory that is not {}'s", call.op->info.name,
                       device_ == Device{} ? "the CPU" : to_string(device_)));
    return false;
  };
  const auto constant = [&](const Tensor& t) {
    keep_values(trace_.blocks[static_cast<size_t>(add(t, StepTrace::Origin::constant, -1))], t);
  };
  for (int i = 0; i < call.inputs; ++i) {
    const Tensor& t = call.in[i];
    if (!t.defined() || !here(t)) continue;
    if (find(t) < 0)
      constant(t);
    else
      check_version(t, call);
  }
  if (call.op->view) return;
  for (int k = 0; k < call.outputs; ++k) {
    const Tensor& t = call.out[k];
    if (!t.defined() || !here(t)) continue;
    if (find(t) >= 0)
      check_version(t, call);
    else if (t.nbytes() < t.storage()->bytes)
      constant(t);  // what lies around it is not the op's
    else
      add(t, StepTrace::Origin::made, -1);
  }
}

void StepTracer::after(const Call& call, int64_t, int64_t) {
  running_ = nullptr;
  // A view is in the windows of what follows.
  if (call.op->view || crosses(call) || !trace_.why_not.empty()) return;
  StepTrace::Step s;
  s.op = call.op;
  if (call.attrs) s.attrs = call.op->attrs.copy_of(call.attrs);
  const auto of = [&](const Tensor& t) { return t.defined() ? window(t) : Window{}; };
  for (int i = 0; i < call.inputs; ++i) s.in.push_back(of(call.in[i]));
  for (int k = 0; k < call.outputs; ++k) s.out.push_back(of(call.out[k]));
  s.origin = t_state.origin;
  s.origin.seq -= begin_;
  s.forward_seq = t_forward_seq > begin_ ? t_forward_seq - begin_ : 0;
  s.no_grad = !grad_enabled();
  note_loop(call, s);
  // What the kernel wrote is counted by now or, of what was there before, once this returns.
  for (int k = 0; k < call.outputs; ++k)
    if (s.out[static_cast<size_t>(k)].block >= 0)
      versions_[static_cast<size_t>(s.out[static_cast<size_t>(k)].block)] = call.out[k].version();
  for (int i = 0; i < call.inputs; ++i)
    if (s.in[static_cast<size_t>(i)].block >= 0 && writes_input(call, i))
      versions_[static_cast<size_t>(s.in[static_cast<size_t>(i)].block)] = kWritten;
  trace_.steps.push_back(std::move(s));
}

/// What a pointwise kernel ran, if it ran one loop and that went into its result.
void StepTracer::note_loop(const Call& call, StepTrace::Step& s) const {
  if (call.op->info.kind != OpKind::pointwise || call.outputs != 1 || loops_.seen.size() != 1) return;
  const LoopWatch::Seen& seen = loops_.seen[0];
  if (seen.out != call.out[0].impl() || seen.in_type != DType::f32 || seen.out_type != DType::f32) return;
  for (const LoopWatch::Operand& seen_operand : seen.in) {
    StepTrace::LoopOperand o{.in = -1, .number = seen_operand.number};
    for (int i = 0; i < call.inputs && o.in < 0; ++i)
      if (call.in[i].defined() && call.in[i].impl() == seen_operand.tensor) o.in = i;
    if (o.in < 0 && !seen_operand.one_number) return;
    s.operands.push_back(o);
  }
  s.loop = seen.loop;
}

void StepTracer::backward_node(const Node& node) {
  if (node.hooks) refuse("a hook looks at a gradient");
  if (node.retained) refuse("the gradient of a result is kept");
  if (node.op || !node.leaf || !node.grads[0].defined()) return;
  if (node.leaf->grad.defined()) refuse("a gradient is added to one that was there");
  if (find(node.grads[0]) < 0) {
    refuse("a gradient is made by something that is no op");
    return;
  }
  leaves_[node.leaf] = window(node.grads[0]);
}

StepTrace StepTracer::finish(const std::vector<Tensor>& results, const std::vector<Tensor>& leaves) {
  for (const Tensor& t : results) {
    if (find(t) < 0) refuse("a result is made by something that is no op");
    trace_.results.push_back(window(t));
  }
  for (const Tensor& leaf : leaves) {
    const auto at = leaves_.find(leaf.impl()->grad);
    trace_.results.push_back(at == leaves_.end() ? Window{} : at->second);
  }
  trace_.last_seq = t_state.origin.seq - begin_;
  trace_.drawn = nn::t_random.drawn;
  return std::move(trace_);
}

}  // namespace tenon
