#include "tracing/record/memory_owners.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "core/idle_memory.h"
#include "core/symbol_names.h"
#include "engine/autograd/idle_nodes.h"
#include "engine/autograd/node.h"
#include "engine/data/dataset.h"
#include "engine/nn/module.h"
#include "engine/optim/optimizer.h"
#include "engine/train/session.h"
#include "tracing/record/pointer_walk.h"

namespace tenon::tracing {
namespace {

using Stop = PointerWalk::Stop;

std::string size_text(int64_t bytes) {
  auto v = static_cast<double>(bytes);
  const char* unit = "bytes";
  for (const char* next : {"KiB", "MiB", "GiB"})
    if (v >= 1024) v /= 1024, unit = next;
  return unit == std::string_view("bytes") ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", v, unit);
}

std::string class_text(const void* object) {
  uint64_t first = 0;
  std::memcpy(&first, object, 8);
  return short_class(class_of_object(first).name);
}

uint64_t address_of(const void* p) { return reinterpret_cast<uint64_t>(p); }

/// Of what stands in a block, known by the block that leads to it.
enum StopKind { kAnything, kNode };

size_t tensor_header_bytes() {
  static const size_t size = malloc_usable_size(tensor_impl_new().get());
  return size;
}

/// Null where words are no tensor's header.
const TensorImpl* tensor_in(const Stop& s, const void* words) {
  // What would be left of a block is given with it where it is too little for one.
  if (s.block.bytes() < tensor_header_bytes() || s.block.bytes() > tensor_header_bytes() + 16) return nullptr;
  const auto* t = static_cast<const TensorImpl*>(words);
  const int refs = t->refs.load();
  if (refs < 1 || refs > 1 << 24 || t->flags > 3 || t->meta.dtype > DType::f64 || t->meta.shape.n > kMaxDims ||
      t->stride.n != t->meta.shape.n || static_cast<int>(t->meta.device.type) >= kDeviceTypes)
    return nullptr;
  return t;
}
TensorImpl* tensor_at(const Stop& s) {
  auto* at = reinterpret_cast<TensorImpl*>(s.block.begin);
  return tensor_in(s, at) ? at : nullptr;
}

const AutogradMeta* history_in(const Stop& s, const void* words) {
  static const uint64_t table = [] {
    const AutogradMeta one;
    uint64_t first = 0;
    std::memcpy(&first, static_cast<const void*>(&one), 8);
    return first;
  }();
  uint64_t first = 0;
  if (s.block.bytes() < sizeof(AutogradMeta)) return nullptr;
  std::memcpy(&first, words, 8);
  return first == table ? static_cast<const AutogradMeta*>(words) : nullptr;
}
const AutogradMeta* history_at(const Stop& s) { return history_in(s, reinterpret_cast<const void*>(s.block.begin)); }

/// Null where a block that should be a node is none: one that is kept for reuse may still lead to it.
const Node* node_in(const Stop& s, const void* words) {
  if (s.kind != kNode || s.block.bytes() < sizeof(Node)) return nullptr;
  const auto* n = static_cast<const Node*>(words);
  if (n->bytes < sizeof(Node) || n->bytes > s.block.bytes()) return nullptr;
  if (!n->op) return n;
  for (const OpDef& op : all_ops())
    if (&op == n->op) return n;
  return nullptr;
}

/// Where the handles of a tensor, its history and a node of its graph stand: sizes that are not used, and pointers that
/// are not counted, may have any words.
std::vector<PointerWalk::Part> parts_of(const Stop& s, const std::vector<uint64_t>& words) {
  std::vector<PointerWalk::Part> parts;
  if (words.empty()) return parts;
  const auto part = [&](const void* begin, size_t bytes, int leads_to = kAnything) {
    const uint64_t at = s.block.begin + (address_of(begin) - address_of(words.data()));
    parts.push_back({{at, at + bytes}, leads_to, 0});
  };
  if (const TensorImpl* t = tensor_in(s, words.data())) {
    part(&t->storage, 8, PointerWalk::kTarget);
    part(&t->grad, 8);
    part(&t->base, 8);
  } else if (const AutogradMeta* m = history_in(s, words.data())) {
    part(&m->fn, 8, kNode);
    part(&m->grad, 8);
  } else if (const Node* n = node_in(s, words.data())) {
    part(&n->hooks, 8);
    part(&n->retained, 8);
    const auto list = [&](const auto* begin, size_t count, int leads_to = kAnything, int step = 0) {
      const uint64_t at = address_of(begin), bytes = count * sizeof *begin;
      if (s.block.holds(at) && at + bytes <= s.block.end) parts.push_back({{at, at + bytes}, leads_to, step});
    };
    list(n->next, n->inputs, kNode);
    list(n->saved, n->saved_count);
    list(n->grads, n->outputs);
    if (n->op) list(static_cast<const char*>(n->attrs), n->op->attrs.size, kAnything, 1);
  }
  return parts;
}

/// What a way comes through, read from its root on.
class WayReader {
 public:
  /// `names`: of the variables that were come upon, by their addresses.
  using Names = std::map<uint64_t, std::string>;
  WayReader(const PointerWalk& walk, const KnownObjects& known, std::vector<Stop> way, Names& names)
      : walk_(walk), known_(known), way_(std::move(way)), names_(names) {}

