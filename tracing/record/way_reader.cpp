#include "tracing/record/way_reader.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "core/symbol_names.h"
#include "engine/nn/module.h"
#include "tracing/record/heap_block.h"

namespace tenon::tracing {
namespace {

using Stop = PointerWalk::Stop;

std::string held_bytes_text(uint64_t bytes) {
  auto v = static_cast<double>(bytes);
  const char* unit = nullptr;
  for (const char* next : {"KiB", "MiB", "GiB"})
    if (v >= 1024) v /= 1024, unit = next;
  return unit ? fmt::format("{:.1f} {}", v, unit) : fmt::format("{} bytes", bytes);
}
std::string block_text(MemorySpan s) { return "a block of " + held_bytes_text(s.bytes()); }

}  // namespace

WayReader::WayReader(const MemoryImage& image, const PointerWalk& walk, const KnownObjects& known, Names& names)
    : image_(image), walk_(walk), known_(known), names_(names) {}

Holding WayReader::read(const std::vector<Stop>& way, const Storage& target) {
  follow(way);
  out_.distance = way.back().distance;
  out_.bytes = static_cast<int64_t>(target.bytes);
  std::string last = "its storage of " + held_bytes_text(target.bytes);
  if (out_.by_view()) last += ", of which it shows " + held_bytes_text(static_cast<uint64_t>(out_.shown));
  say(last);
  return std::move(out_);
}

TensorOwner WayReader::owner(const std::vector<Stop>& way) {
  follow(way);
  return std::move(out_.owner);
}

void WayReader::follow(const std::vector<Stop>& way) {
  begin(walk_.root(way.front()), way[1]);
  for (size_t i = 1; i + 1 < way.size(); ++i) stop(way[i - 1], way[i], way[i + 1]);
}

void WayReader::begin(const PointerWalk::Root& root, const Stop& first) {
  if (root.of) {
    const auto [name, fresh] = names_.try_emplace(first.slot);
    if (fresh) name->second = variable_at(*root.of, first.slot);
    const std::string &variable = name->second, file = file_name(root.of->file);
    const char* kind = root.of->of_thread ? "the thread_local variable" : "the variable";
    return own(OwnerKind::variable, variable.empty()
                                        ? fmt::format("a static variable of {} that has no name there", file)
                                        : fmt::format("{} {} of {}", kind, short_class(variable), file));
  }
  if (const auto o = known_.objects.find(root.object); o != known_.objects.end()) {
    layer_ = o->second.kind == OwnerKind::layer ? o->second.name : "";
    return own(o->second.kind, o->second.name);
  }
  if (const auto t = known_.tensors.find(root.object); t != known_.tensors.end()) {
    of_ = t->second;
    return own(OwnerKind::session, of_);
  }
  if (root.object == known_.session || !by_class(HeapBlock(image_, root.span)))
    own(OwnerKind::session, "the training session");
}

void WayReader::own(OwnerKind kind, const std::string& name) {
  out_.owner = {kind, name};
  say(name);
}

void WayReader::say(const std::string& text) {
  tell_nodes();
  if (out_.chain.empty() || out_.chain.back() != text) out_.chain.push_back(text);
}

/// Nodes in a row are one line.
void WayReader::tell_nodes() {
  if (nodes_ == 1) out_.chain.push_back("its graph: " + last_node_);
  if (nodes_ > 1) out_.chain.push_back(fmt::format("its graph: {} nodes on, {}", nodes_, last_node_));
  nodes_ = 0;
}

void WayReader::stop(const Stop& before, const Stop& here, const Stop& next) {
  const HeapBlock block(image_, here.block);
  if (node_ && here.block.begin == std::exchange(node_, 0) && graph_node(block, next)) return;
  if (hooks_ && here.block.begin == hooks_) return own(OwnerKind::tensor_hook, "a hook on the gradient of " + of_);
  if (const TensorImpl* t = block.tensor()) return tensor(block, *t, before);
  if (const AutogradMeta* m = block.history()) return history(*m, next.value);
  if (out_.tensor) return say(block_text(here.block));
  object(block, next);
}

void WayReader::tensor(const HeapBlock& block, const TensorImpl& t, const Stop& before) {
  out_.shown = t.meta.shape.product() * static_cast<int64_t>(itemsize(t.meta.dtype));
  const bool is_gradient = std::exchange(gradient_, false);
  if (const auto known = known_.tensors.find(block.span().begin); known != known_.tensors.end()) {
    of_ = known->second;
    return say(of_);
  }
  if (!out_.tensor) {
    out_.tensor = block.span().begin;
    out_.storage = address_of(t.storage.get());
    out_.handles = t.refs.load();
    out_.container = before.block.begin;
    if (is_gradient) own(OwnerKind::gradient, "the gradient of " + of_);
  }
  say(fmt::format("tensor {} {}", tenon::name(t.meta.dtype), to_string(t.meta.shape)));
}

void WayReader::history(const AutogradMeta& m, uint64_t next) {
  gradient_ = next == address_of(m.grad.impl());
  if (next == address_of(m.fn.get())) node_ = next;
}

bool WayReader::graph_node(const HeapBlock& block, const Stop& next) {
  const Node* n = block.node();
  if (!n) return false;
  if (n->op) {
    ++nodes_;
    last_node_ = fmt::format("{} of '{}'", n->op->info.name, module_path(n->origin.module));
    out_.by_graph = true;
  }
  const auto edges = address_of(n->next);
  if (n->hooks && next.value == address_of(n->hooks.get()))
    hooks_ = next.value;
  else if (next.slot >= edges && next.slot < edges + n->inputs * sizeof(Edge))
    node_ = next.value;
  return true;
}

/// A block before the owner's handle: one of the session's objects, an object that tells its class, or just a block.
void WayReader::object(const HeapBlock& block, const Stop& next) {
  const MemorySpan& span = block.span();
  if (const auto o = known_.objects.lower_bound(span.begin); o != known_.objects.end() && span.holds(o->first)) {
    layer_ = o->second.kind == OwnerKind::layer ? o->second.name : "";
    return own(o->second.kind, o->second.name);
  }
  const std::string shown = short_class(block.object_class().name);
  if (shown == "tenon::nn::Module::Hooks" && !layer_.empty()) {
    constexpr uint64_t kCounts = 16;  // of the shared pointer that has them
    const char* which = nn::Module::hooks_at(next.slot - span.begin - kCounts);
    return own(OwnerKind::hook, fmt::format("{} {}", which, layer_));
  }
  if (!by_class(block)) say(shown.empty() ? block_text(span) : "an object " + shown);
}

/// Whether an object's class says what part of a session it is.
bool WayReader::by_class(const HeapBlock& object) {
  static constexpr struct {
    const char* base;
    OwnerKind kind;
    const char* called;
  } kParts[] = {{"tenon::Callback", OwnerKind::callback, "the callback"},
                {"tenon::nn::Module", OwnerKind::layer, "a layer"},
                {"tenon::data::Dataset", OwnerKind::data_set, "the data set"},
                {"tenon::optim::Optimizer", OwnerKind::optimizer, "the optimizer"}};
  const ObjectClass c = object.object_class();
  for (const auto& part : kParts)
    if (c.is_a(part.base)) {
      own(part.kind, fmt::format("{} {}", part.called, short_class(c.name)));
      return true;
    }
  return false;
}

}  // namespace tenon::tracing
