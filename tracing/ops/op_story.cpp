#include "tracing/ops/op_story.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/error.h"
#include "engine/op/op.h"
#include "tracing/record/numbers.h"
#include "tracing/record/step_record.h"

namespace tenon::tracing {
namespace {

/// The events of the step's timeline by the op that they are.
std::map<uint32_t, int64_t> events_of(const StepRecord& r) {
  std::map<uint32_t, int64_t> all;
  if (!r.timeline.store) return all;
  for (traces::EventId e = 0; e < r.timeline.store->size(); ++e)
    if (const uint32_t seq = r.timeline.op(e).seq) all.emplace(seq, e);
  return all;
}

Sight sight_of(const std::map<uint32_t, int64_t>& events, uint32_t seq) {
  const auto at = events.find(seq);
  return at == events.end() ? Sight{} : Sight::of(at->second);
}

std::string text_of(const TensorRecord& t) { return fmt::format("{} {}", name(t.dtype), to_string(t.layout.size)); }

std::string module_text(uint16_t module) {
  const std::string& path = module_path(module);
  return path.empty() ? "the model itself" : path;
}

/// Gigabytes or gigaflops a second; empty where nothing is moved, or nobody knows how long it took.
std::string rate_text(double amount, int64_t ns, const char* unit) {
  if (amount <= 0 || ns <= 0) return {};
  return fmt::format("{:.3g} {}", amount / static_cast<double>(ns), unit);
}

std::string first_values(const Tensor& t) {
  constexpr int64_t kMost = 4;
  std::vector<std::string> values;
  each_value(t, [&](int64_t k, double v) {
    values.push_back(fmt::format("{:.4g}", v));
    return k + 1 < kMost;
  });
  return fmt::format("{}{}", fmt::join(values, ", "), t.numel() > kMost ? ", …" : "");
}

/// A table of what went in and came out, each with what its values are like.
Table tensors_table(const StepRecord& r, const OpRecord& op) {
  Table t{"values",
          {{"role", "", Unit::text},
           {"tensor", "TENSOR", Unit::text},
           {"type", "TYPE", Unit::text},
           {"stride", "STRIDE", Unit::text},
           {"min", "MIN", Unit::number},
           {"max", "MAX", Unit::number},
           {"mean", "MEAN", Unit::number},
           {"bad", "NOT FINITE", Unit::count},
           {"first", "BEGINS", Unit::text}},
          {}};
  const auto add = [&](const char* role, int number, int index) {
    if (index < 0) return;
    const TensorRecord& x = r.tensors[static_cast<size_t>(index)];
    std::vector<Cell> row{fmt::format("{} {}", role, number), x.name, text_of(x), to_string(x.layout.stride)};
    if (x.value.defined() && x.value.storage()) {
      const Statistics s = statistics(x.value);
      row.insert(row.end(), {s.min, s.max, s.mean, s.bad(), first_values(x.value)});
    } else {
      const std::string gone = "–";
      row.insert(row.end(), {gone, gone, gone, gone, std::string("overwritten within the step: not kept")});
    }
    t.rows.push_back(std::move(row));
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) add("input", static_cast<int>(i), op.inputs[i]);
  for (size_t i = 0; i < op.outputs.size(); ++i) add("output", static_cast<int>(i), op.outputs[i]);
  return t;
}

/// The story as it is told, a stage a row.
class Story {
 public:
  Story(const StepRecord& r, const OpRecord& op)
      : r_(r), op_(op), def_(all_ops().find(op.name)), events_(events_of(r)) {}

  Finding tell() {
    call();
    dispatch();
    kernel();
    recorded();
    gradient();
    Finding f;
    f.sentence = sentence();
    f.facts = {{"took_ns", "took", Unit::nanoseconds, op_.duration_ns},
               {"flops", "FLOP", Unit::count, static_cast<int64_t>(op_.flops)},
               {"bytes", "moves", Unit::bytes, op_.bytes}};
    if (node_) f.facts.push_back({"saved_bytes", "kept for its gradient", Unit::bytes, node_->saved_bytes});
    if (gradient_ops_ > 0) f.facts.push_back({"gradient_ns", "its gradient", Unit::nanoseconds, gradient_ns_});
    f.tables.push_back(std::move(table_));
    f.tables.push_back(tensors_table(r_, op_));
    return f;
  }