  Holding read() {
    begin();
    for (size_t i = 1; i + 1 < way_.size(); ++i) stop(i);
    end();
    return std::move(out_);
  }
  /// Of a way that ends at a tensor.
  TensorOwner owner() {
    begin();
    for (size_t i = 1; i + 1 < way_.size(); ++i) stop(i);
    return out_.owner;
  }

 private:
  void begin() {
    const PointerWalk::Root& r = walk_.root(way_.front());
    if (!r.of) {
      if (const auto o = known_.objects.find(r.object); o != known_.objects.end()) {
        layer_ = o->second.kind == OwnerKind::layer ? o->second.name : "";
        return own(o->second.kind, o->second.name);
      }
      if (const auto t = known_.tensors.find(r.object); t != known_.tensors.end()) {
        of_ = t->second;
        return own(OwnerKind::session, of_);
      }
      if (r.object != known_.session && by_class(r.object)) return;
      return own(OwnerKind::session, "the training session");
    }
    const auto [name, fresh] = names_.try_emplace(way_[1].slot);
    if (fresh) name->second = variable_at(*r.of, way_[1].slot);
    const std::string &variable = name->second, file = file_name(r.of->file);
    const std::string kind = r.of->thread_local_ ? "the thread_local variable " : "the variable ";
    own(OwnerKind::variable, variable.empty() ? fmt::format("a static variable of {} that has no name there", file)
                                              : kind + short_class(variable) + " of " + file);
  }

  void own(OwnerKind kind, const std::string& name) {
    out_.owner = {kind, name};
    say(name);
  }
  void say(const std::string& text) {
    tell_nodes();
    if (out_.chain.empty() || out_.chain.back() != text) out_.chain.push_back(text);
  }
  /// Nodes in a row are one line.
  void tell_nodes() {
    if (!nodes_) return;
    const Origin& o = last_node_->origin;
    const std::string last = fmt::format("{} of '{}'", last_node_->op->info.name, module_path(o.module));
    out_.chain.push_back(nodes_ == 1 ? "its graph: " + last : fmt::format("its graph: {} nodes on, {}", nodes_, last));
    nodes_ = 0;
  }

  void stop(size_t i) {
    const Stop& s = way_[i];
    if (node_ && s.block.begin == address_of(node_) && is_node(s)) return graph_node(i);
    if (hooks_ && s.block.begin == address_of(hooks_))
      return own(OwnerKind::tensor_hook, "a hook on the gradient of " + of_);
    if (TensorImpl* t = tensor_at(s)) return tensor(i, t);
    if (const AutogradMeta* m = history_at(s)) return history(i, m);
    if (out_.tensor) return say("a block of " + size_text(static_cast<int64_t>(s.block.bytes())));
    object(s, i);
  }

  void tensor(size_t i, TensorImpl* t) {
    last_ = t;
    const auto known = known_.tensors.find(address_of(t));
    std::string text = fmt::format("tensor {} {}", tenon::name(t->meta.dtype), to_string(t->meta.shape));
    if (known != known_.tensors.end()) {
      of_ = known->second;
      text = of_;
    } else if (!out_.tensor) {
      out_.tensor = t;
      out_.container = way_[i - 1].block.begin;
      if (gradient_) own(OwnerKind::gradient, "the gradient of " + of_);
    }
    gradient_ = false;
    say(text);
  }

  void history(size_t i, const AutogradMeta* m) {
    const uint64_t next = way_[i + 1].value;
    gradient_ = next == address_of(m->grad.impl());
    node_ = next == address_of(m->fn.get()) ? m->fn.get() : nullptr;
  }

  static bool is_node(Stop s) {
    s.kind = kNode;
    return node_in(s, reinterpret_cast<const void*>(s.block.begin)) != nullptr;
  }
  void graph_node(size_t i) {
    const Node* n = std::exchange(node_, nullptr);
    if (n->op) {
      ++nodes_;
      last_node_ = n;
      out_.by_graph = true;
    }
    in_node_ = true;
    const uint64_t next = way_[i + 1].value, slot = way_[i + 1].slot;
    if (n->hooks && next == address_of(n->hooks.get())) {
      hooks_ = n->hooks.get();
      in_node_ = false;
    } else if (slot >= address_of(n->next) && slot < address_of(n->next + n->inputs)) {
      node_ = reinterpret_cast<const Node*>(next);
    }
  }

