#include "tracing/record/memory_owners.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "core/idle_memory.h"
#include "core/symbol_names.h"
#include "engine/autograd/idle_nodes.h"
#include "engine/autograd/node.h"
#include "engine/data/dataset.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/optim/optimizer.h"
#include "engine/train/callback.h"
#include "engine/train/session.h"
#include "tracing/record/heap_block.h"
#include "tracing/record/pointer_walk.h"
#include "tracing/record/way_reader.h"

namespace tenon::tracing {
namespace {

using Stop = PointerWalk::Stop;

std::string class_text(const void* object) {
  uint64_t first = 0;
  std::memcpy(&first, object, 8);
  return short_class(class_of_object(first).name);
}

/// Where the handles of a tensor, its history and a node of its graph stand: sizes that are not used, and pointers that
/// are not counted, may have any words.
std::vector<PointerWalk::Part> parts_of(const Stop& s, const HeapBlock& block) {
  std::vector<PointerWalk::Part> parts;
  const auto handle = [&](const void* member, int leads_to = kAnything) {
    const uint64_t at = block.place_of(member);
    parts.push_back({{at, at + 8}, leads_to, 0});
  };
  // Behind the node in its block.
  const auto list = [&](const void* begin, size_t bytes, int leads_to, int step) {
    const uint64_t at = address_of(begin);
    if (s.block.holds(at) && bytes <= s.block.end - at) parts.push_back({{at, at + bytes}, leads_to, step});
  };
  if (const TensorImpl* t = block.tensor()) {
    handle(&t->storage, PointerWalk::kTarget);
    handle(&t->grad);
    handle(&t->base);
  } else if (const AutogradMeta* m = block.history()) {
    handle(&m->fn, kNode);
    handle(&m->grad);
  } else if (const Node* n = s.kind == kNode ? block.node() : nullptr) {
    handle(&n->hooks);
    handle(&n->retained);
    list(n->next, n->inputs * sizeof *n->next, kNode, 0);
    list(n->saved, n->saved_count * sizeof *n->saved, kAnything, 0);
    list(n->grads, n->outputs * sizeof *n->grads, kAnything, 0);
    if (n->op) list(n->attrs, n->op->attrs.size, kAnything, 1);
  }
  return parts;
}

}  // namespace

const char* owner_kind_name(OwnerKind kind) {
  static constexpr const char* kNames[] = {"unknown",  "variable", "layer",     "hook",     "tensor_hook",
                                           "callback", "data_set", "optimizer", "gradient", "session"};
  return kNames[static_cast<size_t>(kind)];
}

Holding Holding::by_nobody() {
  Holding h;
  h.owner.name = "nobody that is known";
  return h;
}

KnownObjects::KnownObjects(TrainingSession& s) : session(address_of(&s)) {
  for (const auto& [path, module] : s.model().named_modules())
    objects[address_of(module)] = {
        OwnerKind::layer,
        path.empty() ? std::string("the model") : fmt::format("the layer '{}' ({})", path, class_text(module))};
  objects[address_of(&s.train_data())] = {OwnerKind::data_set, "the data set " + class_text(&s.train_data())};
  objects[address_of(&s.test_data())] = {OwnerKind::data_set, "the test set " + class_text(&s.test_data())};
  for (const Callback* c : s.listed_callbacks())
    objects[address_of(c)] = {OwnerKind::callback, "the callback " + class_text(c)};
  objects[address_of(&s.optimizer())] = {OwnerKind::optimizer, "the optimizer " + class_text(&s.optimizer())};
  for (const nn::Named& n : s.model().parameters()) tensors[address_of(n.tensor.impl())] = "the parameter " + n.name;
  for (const nn::Named& n : s.model().buffers()) tensors[address_of(n.tensor.impl())] = "the buffer " + n.name;
  for (const nn::Named& n : s.optimizer().state())
    tensors[address_of(n.tensor.impl())] = "what the optimizer keeps as " + n.name;
}

namespace {

/// What comes with the distribution knows nothing of tensors.
bool is_of_the_system(const std::string& file) {
  return (file.starts_with("/usr/lib/") || file.starts_with("/lib/")) && file.find("tenon") == file.npos;
}

/// The variables of the program and of plug-ins, and the parts of the session that keep something; farther off whatever
/// else the session has, and what comes with the system.
std::vector<PointerWalk::Root> roots_of(const MemoryImage& image, const KnownObjects& known) {
  constexpr int kElsewhere = 4;  // blocks: what has no nearer owner still has this one
  std::vector<PointerWalk::Root> roots;
  for (const StaticMemory& s : image.statics())
    roots.push_back({s.span, &s, 0, is_of_the_system(s.file) ? kElsewhere : 0});
  for (const auto& [address, object] : known.objects)
    if (const MemorySpan b = image.block_of(address); b.bytes() > 0) roots.push_back({b, nullptr, address, 0});
  for (const auto& [address, named] : known.tensors) {
    const auto at = address_of(&reinterpret_cast<const TensorImpl*>(address)->grad);
    roots.push_back({{at, at + 8}, nullptr, address, 0});
  }
  roots.push_back({{known.session, known.session + 8}, nullptr, known.session, kElsewhere});
  return roots;
}

/// Those who have a handle of the same tensor about as near as its owner; farther off words are found that are left
/// over.
void add_others(const MemoryImage& image, const PointerWalk& walk, const KnownObjects& known, WayReader::Names& names,
                Holding& h) {
  constexpr int kAsNear = 1;
  if (!h.tensor || h.handles < 2) return;
  int nearest = INT_MAX;
  const auto ways = walk.ways_to_tensor(h.tensor);
  for (const auto& w : ways) nearest = std::min(nearest, w.back().distance);
  for (const auto& w : ways) {
    if (w.back().distance > nearest + kAsNear) continue;
    const TensorOwner o = WayReader(image, walk, known, names).owner(w);
    if (!(o == h.owner) && std::find(h.others.begin(), h.others.end(), o) == h.others.end()) h.others.push_back(o);
  }
}

}  // namespace

std::vector<Holding> find_holders(const std::vector<Storage*>& targets, const KnownObjects& known,
                                  const MemoryImage& before, const void* passed_over) {
  const MemoryImage image;
  PointerWalk::Ends ends;
  for (const Storage* s : targets) ends.targets.push_back(address_of(s));
  const uint64_t over = address_of(passed_over);
  ends.skipped = {idle_tensor_headers(), idle_nodes(), {over, over + 1}};
  const PointerWalk walk(image, before, roots_of(image, known), ends, parts_of);
  WayReader::Names names;
  std::vector<Holding> all;
  for (const Storage* s : targets) {
    Holding& h = all.emplace_back(Holding::by_nobody());
    const std::vector<Stop> way = walk.way_to(address_of(s));
    if (way.empty()) continue;
    h = WayReader(image, walk, known, names).read(way, *s);
    add_others(image, walk, known, names, h);
  }
  return all;
}

Tensor held_tensor(const Holding& h) {
  const HeapBlock now({h.tensor, h.tensor + tensor_header_bytes()});
  const TensorImpl* t = h.tensor ? now.tensor() : nullptr;
  if (!t || address_of(t->storage.get()) != h.storage) return {};
  return Tensor(Ref<TensorImpl>::share(reinterpret_cast<TensorImpl*>(h.tensor)));
}

Ref<Storage> TensorEmptier::shared_zeros(size_t bytes, Device device) {
  Tensor& t = zeros_[{bytes, device.type, device.index}];
  if (!t) t = tenon::zeros({static_cast<int64_t>(bytes)}, DType::u8, device);
  return t.impl()->storage;
}

void TensorEmptier::empty_out(const Tensor& of, bool keep_values) {
  TensorImpl& t = *of.impl();
  if (!keep_values && t.storage) t.storage = shared_zeros(t.storage->bytes, t.meta.device);
  t.base.reset();
  t.flags &= static_cast<uint8_t>(~TensorImpl::requires_grad);
  delete std::exchange(t.grad, nullptr);
  ++count_;
}

}  // namespace tenon::tracing