 private:
  void add(const char* stage, std::string what, int64_t at_ns, int64_t took_ns, uint32_t seq) {
    std::vector<Cell> row{std::string(stage), std::move(what)};
    row.push_back(at_ns >= 0 ? Cell(at_ns) : Cell(std::string("")));
    row.push_back(took_ns >= 0 ? Cell(took_ns) : Cell(std::string("")));
    // A row of the op itself leads nowhere: one is there.
    table_.add(std::move(row), seq == op_.seq ? Sight{} : sight_of(events_, seq));
  }

  std::string inputs_text() const {
    std::vector<std::string> all;
    for (int i : op_.inputs)
      if (i >= 0)
        all.push_back(r_.tensors[static_cast<size_t>(i)].name + " (" + text_of(r_.tensors[static_cast<size_t>(i)]) +
                      ")");
    return all.empty() ? "nothing" : fmt::format("{}", fmt::join(all, ", "));
  }
  const OpRecord* maker_of(const TensorRecord& t) const {
    return t.producer >= 1 && t.producer <= r_.ops.size() ? &r_.ops[t.producer - 1] : nullptr;
  }

  void call() {
    add("call",
        fmt::format("{} calls {} on {}{}", module_text(op_.origin.module), op_.name, inputs_text(),
                    op_.attrs.empty() ? "" : ", with " + op_.attrs),
        op_.start_ns, -1, op_.seq);
    for (size_t i = 0; i < op_.inputs.size(); ++i) {
      if (op_.inputs[i] < 0) continue;
      if (const OpRecord* made = maker_of(r_.tensors[static_cast<size_t>(op_.inputs[i])]))
        add("call",
            fmt::format("input {} comes from {} #{} of {}", i, made->name, made->seq, module_text(made->origin.module)),
            made->start_ns, made->duration_ns, made->seq);
    }
  }

  void dispatch() {
    if (def_ && def_->amp != Amp::leave)
      add("dispatch",
          fmt::format("under autocast this op works {}", def_->amp == Amp::low ? "in the low type" : "in f32"), -1, -1,
          op_.seq);
    if (def_ && def_->widens && !def_->info.own_halves)
      add("dispatch", "f16 and bf16 would be computed in f32 and rounded back", -1, -1, op_.seq);
    for (int o : op_.outputs) {
      if (o < 0) continue;
      const TensorRecord& t = r_.tensors[static_cast<size_t>(o)];
      add("dispatch",
          fmt::format("the result is {}, strides {}{}", text_of(t), to_string(t.layout.stride), shape_reason(t)), -1,
          -1, op_.seq);
    }
    int64_t taken = 0;
    size_t blocks = 0;
    for (const AllocEvent& a : r_.allocs)
      if (a.bytes > 0 && a.origin.seq == op_.seq && a.time_ns > 0) taken += a.bytes, ++blocks;
    if (blocks)
      add("dispatch",
          fmt::format("{} taken from the pool in {} block{}", bytes_text(taken), blocks, blocks == 1 ? "" : "s"), -1,
          -1, op_.seq);
  }
  /// Why it has that size, where the operands' differ.
  std::string shape_reason(const TensorRecord& result) const {
    if (!def_ || def_->info.kind != OpKind::pointwise) return {};
    for (int i : op_.inputs)
      if (i >= 0 && !(r_.tensors[static_cast<size_t>(i)].layout.size == result.layout.size))
        return fmt::format(": {} is spread over it", r_.tensors[static_cast<size_t>(i)].name);
    return {};
  }