  /// A block before the owner's handle: one of the session's objects, an object that tells its class, or just a block.
  void object(const Stop& s, size_t i) {
    const auto known = known_.objects.lower_bound(s.block.begin);
    if (known != known_.objects.end() && s.block.holds(known->first)) {
      layer_ = known->second.kind == OwnerKind::layer ? known->second.name : "";
      return own(known->second.kind, known->second.name);
    }
    const std::string shown = class_text(reinterpret_cast<const void*>(s.block.begin));
    if (shown == "tenon::nn::Module::Hooks" && !layer_.empty()) return hook(s, way_[i + 1].slot);
    if (!by_class(s.block.begin))
      say(shown.empty() ? "a block of " + size_text(static_cast<int64_t>(s.block.bytes())) : "an object " + shown);
  }

  /// Whether an object's class says what part of a session it is.
  bool by_class(uint64_t object) {
    uint64_t first = 0;
    std::memcpy(&first, reinterpret_cast<const void*>(object), 8);
    const ObjectClass c = class_of_object(first);
    static const std::pair<const char*, std::pair<OwnerKind, const char*>> kinds[] = {
        {"tenon::Callback", {OwnerKind::callback, "the callback "}},
        {"tenon::nn::Module", {OwnerKind::layer, "a layer "}},
        {"tenon::data::Dataset", {OwnerKind::data_set, "the data set "}},
        {"tenon::optim::Optimizer", {OwnerKind::optimizer, "the optimizer "}},
    };
    for (const auto& [base, is] : kinds)
      if (c.is_a(base)) return own(is.first, is.second + short_class(c.name)), true;
    return false;
  }

  void hook(const Stop& s, uint64_t slot) {
    // Behind the counts of the shared pointer: lists of three words each, of hooks before, after, and backward.
    const uint64_t list = (slot - s.block.begin - 16) / 24;
    const char* when = list == 0 ? "a hook before " : list == 1 ? "a forward hook of " : "a backward hook of ";
    own(OwnerKind::hook, when + layer_);
  }

  void end() {
    if (last_) {
      out_.shown = last_->meta.shape.product() * static_cast<int64_t>(itemsize(last_->meta.dtype));
      const auto* s = reinterpret_cast<const Storage*>(way_.back().value);
      out_.bytes = static_cast<int64_t>(s->bytes);
    }
    const auto* s = reinterpret_cast<const Storage*>(way_.back().value);
    say("its storage of " + size_text(static_cast<int64_t>(s->bytes)) +
        (out_.by_view() ? ", of which it shows " + size_text(out_.shown) : ""));
  }

