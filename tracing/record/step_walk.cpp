#include "tracing/record/step_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "core/error.h"
#include "core/name_pattern.h"
#include "core/state.h"
#include "engine/train/moments.h"
#include "tracing/record/tensor_versions.h"

namespace tenon::tracing {
namespace {

const OpRecord* op_at(const StepRecord& r, int64_t seq) {
  if (seq < 1 || seq > static_cast<int64_t>(r.ops.size())) return nullptr;
  const OpRecord& op = r.ops[static_cast<size_t>(seq) - 1];
  return op.name.empty() ? nullptr : &op;  // one that ended in an error
}

bool below(std::string_view path, std::string_view module) {
  return module.empty() ? !path.empty()
                        : path.starts_with(module) && path.size() > module.size() && path[module.size()] == '.';
}

bool moves_to(const std::string& here, const std::string& there, WalkMove move) {
  switch (move) {
    case WalkMove::op:
      return true;
    case WalkMove::module:
      return there == here;
    case WalkMove::into:
      return below(there, here);
    case WalkMove::out:
      return there != here && !below(there, here);
  }
  return false;
}

/// The pattern fits the path or one that it lies below.
bool fits_module(const std::string& pattern, const std::string& path) {
  if (fits_pattern(pattern, path)) return true;
  for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1))
    if (fits_pattern(pattern, path.substr(0, dot))) return true;
  return false;
}

bool is_about(const Watch& w, const OpRecord& op) {
  return fits_pattern(w.of, op.name) || fits_module(w.of, module_path(op.origin.module));
}

std::optional<WalkStop> holds_at(const StepRecord& r, const OpRecord& op, const std::vector<WalkBreak>& breaks,
                                 int64_t& unknown) {
  std::map<int, Moments> known;  // by tensor: several breaks look at one
  for (size_t b = 0; b < breaks.size(); ++b) {
    const WalkBreak& stop = breaks[b];
    if (!stop.module.empty() && fits_module(stop.module, module_path(op.origin.module))) return WalkStop{op.seq, b};
    if (!stop.op.empty() && fits_pattern(stop.op, op.name)) return WalkStop{op.seq, b};
    if (!stop.condition || !is_about(*stop.condition, op)) continue;
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      const int t = op.outputs[k];
      auto [m, fresh] = known.try_emplace(t);
      if (fresh) {
        const Tensor value = value_after(r.tensors[static_cast<size_t>(t)], op.seq);
        if (!value.defined())
          ++unknown;
        else
          m->second = moments_of(value);
      }
      const double value = stop.condition->measure->of(m->second);
      if (m->second.any() && stop.condition->holds(value, 0)) return WalkStop{op.seq, b, static_cast<int>(k), value};
    }
  }
  return std::nullopt;
}

/// Tensors of one memory.
std::map<uint32_t, std::vector<int>> by_storage(const StepRecord& r) {
  std::map<uint32_t, std::vector<int>> all;
  for (size_t i = 0; i < r.tensors.size(); ++i) all[r.tensors[i].storage].push_back(static_cast<int>(i));
  return all;
}

/// A gradient in its place that no op made: what an op gave was copied to it, for the recorder held that. Where nobody
/// holds it, it is moved.
bool is_copied_gradient(const StepRecord& r, const TensorRecord& t) {
  if (t.category != Category::gradient || !t.name.starts_with("grad of ")) return false;
  if (t.producer == 0) return true;
  const std::vector<int>& out = r.ops.at(t.producer - 1).outputs;
  return std::none_of(out.begin(), out.end(),
                      [&](int o) { return r.tensors[static_cast<size_t>(o)].storage == t.storage; });
}

/// What was moved to the place of a gradient is there only as that.
void end_source(const StepRecord& r, int gradient, std::vector<TensorLife>& lives) {
  const TensorRecord& g = r.tensors[static_cast<size_t>(gradient)];
  if (g.producer == 0) return;
  const auto storage_of = [&](int t) { return r.tensors[static_cast<size_t>(t)].storage; };
  for (int out : r.ops.at(g.producer - 1).outputs) {
    if (r.tensors[static_cast<size_t>(out)].layout.numel() != g.layout.numel()) continue;
    const bool read = std::any_of(r.ops.begin(), r.ops.end(), [&](const OpRecord& op) {
      return op.seq > g.producer &&
             std::any_of(op.inputs.begin(), op.inputs.end(), [&](int in) { return storage_of(in) == storage_of(out); });
    });
    for (size_t i = 0; i < lives.size() && !read; ++i)
      if (r.tensors[i].storage == storage_of(out)) lives[i].to = g.producer;
  }
}

}  // namespace

uint32_t walk_to(const StepRecord& r, uint32_t from, WalkMove move, bool back) {
  const OpRecord* here = op_at(r, from);
  const std::string module = here ? module_path(here->origin.module) : std::string();
  const int64_t by = back ? -1 : 1, last = static_cast<int64_t>(r.ops.size());
  for (int64_t seq = int64_t{from} + by; seq >= 1 && seq <= last; seq += by)
    if (const OpRecord* op = op_at(r, seq); op && moves_to(module, module_path(op->origin.module), move))
      return op->seq;
  return 0;
}

