#include <fmt/format.h>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/torch/storage.h"

namespace tenon::formats {
namespace {

using List = PyValue::List;
using Object = PyValue::Object;

constexpr int kMaxWrappings = 16;  // of a tensor in a Parameter in a subclass
constexpr int64_t kMaxElements = int64_t{1} << 50;

bool numbers(const PyValue& v, std::vector<int64_t>& out) {
  const List* list = v.as<List>();
  if (const Object* o = v.object(); o && o->calls("torch", "Size"))
    if (const List* args = o->args->as<List>(); args && args->size() == 1) list = (*args)[0]->as<List>();
  if (!list) return false;
  out.clear();
  for (const PyRef e : *list) {
    const auto* n = e->as<int64_t>();
    if (!n || *n < 0) return false;
    out.push_back(*n);
  }
  return true;
}
bool truth(const PyValue& v) {
  const auto* b = v.as<bool>();
  return b && *b;
}
std::string text_of(const PyValue& v) {
  if (const auto* s = v.as<std::string>()) return *s;
  if (const auto* b = v.as<PyValue::Bytes>()) return b->bytes;
  return {};
}

}  // namespace

void TorchTensors::fail(const TorchFile::Entry& at, const std::string& what) const {
  throw Error(fmt::format("{}: tensor \"{}\" {}", file_, at.name.substr(0, 200), what));
}

bool TorchTensors::read(const PyValue& v, const std::string& name, TorchFile::Entry& out) {
  out.name = name;
  return object(v, out, 0);
}

bool TorchTensors::object(const PyValue& v, TorchFile::Entry& out, int depth) {
  const Object* o = v.object();
  if (!o) return false;
  if (o->way == Object::Way::persistent) {  // a storage on its own
    const List* id = o->args->as<List>();
    if (!id || id->empty() || text_of(*(*id)[0]) != "storage") return false;
    const Tensor base = flat(v, nullptr, out);
    if (base.defined()) {
      out.shape = {base.numel()};
      out.stride = {1};
      out.tensor = base;
    }
    return true;
  }
  const PyValue::Global* g = o->global();
  const List* args = o->args->as<List>();
  return g && args && call(*g, *args, out, depth);
}

bool TorchTensors::call(const PyValue::Global& g, const List& args, TorchFile::Entry& out, int depth) {
  if (depth > kMaxWrappings) fail(out, "is wrapped too often");
  auto need = [&](size_t n) {
    if (args.size() < n) fail(out, fmt::format("is made by {} from {} values, not {}", g.name, args.size(), n));
  };
  if (g.module == "torch.nn.parameter" && (g.name == "Parameter" || g.name == "Buffer")) {
    if (args.empty() || !object(*args[0], out, depth + 1)) return false;
    out.parameter = g.name == "Parameter";
    return true;
  }
  if (g.module == "torch._tensor" && g.name == "_rebuild_from_type_v2") {  // (function, type, its arguments, state)
    need(3);
    const auto* inner = args[0]->as<PyValue::Global>();
    const List* its = args[2]->as<List>();
    return inner && its && call(*inner, *its, out, depth + 1);
  }
  if (g.module != "torch._utils" || !g.name.starts_with("_rebuild_")) return false;
  const std::string_view what = std::string_view(g.name).substr(9);
  if (what == "parameter" || what == "parameter_with_state") {
    need(2);
    if (!object(*args[0], out, depth + 1)) fail(out, "is a parameter of what is no tensor");
    out.parameter = true;
    out.requires_grad = truth(*args[1]);
    return true;
  }
  if (what == "tensor" || what == "tensor_v2" || what == "tensor_v3") {
    need(what == "tensor" ? 4 : what == "tensor_v2" ? 6 : 7);
    const TorchType* as = nullptr;
    if (what == "tensor_v3") {
      const auto* dtype = args[6]->as<PyValue::Global>();
      as = dtype && dtype->module == "torch" ? torch_dtype(dtype->name) : nullptr;
      if (!as) fail(out, "has an unknown dtype");
    }
    if (args.size() > 4) out.requires_grad = truth(*args[4]);
    const size_t last = what == "tensor_v3" ? 7 : 6;
    if (args.size() > last)
      for (const char* lazy : {"conj", "neg"})
        if (const PyValue* flag = args[last]->find(lazy); flag && truth(*flag))
          out.problem = fmt::format("is a view that is to be read through \"{}\"", lazy);
    const Tensor base = flat(*args[0], as, out);
    place(*args[1], *args[2], *args[3], base, out);
    return true;
  }
  if (what == "qtensor") {
    need(4);
    flat(*args[0], nullptr, out);
    out.problem = "is quantized";
    place(*args[1], *args[2], *args[3], {}, out);
    return true;
  }
  if (what == "meta_tensor_no_storage") {
    need(3);
    if (const auto* dtype = args[0]->as<PyValue::Global>()) out.dtype = dtype->name;
    if (!numbers(*args[1], out.shape) || !numbers(*args[2], out.stride))
      fail(out, "has sizes or strides that are none");
    out.device = "meta";
    out.problem = "has no data (device meta)";
    return true;
  }
  if (what.starts_with("sparse")) {
    out.problem = "is sparse";
    return true;
  }
  if (what.starts_with("device_tensor") || what == "wrapper_subclass") {
    out.problem = "is of another device's own kind";
    return true;
  }
  return false;
}

Tensor TorchTensors::flat(const PyValue& storage, const TorchType* as, TorchFile::Entry& out) {
  const Object* o = storage.object();
  const List* id = o && o->way == Object::Way::persistent ? o->args->as<List>() : nullptr;
  if (!id || id->size() < 5 || text_of(*(*id)[0]) != "storage") fail(out, "has no storage");
  const auto* cls = (*id)[1]->as<PyValue::Global>();
  const TorchType* type = cls ? torch_storage(*cls) : nullptr;
  if (!type) fail(out, fmt::format("has a storage of the unknown type {}", cls ? cls->full() : "of no name"));
  const std::string key = text_of(*(*id)[2]);
  const auto* count = (*id)[4]->as<int64_t>();
  if (!count || *count < 0) fail(out, "has a storage without a size");
  out.storage = key;
  out.device = text_of(*(*id)[3]);
  out.dtype = as ? as->dtype : type->dtype;
  if (out.device == "meta") {
    out.problem = "has no data (device meta)";
    return {};
  }
  const TorchStorages::Place at = storages_.find(key);
  uint64_t bytes;
  if (__builtin_mul_overflow(static_cast<uint64_t>(*count), static_cast<uint64_t>(type->item), &bytes) ||
      bytes != at.bytes)
    fail(out, fmt::format("says that its storage {} has {} elements of {}, and it has {} bytes", key.substr(0, 100),
                          *count, type->dtype, at.bytes));
  if (as && bytes % static_cast<uint64_t>(as->item)) fail(out, "has a storage of no whole number of elements");
  const int engine = as ? as->engine : type->engine;
  if (engine < 0) {
    out.problem = fmt::format("has the dtype {}, which is not supported", out.dtype);
    return {};
  }
  Tensor& base = flats_[{key, out.dtype}];
  if (!base.defined()) base = tensor_of(at.file, at.offset, at.bytes, static_cast<DType>(engine), storages_.swapped());
  if (id->size() > 5 &&
      (*id)[5]->as<List>()) {  // a storage that is itself a part of one, before 1.0: (key, offset, size)
    const List& part = *(*id)[5]->as<List>();
    const int64_t* start = part.size() == 3 ? part[1]->as<int64_t>() : nullptr;
    const int64_t* size = part.size() == 3 ? part[2]->as<int64_t>() : nullptr;
    if (!start || !size || *start < 0 || *size < 0 || *start > base.numel() || *size > base.numel() - *start)
      fail(out, "has a damaged part of a storage");
    Layout layout = Layout::contiguous({*size});
    layout.offset = *start;
    return view_of(base, layout);
  }
  return base;
}

void TorchTensors::place(const PyValue& offset, const PyValue& size, const PyValue& stride, const Tensor& base,
                         TorchFile::Entry& out) {
  const auto* at = offset.as<int64_t>();
  if (!at || *at < 0 || !numbers(size, out.shape) || !numbers(stride, out.stride) ||
      out.shape.size() != out.stride.size())
    fail(out, "has an offset, sizes or strides that are none");
  out.offset = *at;
  int64_t elements = 1, last = *at;
  bool none = false;
  for (size_t i = 0; i < out.shape.size(); ++i) {
    int64_t reach = 0;
    none |= out.shape[i] == 0;
    const int64_t n = out.shape[i] > 1 ? out.shape[i] : 1;
    if (__builtin_mul_overflow(elements, n, &elements) || elements > kMaxElements ||
        __builtin_mul_overflow(n - 1, out.stride[i], &reach) || __builtin_add_overflow(last, reach, &last))
      fail(out, "has sizes or strides that no memory could hold");
  }
  if (!base.defined() || !out.problem.empty()) return;
  if (!none && last >= base.numel())
    fail(out, fmt::format("reaches element {} of a storage of {}", last, base.numel()));
  if (out.shape.size() > kMaxDims) {
    out.problem = fmt::format("has {} dimensions; at most {} are supported", out.shape.size(), kMaxDims);
    return;
  }
  out.tensor = view_of(base, {Shape(out.shape), Dims(out.stride), none ? 0 : base.offset() + *at});
}

}  // namespace tenon::formats