  void kernel() {
    if (def_ && def_->info.kind == OpKind::view)
      return add("kernel", "none: a view of the same memory, only sizes and strides are new", op_.start_ns,
                 op_.duration_ns, op_.seq);
    std::string what =
        op_.flops > 0 ? count_text(static_cast<int64_t>(op_.flops)) + " floating-point operations" : "no arithmetic";
    what += fmt::format(", {} read and written", bytes_text(op_.bytes));
    for (const std::string& rate :
         {rate_text(op_.flops, op_.duration_ns, "GFLOP/s"), rate_text(op_.bytes, op_.duration_ns, "GB/s")})
      if (!rate.empty()) what += ", " + rate;
    add("kernel", std::move(what), op_.start_ns, op_.duration_ns, op_.seq);
  }

  void recorded() {
    for (const GradNode& n : r_.grad_nodes)
      if (!n.leaf && n.forward_seq == op_.seq) node_ = &n;
    if (op_.forward_seq) return;
    if (!node_) return add("graph", "nothing is recorded: no gradient goes through it in this step", -1, -1, op_.seq);
    std::vector<std::string> next;
    for (const GradNode::Edge& e : node_->next)
      if (e.node >= 0) next.push_back(r_.grad_nodes[static_cast<size_t>(e.node)].name);
    add("graph",
        fmt::format("the node \"{}\" keeps {}{}; its gradients go to {}", node_->name,
                    node_->saved_bytes > 0 ? bytes_text(node_->saved_bytes) : std::string("nothing"), saved_text(),
                    next.empty() ? "nobody" : fmt::format("{}", fmt::join(next, ", "))),
        -1, -1, op_.seq);
  }
  std::string saved_text() const {
    if (!def_ || (!def_->saves.inputs && !def_->saves.outputs)) return {};
    std::vector<std::string> all;
    for (size_t i = 0; i < op_.inputs.size() && i < 32; ++i)
      if (op_.inputs[i] >= 0 && (def_->saves.inputs >> i & 1u))
        all.push_back(r_.tensors[static_cast<size_t>(op_.inputs[i])].name);
    for (size_t i = 0; i < op_.outputs.size() && i < 32; ++i)
      if (op_.outputs[i] >= 0 && (def_->saves.outputs >> i & 1u))
        all.push_back(r_.tensors[static_cast<size_t>(op_.outputs[i])].name);
    return all.empty() ? "" : fmt::format(": {}", fmt::join(all, ", "));
  }

  void gradient() {
    if (op_.forward_seq) {
      const OpRecord& of = r_.ops.at(op_.forward_seq - 1);
      return add("gradient", fmt::format("this op is part of the gradient of {} #{}", of.name, of.seq), of.start_ns,
                 of.duration_ns, of.seq);
    }
    if (node_ && node_->grad_norm >= 0)
      add("gradient", fmt::format("a gradient of norm {:.4g} reaches the node", node_->grad_norm), -1, -1, op_.seq);
    for (const OpRecord& o : r_.ops) {
      if (o.forward_seq != op_.seq) continue;
      ++gradient_ops_;
      gradient_ns_ += o.duration_ns;
      std::vector<std::string> made;
      for (int i : o.outputs)
        if (i >= 0) made.push_back(gradient_text(r_.tensors[static_cast<size_t>(i)]));
      add("gradient", fmt::format("{} #{} gives {}", o.name, o.seq, fmt::join(made, ", ")), o.start_ns, o.duration_ns,
          o.seq);
    }
    if (!gradient_ops_ && node_)
      add("gradient", "no op is run for it: the gradient is passed on as it is, or nobody asks", -1, -1, op_.seq);
  }
  static std::string gradient_text(const TensorRecord& t) {
    if (!t.value.defined() || !t.value.storage()) return text_of(t);
    return fmt::format("{} of norm {:.4g}", text_of(t), statistics(t.value).norm);
  }

