#include "tracing/ops/op_definition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <sstream>

#include "core/quiet.h"
#include "engine/autograd/autograd.h"
#include "engine/op/cuda_device.h"
#include "engine/op/op.h"
#include "engine/op/op_source.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/spec/attr.h"

namespace tenon::tracing {
namespace {

std::string type_of(const Tensor& t) {
  return t.defined() ? fmt::format("{} {}", name(t.dtype()), to_string(t.size())) : std::string("–");
}

std::string types_of(const Tensor* t, int n) {
  std::vector<std::string> all;
  for (int i = 0; i < n; ++i) all.push_back(type_of(t[i]));
  return fmt::format("{}", fmt::join(all, ", "));
}

/// Which of the places are set: "0, 2".
std::string places_of(uint32_t bits) {
  std::vector<int> places;
  for (int i = 0; i < 32; ++i)
    if (bits >> i & 1u) places.push_back(i);
  return fmt::format("{}", fmt::join(places, ", "));
}

/// What ops ran, in order.
struct SeenOps : OpObserver {
  struct Run {
    const OpDef* op;
    std::string attrs, in, out;
    Cost cost;
  };
  std::vector<Run> runs;
  void after(const Call& c, int64_t, int64_t) override {
    runs.push_back({c.op, c.op->attrs.text(c.attrs), types_of(c.in, c.inputs), types_of(c.out, c.outputs), cost_of(c)});
  }
};

Table runs_table(const char* name, const std::vector<SeenOps::Run>& runs) {
  Table t{name,
          {{"op", "OP", Unit::text},
           {"attributes", "ATTRIBUTES", Unit::text},
           {"inputs", "INPUTS", Unit::text},
           {"result", "RESULT", Unit::text}},
          {}};
  for (const auto& r : runs) t.rows.push_back({std::string(r.op->info.name), r.attrs, r.in, r.out});
  return t;
}

std::vector<Tensor> results_of(const OpDef& op, const Sample& s) {
  std::vector<Tensor> in = s.inputs, out(static_cast<size_t>(op.info.outputs));
  dispatch(op, s.attrs.get(), in.data(), static_cast<int>(in.size()), out.data());
  return out;
}

/// The ops that the gradient of a sample runs, from the first output through which one goes; nothing where none does.
std::vector<SeenOps::Run> gradient_of(const OpDef& op, const Sample& given) {
  for (size_t output = 0; output < static_cast<size_t>(op.info.outputs); ++output) {
    Sample s = given;
    for (size_t i = 0; i < s.inputs.size(); ++i) {
      Tensor& x = s.inputs[i];
      if (!x.defined() || !is_floating(x.dtype()) || (i < s.differentiable.size() && !s.differentiable[i])) continue;
      x = detach(x);
      set_requires_grad(x);
    }
    const Tensor root = results_of(op, s)[output];
    if (!root.defined() || !root.requires_grad()) continue;
    SeenOps seen;
    const Tensor ones = full(root.size(), 1, root.dtype(), root.device());
    ObserveScope observe(seen);
    backward(root, ones);
    if (!seen.runs.empty()) return std::move(seen.runs);
  }
  return {};
}

/// A note where what stands there could not be run: samples are for tests, and an op may refuse one.
template <class F>
auto tried(const F& f) -> decltype(f()) {
  try {
    return f();
  } catch (const Error&) {
    return {};
  }
}

Table attributes_of(const OpDef& op) {
  Table t{"attributes",
          {{"name", "ATTRIBUTE", Unit::text}, {"value", "WHERE NOT GIVEN", Unit::text}, {"kind", "MAY BE", Unit::text}},
          {}};
  if (!op.attrs.size) return t;
  struct Visit final : AttrVisitor {
    std::vector<AttrField> all;
    void field(const AttrField& f) override { all.push_back(f); }
  } visit;
  const std::unique_ptr<char[]> room(new char[op.attrs.size]);
  op.attrs.init(room.get());
  op.attrs.visit(room.get(), visit);
  std::vector<Attr> values = tried([&] { return op.attrs.values(room.get()); });
  constexpr const char* kKinds[] = {"whole number", "whole number, not negative",
                                    "number",       "yes or no",
                                    "dtype",        "list of whole numbers",
                                    "layout",       "text",
                                    "choice",       "object"};
  for (const AttrField& f : visit.all) {
    std::string kind = kKinds[static_cast<size_t>(f.type)], value;
    if (f.choices) kind = fmt::format("{}", fmt::join(*f.choices, ", "));
    for (const Attr& a : values)
      if (a.name == f.name) value = attr_text(a.value);
    t.rows.push_back({std::string(f.name), value, kind});
  }
  if (op.attrs.destroy) op.attrs.destroy(room.get());
  return t;
}

std::string amp_text(const OpDef& op) {
  switch (op.amp) {
    case Amp::low:
      return "in the low type";
    case Amp::f32:
      return "in f32";
    default:
      return "as it comes";
  }
}

std::string kernels_of(const OpDef& op) {
  if (op.info.kind == OpKind::view) return "none: a view";
  std::vector<std::string> all;
  for (int d = 0; d < kDeviceTypes; ++d)
    if (op.kernels[d]) {
      const auto type = static_cast<DeviceType>(d);
      const std::string device = type == DeviceType::cpu ? "cpu" : backend_of(Device{type}).name;
      if (device != "cuda") all.push_back(device);
    }
  // A GPU runs every op, those that it has no kernel for by the CPU's: what counts is what its module has.
  if (has_cuda_kernel(op.info.name)) all.push_back("cuda");
  return all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "));
}

std::string sentence_of(const OpDef& op, bool gradient) {
  const std::string inputs = op.arity < 0    ? std::string("any number of inputs")
                             : op.arity == 1 ? std::string("1 input")
                                             : fmt::format("{} inputs", op.arity);
  return fmt::format("{} takes {} and gives {} output{}: {}, {}.", op.info.name, inputs, op.info.outputs,
                     op.info.outputs == 1 ? "" : "s",
                     op.info.kind == OpKind::view        ? "a view, which moves no data"
                     : op.info.kind == OpKind::pointwise ? "element by element"
                                                         : fmt::format("of the kind \"{}\"", name(op.info.kind)),
                     gradient ? "and it has a gradient" : "and no gradient goes through it");
}

}  // namespace

Finding list_ops() {
  Finding f;
  Table t{"ops",
          {{"op", "OP", Unit::text},
           {"kind", "KIND", Unit::text},
           {"gradient", "GRADIENT", Unit::text},
           {"autocast", "AUTOCAST", Unit::text},
           {"onnx", "ONNX", Unit::text},
           {"kernels", "KERNELS", Unit::text},
           {"place", "WRITTEN AT", Unit::text}},
          {}};
  int64_t gradients = 0, exported = 0;
  for (const OpDef& op : all_ops()) {
    gradients += op.backward != nullptr;
    exported += *op.info.onnx != 0;
    t.rows.push_back({std::string(op.info.name), std::string(name(op.info.kind)),
                      std::string(op.backward ? "yes" : "–"), amp_text(op),
                      std::string(*op.info.onnx ? op.info.onnx : "–"), kernels_of(op),
                      place_text(all_ops().place_of(op.info.name))});
  }
  const auto count = static_cast<int64_t>(t.rows.size());
  f.sentence = fmt::format("There are {} ops; {} have a gradient, {} an operator of the same meaning in ONNX.",
                           count_text(count), count_text(gradients), count_text(exported));
  f.facts = {{"op_count", "ops", Unit::count, count},
             {"gradient_count", "with a gradient", Unit::count, gradients},
             {"onnx_count", "in ONNX", Unit::count, exported}};
  f.tables.push_back(std::move(t));
  return f;
}

Finding op_definition(const std::string& wanted) {
  const OpDef& op = all_ops().at(wanted);
  const Place place = all_ops().place_of(wanted);
  Finding f;
  f.sentence = sentence_of(op, op.backward != nullptr);
  const auto fact = [&](const char* key, const char* head, std::string value) {
    if (!value.empty()) f.facts.push_back({key, head, Unit::text, std::move(value)});
  };
  fact("kind", "kind", name(op.info.kind));
  if (op.backward) {
    fact("saves_inputs", "gradient reads inputs", op.saves.inputs ? places_of(op.saves.inputs) : std::string("none"));
    fact("saves_outputs", "gradient reads outputs", places_of(op.saves.outputs));
  }
  fact("autocast", "under autocast", amp_text(op));
  fact("halves", "f16 and bf16",
       !op.widens           ? "as they are"
       : op.info.own_halves ? "bf16 by the processor where it can, else in f32, and back"
                            : "in f32, and back");
  fact("writes", "writes into inputs", places_of(op.writes));
  fact("onnx", "ONNX", *op.info.onnx ? op.info.onnx : op.decompose ? "by its decomposition" : "none of its meaning");
  fact("kernels", "kernels", kernels_of(op));
  fact("workspace", "works in", op.workspace ? "memory of its own" : "");
  fact("place", "written at", place_text(place));
  f.tables.push_back(attributes_of(op));

  // What only looks leaves no trace on the thread that asks.
  const Quiet quiet;
  Samples samples;
  if (op.samples) op.samples(samples);
  Table examples{"samples",
                 {{"sample", "SAMPLE", Unit::text},
                  {"inputs", "INPUTS", Unit::text},
                  {"attributes", "ATTRIBUTES", Unit::text},
                  {"result", "RESULT", Unit::text},
                  {"flops", "FLOP", Unit::count},
                  {"bytes", "MOVES", Unit::bytes}},
                 {}};
  std::vector<SeenOps::Run> gradient, parts;
  for (const Sample& s : samples.all()) {
    SeenOps seen;
    tried([&] {
      ObserveScope observe(seen);
      results_of(op, s);
      return 0;
    });
    for (const auto& r : seen.runs)
      if (r.op == &op)
        examples.rows.push_back(
            {s.name, r.in, r.attrs, r.out, static_cast<int64_t>(r.cost.flops), static_cast<int64_t>(r.cost.bytes)});
    if (gradient.empty() && op.backward) {
      const EnableGrad on;
      gradient = tried([&] { return gradient_of(op, s); });
    }
    if (parts.empty() && op.decompose) {
      SeenOps run;
      tried([&] {
        ObserveScope observe(run);
        op.decompose(s.attrs.get(), s.inputs);
        return 0;
      });
      parts = std::move(run.runs);
    }
  }
  f.tables.push_back(std::move(examples));
  if (op.backward) f.tables.push_back(runs_table("gradient", gradient));
  if (op.decompose) f.tables.push_back(runs_table("decomposition", parts));
  Table source{"source", {{"line", "LINE", Unit::text, true}}, {}};
  std::istringstream text(definition_text(place));
  for (std::string line; std::getline(text, line);) source.rows.push_back({line});
  f.tables.push_back(std::move(source));
  return f;
}

}  // namespace tenon::tracing
