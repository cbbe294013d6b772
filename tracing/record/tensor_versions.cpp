#include "tracing/record/tensor_versions.h"

#include <map>

#include "core/quiet.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/view.h"

namespace tenon::tracing {
namespace {

/// A copy of all that a tensor's storage holds, read as its dtype.
Tensor copy_of_memory(const Tensor& t) {
  const auto elements = static_cast<int64_t>(t.storage()->bytes / itemsize(t.dtype()));
  return clone(view_of(detach(t), Layout::contiguous(Shape{elements})));
}

}  // namespace

void TensorVersions::know(int tensor, const Tensor& t, bool lasting, bool copied) {
  if (!t.storage()) return;
  Memory& m = memories_[t.storage()];
  if (m.tensors.empty()) m.version = t.version();
  m.tensors.push_back({tensor, t, lasting, copied});
}

void TensorVersions::settle() {
  for (const Storage* s : unsettled_) {
    Memory& m = memories_[s];
    m.version = s->version;
    m.settled = true;
  }
  unsettled_.clear();
}

void TensorVersions::before(const Call& call, uint32_t seq) {
  settle();
  if (call.op->view) return;
  const Quiet quiet;
  for (int k = 0; k < call.outputs; ++k)
    if (call.out[k].defined()) write_over(call.out[k], seq);
  for (int i = 0; i < call.inputs && call.op->writes >> i; ++i)
    if ((call.op->writes >> i & 1u) && call.in[i].defined()) write_over(call.in[i], seq);
}

void TensorVersions::write_over(const Tensor& t, uint32_t seq) {
  const auto found = memories_.find(t.storage());
  if (found == memories_.end()) return;  // fresh
  Memory& m = found->second;
  if (m.written == seq) return;
  uint32_t from = m.written;
  if (m.settled && t.version() != m.version && seq > from + 1) {
    // Someone wrote it beside the ops: what is there now need not have been there since `from`.
    for (const Known& k : m.tensors)
      record_.tensors[static_cast<size_t>(k.tensor)].versions.push_back(
          {from, k.copied && from == 0 ? record_.tensors[static_cast<size_t>(k.tensor)].value : Tensor()});
    from = seq - 1;
  }
  keep(m, from, false);
  m.written = seq;
  m.settled = false;
  unsettled_.push_back(t.storage());
}

void TensorVersions::keep(Memory& m, uint32_t from, bool last) {
  std::map<DType, Tensor> copies;
  bool lasting = false;
  for (const Known& k : m.tensors) lasting |= k.lasting;
  for (const Known& k : m.tensors) {
    TensorRecord& r = record_.tensors[static_cast<size_t>(k.tensor)];
    if (k.copied && from == 0) {
      r.versions.push_back({from, r.value});
      continue;
    }
    if (last && !lasting) {
      r.versions.push_back({from, detach(k.t)});
      continue;
    }
    auto [copy, fresh] = copies.try_emplace(k.t.dtype());
    const auto bytes = static_cast<int64_t>(k.t.storage()->bytes);
    if (fresh && bytes <= room_) {
      room_ -= bytes;
      copy->second = copy_of_memory(k.t);
    }
    r.versions.push_back({from, copy->second ? view_of(copy->second, k.t.layout()) : Tensor()});
  }
}

void TensorVersions::finish() {
  settle();
  const Quiet quiet;
  for (auto& [storage, m] : memories_) {
    if (m.written == 0) continue;
    if (storage->version != m.version) {
      for (const Known& k : m.tensors)
        record_.tensors[static_cast<size_t>(k.tensor)].versions.push_back({m.written, Tensor()});
      continue;
    }
    keep(m, m.written, true);
  }
}

Tensor value_after(const TensorRecord& t, uint32_t seq) {
  if (t.versions.empty()) return t.value;
  Tensor value;
  for (const TensorVersion& v : t.versions)
    if (v.from <= seq) value = v.value;
  return value;
}

}  // namespace tenon::tracing
