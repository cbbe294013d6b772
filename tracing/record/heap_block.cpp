#include "tracing/record/heap_block.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/pool_block.h"

namespace tenon::tracing {
namespace {

constexpr uint64_t kBeginning = 1024;  // bytes: more than each of these objects has
static_assert(sizeof(Node) <= kBeginning && sizeof(TensorImpl) <= kBeginning);

MemorySpan beginning_of(MemorySpan s) { return {s.begin, std::min(s.end, s.begin + kBeginning)}; }

}  // namespace

// The C library adds one word and rounds up to 16 bytes. What it says of a header that was just taken is no measure:
// that one may have got more.
size_t tensor_header_bytes() {
  constexpr size_t kWord = 8, kUnit = 16;
  return (sizeof(TensorImpl) + kWord + kUnit - 1) / kUnit * kUnit - kWord;
}

HeapBlock::HeapBlock(const MemoryImage& image, MemorySpan span)
    : span_(span), words_(image.words(beginning_of(span))) {}
HeapBlock::HeapBlock(MemorySpan span) : span_(span), words_(MemoryImage::words_now(beginning_of(span))) {}

uint64_t HeapBlock::place_of(const void* member) const {
  return span_.begin + (address_of(member) - address_of(words_.data()));
}

const TensorImpl* HeapBlock::tensor() const {
  const auto* t = as<TensorImpl>();
  if (!t || span_.bytes() < tensor_header_bytes() || span_.bytes() > tensor_header_bytes() + kLeftOverBytes)
    return nullptr;
  constexpr int kMostHandles = 1 << 24, kFlags = TensorImpl::requires_grad | TensorImpl::inference;
  const int handles = t->refs.load();
  if (handles < 1 || handles > kMostHandles || t->flags > kFlags || t->meta.dtype > DType::f64 ||
      t->meta.shape.n > kMaxDims || t->stride.n != t->meta.shape.n ||
      static_cast<int>(t->meta.device.type) >= kDeviceTypes)
    return nullptr;
  return t;
}

const AutogradMeta* HeapBlock::history() const {
  static const uint64_t table = [] {
    const AutogradMeta one;
    uint64_t first = 0;
    std::memcpy(&first, static_cast<const void*>(&one), 8);
    return first;
  }();
  const auto* m = as<AutogradMeta>();
  return m && words_[0] == table ? m : nullptr;
}

const Node* HeapBlock::node() const {
  const auto* n = as<Node>();
  if (!n || n->bytes < sizeof(Node) || n->bytes > span_.bytes()) return nullptr;
  if (!n->op) return n;
  for (const OpDef& op : all_ops())
    if (&op == n->op) return n;
  return nullptr;
}

/// The pool's header stands at the block's beginning, or behind the filling that brings a block with pages of its own
/// to its alignment.
bool HeapBlock::is_tensor_memory() const {
  static const auto release = reinterpret_cast<uint64_t>(empty({1}).storage()->release);
  constexpr size_t kFilling = 6, kStorageWords = sizeof(Storage) / 8;
  constexpr size_t kData = offsetof(Storage, data) / 8, kRelease = offsetof(Storage, release) / 8;
  for (const size_t at : {size_t{0}, kFilling})
    if (words_.size() >= at + kStorageWords && words_[at + kRelease] == release &&
        words_[at + kData] == span_.begin + 8 * at + kPoolHeaderBytes)
      return true;
  return false;
}

ObjectClass HeapBlock::object_class() const { return words_.empty() ? ObjectClass{} : class_of_object(words_[0]); }

}  // namespace tenon::tracing
