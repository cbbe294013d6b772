#include "engine/op/op.h"

#include <fmt/format.h>
#include <algorithm>
#include <unordered_map>

#include "core/profile.h"

namespace tenon {

const char* name(Kind k) {
  static constexpr const char* names[] = {"pointwise", "reduce", "view",   "matmul", "conv", "index",
                                          "norm",      "pool",   "random", "copy",   "other"};
  return names[static_cast<int>(k)];
}

namespace {
struct Registry {
  std::vector<const OpDef*> ops;
  std::unordered_map<std::string, OpDef*> by_name;
};
Registry& registry() {
  static auto* r = new Registry;  // leaked: ops register from static initialisers in any order
  return *r;
}
}  // namespace

const std::vector<const OpDef*>& all_ops() { return registry().ops; }

const OpDef* find_op(const std::string& name) {
  auto it = registry().by_name.find(name);
  return it == registry().by_name.end() ? nullptr : it->second;
}

void register_op(OpDef& def) {
  auto& r = registry();
  def.id = static_cast<uint16_t>(r.ops.size());
  def.profile_name = intern_name(def.info.name);
  Kind k = def.info.kind;
  def.widens = !def.info.own_halves && k != Kind::pointwise && k != Kind::view && k != Kind::copy && k != Kind::index;
  def.amp = def.info.amp;
  if (def.amp == Amp::by_kind)
    def.amp = k == Kind::matmul || k == Kind::conv ? Amp::low : k == Kind::reduce ? Amp::f32 : Amp::leave;
  if (!r.by_name.emplace(def.info.name, &def).second) throw Error(fmt::format("two ops are named '{}'", def.info.name));
  r.ops.push_back(&def);
}

void register_kernel(const std::string& op, DeviceType type, Kernel kernel) {
  const auto it = registry().by_name.find(op);
  if (it == registry().by_name.end()) throw Error(fmt::format("there is no op '{}' to take a kernel", op));
  it->second->kernels[static_cast<size_t>(type)] = kernel;
}

Cost cost_of(const Call& c) {
  Cost cost;
  if (c.op->cost) cost = c.op->cost(c.attrs, c);
  if (cost.bytes == 0 && c.op->info.kind != Kind::view) {
    for (int i = 0; i < c.inputs; ++i)
      if (c.in[i]) cost.bytes += static_cast<double>(c.in[i].nbytes());
    for (int i = 0; i < c.outputs; ++i)
      if (c.out[i]) cost.bytes += static_cast<double>(c.out[i].nbytes());
  }
  if (cost.flops == 0 && (c.op->info.kind == Kind::pointwise || c.op->info.kind == Kind::reduce) && c.outputs > 0) {
    const Tensor& counted = c.op->info.kind == Kind::reduce ? c.in[0] : c.out[0];
    cost.flops = static_cast<double>(counted.numel());
  }
  return cost;
}

namespace op_detail {

const Meta& meta_of(const Tensor& t) {
  static const Meta absent{};
  return t ? t.meta() : absent;
}
std::string field_text(const char* name, const Dims& v) { return fmt::format("{}={}", name, to_string(v)); }
std::string field_text(const char* name, double v) { return fmt::format("{}={}", name, v); }
std::string field_text(const char* name, int64_t v) { return fmt::format("{}={}", name, v); }
std::string field_text(const char* name, bool v) { return fmt::format("{}={}", name, v ? "true" : "false"); }
std::string field_text(const char* name, DType v) { return fmt::format("{}={}", name, tenon::name(v)); }

}  // namespace op_detail
}  // namespace tenon