  const PointerWalk& walk_;
  const KnownObjects& known_;
  std::vector<Stop> way_;
  Names& names_;
  Holding out_;
  std::string of_, layer_;
  TensorImpl* last_ = nullptr;
  const Node *node_ = nullptr, *last_node_ = nullptr;
  const NodeHooks* hooks_ = nullptr;
  int nodes_ = 0;
  bool gradient_ = false, in_node_ = false;
};

}  // namespace

const char* owner_kind_name(OwnerKind kind) {
  static constexpr const char* kNames[] = {"unknown",  "variable", "layer",     "hook",     "tensor_hook",
                                           "callback", "data_set", "optimizer", "gradient", "session"};
  return kNames[static_cast<size_t>(kind)];
}

KnownObjects::KnownObjects(TrainingSession& s) : session(address_of(&s)) {
  for (const auto& [path, module] : s.model().named_modules())
    objects[address_of(module)] = {
        OwnerKind::layer,
        path.empty() ? std::string("the model") : fmt::format("the layer '{}' ({})", path, class_text(module))};
  objects[address_of(&s.train_data())] = {OwnerKind::data_set, "the data set " + class_text(&s.train_data())};
  objects[address_of(&s.test_data())] = {OwnerKind::data_set, "the test set " + class_text(&s.test_data())};
  objects[address_of(&s.optimizer())] = {OwnerKind::optimizer, "the optimizer " + class_text(&s.optimizer())};
  for (const nn::Named& n : s.model().parameters()) tensors[address_of(n.tensor.impl())] = "the parameter " + n.name;
  for (const nn::Named& n : s.model().buffers()) tensors[address_of(n.tensor.impl())] = "the buffer " + n.name;
  for (const nn::Named& n : s.optimizer().state())
    tensors[address_of(n.tensor.impl())] = "what the optimizer keeps as " + n.name;
}

namespace {

/// Its callbacks: the session's own block has the list of them.
void add_callbacks(const MemoryImage& image, uint64_t session, std::vector<PointerWalk::Root>& roots) {
  const auto blocks_in = [&](MemorySpan span) {
    std::vector<MemorySpan> all;
    for (const uint64_t w : image.words(span))
      if (const MemorySpan b = image.block_of(w); b.bytes() > 0 && b.begin == w) all.push_back(b);
    return all;
  };
  constexpr uint64_t kLongestList = 4096;
  for (const MemorySpan& impl : blocks_in({session, session + 8}))
    for (const MemorySpan& list : blocks_in(impl)) {
      if (list.bytes() > kLongestList) continue;
      for (const MemorySpan& one : blocks_in(list)) {
        const std::vector<uint64_t> first = image.words({one.begin, one.begin + 8});
        if (!first.empty() && class_of_object(first[0]).is_a("tenon::Callback"))
          roots.push_back({one, nullptr, one.begin, 0});
      }
    }
}

/// The variables of the program and of plug-ins, and the parts of the session that keep something; farther off whatever
/// else the session has, and what comes with the system.
std::vector<PointerWalk::Root> roots_of(const MemoryImage& image, const KnownObjects& known) {
  constexpr int kElsewhere = 4;
  std::vector<PointerWalk::Root> roots;
  for (const StaticMemory& s : image.statics()) {
    const bool of_the_system = s.file.starts_with("/usr/") || s.file.starts_with("/lib");
    roots.push_back({s.span, &s, 0, of_the_system ? kElsewhere : 0});
  }
  for (const auto& [address, object] : known.objects)
    if (const MemorySpan b = image.block_of(address); b.bytes() > 0) roots.push_back({b, nullptr, address, 0});
  for (const auto& [address, named] : known.tensors) {
    const auto at = address_of(&reinterpret_cast<const TensorImpl*>(address)->grad);
    roots.push_back({{at, at + 8}, nullptr, address, 0});
  }
  add_callbacks(image, known.session, roots);
  roots.push_back({{known.session, known.session + 8}, nullptr, known.session, kElsewhere});
  return roots;
}

/// Those who have a handle of the same tensor about as near as its owner; farther off words are found that are left
/// over.
void add_others(const PointerWalk& walk, const KnownObjects& known, Holding& h, WayReader::Names& names) {
  constexpr int kAsNear = 1;
  if (!h.tensor || h.tensor->refs.load() < 2) return;
  int nearest = INT_MAX;
  const auto ways = walk.ways_to_block(address_of(h.tensor));
  for (const auto& w : ways) nearest = std::min(nearest, w.back().distance);
  for (const auto& w : ways) {
    if (w.back().distance > nearest + kAsNear) continue;
    const TensorOwner o = WayReader(walk, known, w, names).owner();
    if (!(o == h.owner) && std::find(h.others.begin(), h.others.end(), o) == h.others.end()) h.others.push_back(o);
  }
}

}  // namespace

std::vector<Holding> find_holders(const std::vector<Storage*>& targets, const KnownObjects& known,
                                  const void* passed_over) {
  const MemoryImage image;
  std::vector<PointerWalk::Root> roots = roots_of(image, known);
  std::vector<uint64_t> addresses;
  for (const Storage* s : targets) addresses.push_back(address_of(s));
  const uint64_t over = address_of(passed_over);
  const PointerWalk walk(image, std::move(roots), {idle_tensor_headers(), idle_nodes(), {over, over + 1}}, addresses,
                         parts_of, tensor_header_bytes());
  std::vector<Holding> all;
  WayReader::Names names;
  for (const uint64_t a : addresses) {
    std::vector<Stop> way = walk.way_to(a);
    if (way.empty()) {
      Holding nobody;
      nobody.owner.name = "memory that no known owner has";
      all.push_back(std::move(nobody));
    } else {
      const int distance = way.back().distance;
      all.push_back(WayReader(walk, known, std::move(way), names).read());
      all.back().distance = distance;
      add_others(walk, known, all.back(), names);
    }
  }
  return all;
}

Ref<Storage> TensorEmptier::zeros(size_t bytes, Device device) {
  Tensor& t = zeros_[bytes * 8 + static_cast<size_t>(device.type)];
  if (!t) {
    t = empty({static_cast<int64_t>(bytes)}, DType::u8, device);
    if (device.type == DeviceType::cpu) std::memset(t.storage()->data, 0, bytes);
  }
  return t.impl()->storage;
}

void TensorEmptier::empty_out(TensorImpl& t, bool keep_values) {
  if (!keep_values && t.storage) t.storage = zeros(t.storage->bytes, t.meta.device);
  t.base.reset();
  t.flags &= static_cast<uint8_t>(~TensorImpl::requires_grad);
  delete std::exchange(t.grad, nullptr);
  ++count_;
}

}  // namespace tenon::tracing