  std::string sentence() const {
    std::string s = fmt::format("{} #{} of {}: {}", op_.name, op_.seq, module_text(op_.origin.module),
                                nanoseconds_text(static_cast<double>(op_.duration_ns)));
    if (gradient_ops_)
      s += fmt::format(", and {} in {} op{} for its gradient", nanoseconds_text(static_cast<double>(gradient_ns_)),
                       gradient_ops_, gradient_ops_ == 1 ? "" : "s");
    if (node_ && node_->saved_bytes > 0) s += fmt::format("; {} are kept for that", bytes_text(node_->saved_bytes));
    return s + ".";
  }

  const StepRecord& r_;
  const OpRecord& op_;
  const OpDef* def_;
  const std::map<uint32_t, int64_t> events_;
  const GradNode* node_ = nullptr;
  int64_t gradient_ns_ = 0, gradient_ops_ = 0;
  Table table_{"story",
               {{"stage", "STAGE", Unit::text},
                {"what", "WHAT HAPPENS", Unit::text},
                {"at_ns", "AT", Unit::time},
                {"took_ns", "TOOK", Unit::nanoseconds}},
               {}};
};

}  // namespace

Finding op_story(const StepRecord& record, uint32_t seq) {
  if (seq < 1 || seq > record.ops.size())
    throw Error::usage(fmt::format("step {} has no op #{}", record.step, seq),
                       fmt::format("Its ops have the numbers 1 to {}.", record.ops.size()));
  return Story(record, record.ops[seq - 1]).tell();
}

Finding op_calls(const StepRecord& record, const std::string& op) {
  const auto events = events_of(record);
  std::vector<const OpRecord*> calls;
  int64_t time = 0, all_time = 0;
  double flops = 0, bytes = 0;
  for (const OpRecord& o : record.ops) {
    all_time += o.duration_ns;
    if (o.name != op) continue;
    calls.push_back(&o);
    time += o.duration_ns;
    flops += o.flops;
    bytes += o.bytes;
  }
  if (calls.empty()) return nothing(fmt::format("Step {} does not call {}.", record.step, op));
  std::stable_sort(calls.begin(), calls.end(),
                   [](const auto* a, const auto* b) { return a->duration_ns > b->duration_ns; });
  Finding f;
  f.sentence =
      fmt::format("Step {} calls {} {}: {}, {} of the time of its ops.", record.step, op,
                  calls.size() == 1 ? "once" : fmt::format("{} times", count_text(static_cast<int64_t>(calls.size()))),
                  nanoseconds_text(static_cast<double>(time)), share_text(share(time, all_time)));
  f.facts = {{"calls", "calls", Unit::count, static_cast<int64_t>(calls.size())},
             {"took_ns", "time", Unit::nanoseconds, time},
             {"flops_per_ns", "GFLOP/s", Unit::number, time > 0 ? flops / static_cast<double>(time) : 0.0},
             {"bytes_per_ns", "GB/s", Unit::number, time > 0 ? bytes / static_cast<double>(time) : 0.0}};
  Table t{"calls",
          {{"call", "CALL", Unit::count},
           {"module", "MODULE", Unit::text},
           {"phase", "PHASE", Unit::text},
           {"result", "RESULT", Unit::text},
           {"attributes", "ATTRIBUTES", Unit::text},
           {"took_ns", "TOOK", Unit::nanoseconds},
           {"gflops", "GFLOP/S", Unit::number},
           {"gbytes", "GB/S", Unit::number}},
          {}};
  for (const OpRecord* o : calls) {
    const double ns = static_cast<double>(std::max<int64_t>(1, o->duration_ns));
    const bool made = !o->outputs.empty() && o->outputs[0] >= 0;
    t.add({static_cast<int64_t>(o->seq), module_text(o->origin.module), std::string(name(o->origin.phase)),
           made ? text_of(record.tensors[static_cast<size_t>(o->outputs[0])]) : std::string("–"), o->attrs,
           o->duration_ns, o->flops / ns, o->bytes / ns},
          sight_of(events, o->seq));
  }
  f.tables.push_back(std::move(t));
  return f;
}

}  // namespace tenon::tracing
