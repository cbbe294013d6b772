#include "engine/graph/kernel_chains.h"

#include <algorithm>

#include "core/parallel.h"

namespace tenon {
namespace {

using Step = StepTrace::Step;
using Window = StepTrace::Window;

int64_t elements_of(const Window& w) { return w.layout.size.product(); }

/// Constants that a step writes: they are made anew before the step that reads them first.
std::vector<bool> written_constants(const StepTrace& trace) {
  std::vector<bool> written(trace.blocks.size());
  for (const Step& s : trace.steps) {
    for (const Window& w : s.out)
      if (w.block >= 0) written[static_cast<size_t>(w.block)] = true;
    for (size_t k = 0; k < s.in.size(); ++k)
      if ((s.op->writes >> k & 1u) && s.in[k].block >= 0) written[static_cast<size_t>(s.in[k].block)] = true;
  }
  for (size_t b = 0; b < written.size(); ++b)
    if (trace.blocks[b].origin != StepTrace::Origin::constant) written[b] = false;
  return written;
}

/// Why a pointwise kernel can be in no chain; empty: it can.
std::string why_alone(const StepTrace& trace, const Step& s, const std::vector<bool>& anew) {
  if (!s.loop) return "it is not one loop over numbers of f32";
  const Window& to = s.out[0];
  if (to.block < 0 || trace.blocks[static_cast<size_t>(to.block)].origin != StepTrace::Origin::made)
    return "it writes what outlives the step";
  if (to.dtype != DType::f32) return "it is not of f32";
  if (!to.layout.is_dense()) return "its result has gaps";
  for (const Window& w : s.in)
    if (w.block >= 0 && anew[static_cast<size_t>(w.block)]) return "a constant is made anew for it";
  for (const StepTrace::LoopOperand& o : s.operands) {
    if (o.in < 0) continue;
    const Window& w = s.in[static_cast<size_t>(o.in)];
    if (w.dtype != DType::f32) return "an operand is not of f32";
    if (!read_as(w, to)) return "an operand is laid out in another way than its result";
  }
  return {};
}

/// Whether both go over the same elements of one block, one behind the other. `b` has no gaps.
bool same_elements(const Window& a, const Window& b) {
  return a.layout.offset == b.layout.offset && elements_of(a) == elements_of(b) && a.layout.is_dense();
}

/// Whether `s` can be done tile by tile with the steps before it: what one of them writes, another looks at element by
/// element.
bool can_follow(const StepTrace& trace, const KernelChain& c, size_t at) {
  const Step& s = trace.steps[at];
  const Window& to = s.out[0];
  for (size_t i = c.first; i <= at; ++i) {
    const Step& e = trace.steps[i];
    for (const Window& w : e.in)
      if (w.block == to.block && !same_elements(w, to)) return false;
    if (i == at) break;
    if (e.out[0].block == to.block && !same_elements(e.out[0], to)) return false;
    for (const Window& w : s.in)
      if (w.block == e.out[0].block && !same_elements(w, e.out[0])) return false;
  }
  return true;
}

}  // namespace

std::optional<TileOperand> read_as(const Window& from, const Window& to) {
  std::vector<int> axes;  // of the result, outermost first
  for (int a = 0; a < to.layout.size.n; ++a)
    if (to.layout.size[a] > 1) axes.push_back(a);
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return to.layout.stride[a] > to.layout.stride[b]; });
  // From the innermost axis out: some along which one number stays, some whose numbers lie one behind the other, some
  // along which all of them come again.
  TileOperand o;
  int64_t all = 1;
  for (size_t k = axes.size(); k-- > 0;) {
    const int64_t size = to.layout.size[axes[k]];
    const int axis = axes[k] - to.layout.size.n + from.layout.size.n;
    const bool stays = axis < 0 || from.layout.size[axis] == 1 || from.layout.stride[axis] == 0;
    all *= size;
    if (stays && o.count == 0) {
      o.each *= size;
    } else if (!stays) {
      const int64_t behind = std::max<int64_t>(o.count, 1);
      if (from.layout.stride[axis] != behind || behind * size * o.each != all) return {};
      o.count = behind * size;
    }
  }
  if (o.count == 0) return TileOperand{.stride = 0};  // a number that was expanded
  if (o.count == all) return TileOperand{};
  o.held = o.count;
  return o;
}

KernelChains find_chains(const StepTrace& trace) {
  KernelChains found;
  found.of_step.assign(trace.steps.size(), -1);
  found.why.resize(trace.steps.size());
  const std::vector<bool> anew = written_constants(trace);
  KernelChain open;  // count 0: none is
  bool pointwise_before = false;
  const auto close = [&] {
    if (open.count > 1) {
      for (size_t i = open.first; i < open.first + open.count; ++i)
        found.of_step[i] = static_cast<int>(found.chains.size());
      found.chains.push_back(open);
    }
    open = {};
  };
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const Step& s = trace.steps[i];
    const bool pointwise = s.op->info.kind == OpKind::pointwise;
    std::string why = pointwise ? why_alone(trace, s, anew) : "it is not pointwise";
    const bool fits = why.empty();
    if (fits && open.count == 0) why = "the one before it can be in no chain";
    if (fits && open.count > 0) {
      if (elements_of(s.out[0]) != open.elements)
        why = "it goes over another number of elements";
      else if (!can_follow(trace, open, i))
        why = "it needs other elements than its own of what was just written";
      else
        ++open.count;
    }
    if (!why.empty()) {
      close();
      if (fits) open = {i, 1, elements_of(s.out[0])};
      if (pointwise && pointwise_before) found.why[i] = why;
    }
    pointwise_before = pointwise;
  }
  close();
  return found;
}

void run_chain(const std::vector<TileStep>& steps, int64_t elements) {
  parallel_for(elements, kLoopGrain,
               [&](int64_t begin, int64_t end) { run_tiles(steps.data(), steps.size(), begin, end); });
}

}  // namespace tenon
