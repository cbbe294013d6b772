// ONNX's control flow, sequences and optionals.
#include <algorithm>

#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/join.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

const OnnxGraph& body_of(const OnnxCall& c, const char* attribute) {
  const auto* v = c.node.find(attribute);
  const auto* g = v ? std::get_if<std::shared_ptr<OnnxGraph>>(v) : nullptr;
  if (!g) throw Error(fmt::format("its body \"{}\" is missing", attribute));
  return **g;
}

TENON_ONNX_ITEMS(Identity) {
  if (c.items.empty()) throw Error("input 0 is missing");
  return {c.items[0]};
}

TENON_ONNX_ITEMS(If) { return c.run(item(c.input(0)) != 0 ? "then_branch" : "else_branch", {}); }

// The body takes (iteration, condition, carried...) and gives (condition, carried..., one slice of each scanned
// output...).
TENON_ONNX_ITEMS(Loop) {
  const OnnxGraph& body = body_of(c, "body");
  const size_t carried = c.items.size() < 2 ? 0 : c.items.size() - 2;
  if (body.outputs.size() < 1 + carried) throw Error("its body has fewer outputs than values are carried");
  const size_t scanned = body.outputs.size() - 1 - carried;
  const bool counted = c.has(0), conditional = c.has(1);
  const int64_t trips = counted ? c.whole(0) : INT64_MAX;
  bool go = !conditional || item(c.in[1]) != 0;
  Items state(c.items.begin() + static_cast<int64_t>(std::min<size_t>(2, c.items.size())), c.items.end());
  std::vector<std::vector<Tensor>> slices(scanned);
  for (int64_t i = 0; i < trips && go; ++i) {
    Items in{scalar(static_cast<double>(i), DType::i64), scalar(go, DType::boolean)};
    in.insert(in.end(), state.begin(), state.end());
    const Items out = c.run("body", in);
    if (out[0].tensor) go = item(out[0].tensor) != 0;
    state.assign(out.begin() + 1, out.begin() + 1 + static_cast<int64_t>(carried));
    for (size_t k = 0; k < scanned; ++k) {
      if (!out[1 + carried + k].tensor)
        throw OnnxUnsupported("a loop that gathers other than tensors is not supported");
      slices[k].push_back(out[1 + carried + k].tensor);
    }
  }
  for (size_t k = 0; k < scanned; ++k) {
    if (!slices[k].empty()) {
      state.push_back(stack(slices[k], 0));
      continue;
    }
    const OnnxValue& declared = body.outputs[1 + carried + k];
    Shape s{0};
    for (const OnnxDim& d : declared.shape) s.push_back(std::max<int64_t>(0, d.value));
    state.push_back(empty(s, declared.dtype));
  }
  return state;
}

// The body takes (state..., one slice of each scanned input...) and gives (state..., one slice of each scanned
// output...).
TENON_ONNX_ITEMS(Scan) {
  const OnnxGraph& body = body_of(c, "body");
  const bool batched = c.opset < 9;  // opset 8: sequence lengths in front, and a batch axis before the scanned one
  const size_t first = batched ? 1 : 0;
  const auto scanned = static_cast<size_t>(std::max<int64_t>(0, c.node.integer("num_scan_inputs", 0)));
  if (c.in.size() < first + scanned || scanned < 1) throw Error("it has fewer inputs than it scans");
  if (batched && c.has(0)) throw OnnxUnsupported("sequence lengths are not supported");
  const size_t states = c.in.size() - first - scanned;
  if (body.outputs.size() < states) throw Error("its body has fewer outputs than states");
  const size_t outputs = body.outputs.size() - states;
  const std::vector<int64_t> in_axes = c.node.integers("scan_input_axes", std::vector<int64_t>(scanned, 0)),
                             out_axes = c.node.integers("scan_output_axes", std::vector<int64_t>(outputs, 0)),
                             in_back = c.node.integers(batched ? "directions" : "scan_input_directions",
                                                       std::vector<int64_t>(scanned, 0)),
                             out_back = c.node.integers("scan_output_directions", std::vector<int64_t>(outputs, 0));
  if (in_axes.size() != scanned || in_back.size() != scanned || out_axes.size() != outputs ||
      out_back.size() != outputs)
    throw Error("axes or directions do not fit its inputs and outputs");
  // One run over sequences without a batch axis.
  auto one = [&](const std::vector<Tensor>& in) {
    Items state;
    for (size_t k = 0; k < states; ++k) state.push_back(in[k]);
    int64_t length = -1;
    std::vector<int> axes;
    for (size_t k = 0; k < scanned; ++k) {
      axes.push_back(wrap_axis(in_axes[k], in[states + k].ndim()));
      const int64_t n = in[states + k].size(axes[k]);
      if (length >= 0 && n != length) throw Error(fmt::format("scanned inputs of {} and {} elements", length, n));
      length = n;
    }
    std::vector<std::vector<Tensor>> slices(outputs);
    for (int64_t t = 0; t < length; ++t) {
      Items args = state;
      for (size_t k = 0; k < scanned; ++k)
        args.push_back(select(in[states + k], axes[k], in_back[k] ? length - 1 - t : t));
      const Items out = c.run("body", args);
      state.assign(out.begin(), out.begin() + static_cast<int64_t>(states));
      for (size_t k = 0; k < outputs; ++k) {
        if (!out[states + k].tensor) throw OnnxUnsupported("a scan that gathers other than tensors is not supported");
        slices[k].push_back(out[states + k].tensor);
      }
    }
    std::vector<Tensor> result;
    for (const OnnxItem& s : state) {
      if (!s.tensor) throw OnnxUnsupported("a scan with a state that is no tensor is not supported");
      result.push_back(s.tensor);
    }
    for (size_t k = 0; k < outputs; ++k) {
      if (slices[k].empty()) throw OnnxUnsupported("a scan over nothing is not supported");
      if (out_back[k]) std::reverse(slices[k].begin(), slices[k].end());
      result.push_back(stack(slices[k], wrap_axis(out_axes[k], slices[k][0].ndim() + 1)));
    }
    return result;
  };
  std::vector<Tensor> in;
  for (size_t k = first; k < c.in.size(); ++k) in.push_back(c.input(k));
  if (!batched) {
    const std::vector<Tensor> out = one(in);
    return {out.begin(), out.end()};
  }
  std::vector<std::vector<Tensor>> rows(states + outputs);
  for (int64_t b = 0; b < in[0].size(0); ++b) {
    std::vector<Tensor> row;
    for (const Tensor& t : in) row.push_back(select(t, 0, b));
    const std::vector<Tensor> out = one(row);
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(out[k]);
  }
  Items out;
  for (const auto& r : rows) out.push_back(stack(r, 0));
  return out;
}

