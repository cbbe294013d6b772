#include "engine/op/op.h"

#include <fmt/format.h>
#include <algorithm>
#include <unordered_map>

#include "core/profile.h"

namespace tenon {

const char* name(OpKind k) {
  static constexpr const char* names[] = {"pointwise", "reduce", "view",   "matmul", "conv", "index",
                                          "norm",      "pool",   "random", "copy",   "other"};
  return names[static_cast<int>(k)];
}

static Registry<OpDef>& registry() {
  static auto& all = *new Registry<OpDef>("op");
  return all;
}
const Registry<OpDef>& all_ops() { return registry(); }

void register_op(OpDef& def, Place place) {
  def.profile_name = intern_name(def.info.name);
  const OpKind k = def.info.kind;
  def.widens = k != OpKind::pointwise && k != OpKind::view && k != OpKind::copy && k != OpKind::index;
  def.amp = def.info.amp;
  if (def.amp == Amp::by_kind)
    def.amp = k == OpKind::matmul || k == OpKind::conv ? Amp::low : k == OpKind::reduce ? Amp::f32 : Amp::leave;
  registry().add_static(def, place);
}

void register_kernel(const std::string& op, DeviceType type, Kernel kernel) {
  const OpDef* def = all_ops().find(op);
  if (!def) throw Error(fmt::format("there is no op '{}' to take a kernel", op));
  if (def->info.any_device) throw Error(fmt::format("op '{}' takes no kernel: it serves every device as it is", op));
  def->kernels[static_cast<size_t>(type)] = kernel;
}

Cost cost_of(const Call& c) {
  Cost cost;
  if (c.op->cost) cost = c.op->cost(c.attrs, c);
  if (cost.bytes == 0 && c.op->info.kind != OpKind::view) {
    for (int i = 0; i < c.inputs; ++i)
      if (c.in[i]) cost.bytes += static_cast<double>(c.in[i].nbytes());
    for (int i = 0; i < c.outputs; ++i)
      if (c.out[i]) cost.bytes += static_cast<double>(c.out[i].nbytes());
  }
  if (cost.flops == 0 && (c.op->info.kind == OpKind::pointwise || c.op->info.kind == OpKind::reduce) && c.outputs > 0) {
    const Tensor& counted = c.op->info.kind == OpKind::reduce ? c.in[0] : c.out[0];
    cost.flops = static_cast<double>(counted.numel());
  }
  return cost;
}

namespace op_detail {

const Meta& meta_of(const Tensor& t) {
  static const Meta absent{};
  return t ? t.meta() : absent;
}

}  // namespace op_detail
}  // namespace tenon