std::vector<WalkBreak> parse_breaks(const std::string& text) {
  std::vector<WalkBreak> all;
  for (const std::string& one : split_list(text)) {
    WalkBreak b{one};
    const size_t blank = one.find(' ');
    const std::string first = one.substr(0, blank), rest = blank == one.npos ? "" : one.substr(blank + 1);
    if ((first == "module" || first == "op") && rest.find_first_not_of(' ') != rest.npos) {
      (first == "op" ? b.op : b.module) = rest.substr(rest.find_first_not_of(' '));
    } else if (first == "module" || first == "op") {
      throw Error::usage(fmt::format("break: \"{}\": a pattern of names is missing", one),
                         first == "op" ? "as in \"op conv2d\"" : "as in \"module features.*\"");
    } else {
      b.condition = parse_op_condition(one);
    }
    all.push_back(std::move(b));
  }
  return all;
}

WalkRun run_to_break(const StepRecord& r, uint32_t from, const std::vector<WalkBreak>& breaks, bool back) {
  WalkRun run;
  for (uint32_t seq = walk_to(r, from, WalkMove::op, back); seq; seq = walk_to(r, seq, WalkMove::op, back))
    if ((run.stop = holds_at(r, r.ops[seq - 1], breaks, run.unknown))) break;
  return run;
}

std::vector<WalkTensor> tensors_at(const StepRecord& r, uint32_t seq) {
  std::vector<WalkTensor> all;
  const OpRecord* op = op_at(r, seq);
  if (!op) return all;
  const auto add = [&](int t, WalkTensor::Role role) {
    const TensorRecord& record = r.tensors[static_cast<size_t>(t)];
    const bool written = std::any_of(record.versions.begin(), record.versions.end(),
                                     [&](const TensorVersion& v) { return v.from == seq; });
    const auto known = std::find_if(all.begin(), all.end(), [&](const WalkTensor& w) { return w.tensor == t; });
    if (known != all.end()) {
      if (role == WalkTensor::Role::output) known->role = WalkTensor::Role::changed;
      return;
    }
    const bool made = record.producer == seq && role == WalkTensor::Role::output && !written;
    all.push_back({written ? WalkTensor::Role::changed : role, t, made ? Tensor() : value_before(record, seq),
                   value_after(record, seq)});
  };
  for (int t : op->inputs) add(t, WalkTensor::Role::input);
  for (int t : op->outputs) add(t, WalkTensor::Role::output);
  return all;
}

std::vector<TensorLife> tensor_lives(const StepRecord& r) {
  std::map<uint32_t, std::vector<uint32_t>> taken;  // by op: the blocks it asked for, in order
  std::map<uint32_t, uint32_t> given_back;          // by block: when which op had been the last
  for (const AllocEvent& a : r.allocs) {
    if (a.bytes < 0)
      given_back[a.block] = a.origin.seq;
    else if (a.origin.category != Category::workspace)
      taken[a.origin.seq].push_back(a.block);
  }
  uint32_t last_backward = 0;
  for (const OpRecord& op : r.ops)
    if (op.origin.phase == Phase::backward) last_backward = op.seq;
  std::vector<TensorLife> lives(r.tensors.size());
  std::vector<int> copied;
  for (const auto& [storage, tensors] : by_storage(r)) {
    // It begins with whoever made the first of them; what no op made was there.
    uint32_t maker = UINT32_MAX;
    for (int t : tensors) maker = std::min(maker, r.tensors[static_cast<size_t>(t)].producer);
    TensorLife life{maker};
    const TensorRecord& first = r.tensors[static_cast<size_t>(tensors.front())];
    if (is_copied_gradient(r, first)) {
      life.from = first.producer ? first.producer : last_backward;
      copied.push_back(tensors.front());
    } else if (maker > 0 && maker <= r.ops.size()) {
      // Its place among the memories that this op made.
      size_t place = 0;
      std::vector<uint32_t> before;
      for (int out : r.ops[maker - 1].outputs) {
        const TensorRecord& o = r.tensors[static_cast<size_t>(out)];
        if (o.storage == storage) break;
        if (o.producer == maker && std::find(before.begin(), before.end(), o.storage) == before.end()) {
          before.push_back(o.storage);
          ++place;
        }
      }
      if (const auto blocks = taken.find(maker); blocks != taken.end() && place < blocks->second.size())
        if (const auto end = given_back.find(blocks->second[place]); end != given_back.end()) life.to = end->second;
    }
    for (int t : tensors) lives[static_cast<size_t>(t)] = life;
  }
  for (int gradient : copied) end_source(r, gradient, lives);
  return lives;
}

}  // namespace tenon::tracing
