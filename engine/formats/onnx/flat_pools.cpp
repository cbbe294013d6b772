#include "engine/formats/onnx/flat_pools.h"

#include <algorithm>
#include <set>

#include "engine/formats/onnx/value_flow.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

using Sizes = std::vector<int64_t>;

/// Whether the node puts in, or takes out, the axis behind batch and channels alone.
bool is_of_axis_two(const OnnxGraph& g, const OnnxNode& n, const char* type) {
  if (n.op_type != type || !n.domain.empty() || n.inputs.size() != 2) return false;
  const Tensor* axes = g.initializer(n.inputs[1]);
  return axes && axes->dtype() == DType::i64 && axes->numel() == 1 && contiguous(*axes).data<int64_t>()[0] == 2;
}

/// How many of the first axes of a window are of one element that stays where it is.
size_t trivial_axes(const OnnxNode& pool, size_t axes) {
  const Sizes kernel = pool.integers("kernel_shape"), stride = pool.integers("strides", Sizes(axes, 1)),
              pads = pool.integers("pads", Sizes(2 * axes, 0)), dilation = pool.integers("dilations", Sizes(axes, 1));
  if (stride.size() != axes || pads.size() != 2 * axes || dilation.size() != axes) return 0;
  size_t n = 0;
  while (n + 1 < axes && kernel[n] == 1 && stride[n] == 1 && pads[n] == 0 && pads[axes + n] == 0 && dilation[n] == 1)
    ++n;
  return n;
}

void without_first(OnnxNode& pool, size_t axes, size_t n) {
  for (OnnxAttribute& a : pool.attributes) {
    auto* sizes = std::get_if<Sizes>(&a.value);
    if (!sizes) continue;
    const auto drop = [&](size_t from) {
      sizes->erase(sizes->begin() + static_cast<ptrdiff_t>(from), sizes->begin() + static_cast<ptrdiff_t>(from + n));
    };
    if (sizes->size() == 2 * axes) drop(axes);
    drop(0);
  }
}

/// What a pool stands between: the nodes that put axes in for it, and those that take them out, from the pool on.
void flatten(const OnnxGraph& g, const ValueFlow& flow, OnnxNode& pool, std::set<size_t>& gone) {
  const auto is_read_once = [&](const std::string& value) {
    return flow.readers(value).size() == 1 && !flow.is_output(value);
  };
  const size_t axes = pool.integers("kernel_shape").size(), most = trivial_axes(pool, axes);
  std::vector<size_t> in, out;
  for (std::string value = pool.inputs[0]; in.size() < most && is_read_once(value);) {
    const int at = flow.maker(value);
    if (at < 0 || !is_of_axis_two(g, g.nodes[static_cast<size_t>(at)], "Unsqueeze")) break;
    in.push_back(static_cast<size_t>(at));
    value = g.nodes[in.back()].inputs[0];
  }
  for (std::string value = pool.outputs[0]; out.size() < in.size() && is_read_once(value);) {
    const size_t at = flow.readers(value)[0];
    if (!is_of_axis_two(g, g.nodes[at], "Squeeze")) break;
    out.push_back(at);
    value = g.nodes[at].outputs[0];
  }
  const size_t n = out.size();
  if (n == 0) return;
  pool.inputs[0] = g.nodes[in[n - 1]].inputs[0];
  pool.outputs[0] = g.nodes[out[n - 1]].outputs[0];
  without_first(pool, axes, n);
  gone.insert(in.begin(), in.begin() + static_cast<ptrdiff_t>(n));
  gone.insert(out.begin(), out.end());
}

}  // namespace

void flatten_pools(OnnxGraph& graph) {
  const ValueFlow flow(graph);
  std::set<size_t> gone;
  for (OnnxNode& n : graph.nodes)
    if ((n.op_type == "AveragePool" || n.op_type == "MaxPool") && n.domain.empty() && n.outputs.size() == 1)
      flatten(graph, flow, n, gone);
  if (gone.empty()) return;
  std::vector<OnnxNode> rest;
  std::set<std::string> read, no_more;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (gone.contains(i)) {
      no_more.insert(graph.nodes[i].inputs[1]);
    } else {
      read.insert(graph.nodes[i].inputs.begin(), graph.nodes[i].inputs.end());
      rest.push_back(std::move(graph.nodes[i]));
    }
  graph.nodes = std::move(rest);
  std::erase_if(graph.initializers,
                [&](const auto& one) { return no_more.contains(one.first) && !read.contains(one.first); });
}

}  // namespace tenon::formats