size_t place_in(const OnnxCall& c, size_t input, size_t size, bool behind) {
  const int64_t n = static_cast<int64_t>(size), i = c.whole(input), at = i < 0 ? i + n : i;
  if (at < 0 || at >= n + (behind ? 1 : 0)) throw Error(fmt::format("position {} is outside a sequence of {}", i, n));
  return static_cast<size_t>(at);
}

TENON_ONNX_ITEMS(SequenceEmpty) { return {std::vector<Tensor>()}; }
TENON_ONNX_ITEMS(SequenceConstruct) { return {OnnxItem(c.inputs())}; }
TENON_ONNX_ITEMS(SequenceInsert) {
  std::vector<Tensor> s = c.sequence(0);
  s.insert(s.begin() + static_cast<int64_t>(c.has(2) ? place_in(c, 2, s.size(), true) : s.size()), c.input(1));
  return {OnnxItem(std::move(s))};
}
TENON_ONNX_ITEMS(SequenceErase) {
  std::vector<Tensor> s = c.sequence(0);
  if (s.empty()) throw Error("the sequence is empty");
  s.erase(s.begin() + static_cast<int64_t>(c.has(1) ? place_in(c, 1, s.size(), false) : s.size() - 1));
  return {OnnxItem(std::move(s))};
}
TENON_ONNX_ITEMS(SequenceAt) { return {c.sequence(0)[place_in(c, 1, c.sequence(0).size(), false)]}; }
TENON_ONNX_ITEMS(SequenceLength) { return {scalar(static_cast<double>(c.sequence(0).size()), DType::i64)}; }
TENON_ONNX_ITEMS(ConcatFromSequence) {
  const int64_t axis = c.node.integer("axis", 0);
  return {c.node.integer("new_axis", 0) ? stack(c.sequence(0), static_cast<int>(axis))
                                        : cat(c.sequence(0), static_cast<int>(axis))};
}
TENON_ONNX_ITEMS(SplitToSequence) {
  const Tensor& x = c.input(0);
  const int axis = wrap_axis(c.node.integer("axis", 0), x.ndim());
  if (c.has(1) && c.in[1].ndim() == 1) return {OnnxItem(split(x, c.list(1, ""), axis))};
  if (c.has(1)) return {OnnxItem(split(x, c.whole(1), axis))};
  std::vector<Tensor> parts = split(x, int64_t{1}, axis);
  if (x.size(axis) == 0) parts.clear();
  if (!c.node.integer("keepdims", 1))
    for (Tensor& t : parts) t = squeeze(t, axis);
  return {OnnxItem(std::move(parts))};
}
// Every sequence gives its next element, every tensor itself; outputs are collected.
TENON_ONNX_ITEMS(SequenceMap) {
  const size_t n = c.sequence(0).size(), outputs = body_of(c, "body").outputs.size();
  std::vector<std::vector<Tensor>> collected(outputs);
  for (size_t i = 0; i < n; ++i) {
    Items in;
    for (size_t k = 0; k < c.items.size(); ++k) {
      if (c.items[k].sequence && c.items[k].sequence->size() != n)
        throw Error("its sequences are of different lengths");
      in.push_back(c.items[k].sequence ? OnnxItem((*c.items[k].sequence)[i]) : c.items[k]);
    }
    const Items out = c.run("body", in);
    for (size_t k = 0; k < outputs; ++k) {
      if (!out[k].tensor) throw OnnxUnsupported("a map to other than tensors is not supported");
      collected[k].push_back(out[k].tensor);
    }
  }
  Items result;
  for (auto& s : collected) result.push_back(OnnxItem(std::move(s)));
  return result;
}

TENON_ONNX_ITEMS(Optional) { return {c.items.empty() ? OnnxItem() : c.items[0]}; }
TENON_ONNX_ITEMS(OptionalHasElement) { return {scalar(!c.items.empty() && !c.items[0].empty(), DType::boolean)}; }
TENON_ONNX_ITEMS(OptionalGetElement) {
  if (c.items.empty() || c.items[0].empty()) throw Error("the optional is empty");
  return {c.items[0]};
}

}  // namespace
}  // namespace tenon::formats
