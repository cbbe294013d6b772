#include "engine/formats/jit/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/torch/storage.h"
#include "engine/formats/torch/types.h"

namespace tenon::formats {
namespace {

constexpr uint64_t kMostCode = uint64_t{4} << 20;  // of one member: the largest models have some hundred KiB
constexpr int kMostDepth = 64;

std::string folder_of(const Zip& zip, const std::string& file) {
  if (zip.members().empty()) throw Error(file + " is an empty zip archive");
  const std::string& first = zip.members().front().name;
  return first.substr(0, first.find('/') == first.npos ? 0 : first.find('/') + 1);
}

}  // namespace

const PyValue::Dict* jit_attributes(const PyValue& v) {
  const PyValue::Object* o = v.object();
  return o && o->way == PyValue::Object::Way::create && o->state ? o->state->as<PyValue::Dict>() : nullptr;
}

const PyValue::List* jit_list(const PyValue& v) {
  if (const auto* list = v.as<PyValue::List>()) return list;
  const PyValue::Object* o = v.object();
  const PyValue::Global* g = o ? o->global() : nullptr;
  const auto* args = o && o->args ? o->args->as<PyValue::List>() : nullptr;
  if (!g || g->module != "torch.jit._pickle" || !args || args->empty()) return nullptr;
  return (*args)[0]->as<PyValue::List>();
}

JitArchive::JitArchive(std::shared_ptr<const MappedFile> file)
    : file_(std::move(file)),
      name_(file_->name()),
      zip_(file_->bytes(), name_),
      values_(TorchFile::parse_program(file_)) {
  prefix_ = folder_of(zip_, name_);
  for (const TorchFile::Entry& e : values_.entries()) {
    std::string path = e.name;
    std::replace(path.begin(), path.end(), '/', '.');
    if (e.tensor) weights_.emplace(std::move(path), e.tensor);
  }
  read_constants();
  read_traced();
}

void JitArchive::read_constants() {
  if (!zip_.find(prefix_ + "constants.pkl")) return;
  TorchStorages storages(file_, true, "constants");
  bool legacy = false;
  std::vector<std::string> warnings;
  const Pickle pickle = storages.open(legacy, warnings);
  TorchTensors tensors(storages, name_);
  const PyValue::List* all = jit_list(*pickle);
  for (const PyRef v : all ? *all : PyValue::List{}) {
    TorchFile::Entry e;
    tensors.read(*v, fmt::format("constants {}", constants_.size()), e);
    constants_.push_back(e.tensor);
  }
}

/// The values are not in the file: {"forward": [tensor, ...]}, each as what would make it.
void JitArchive::read_traced() {
  const Zip::Member* m = zip_.find(prefix_ + "traced_inputs.pkl");
  if (!m || m->size > kMostCode) return;
  std::string unpacked;
  const Pickle pickle = read_pickle(zip_.data(*m, unpacked), PickleOf::objects);
  const std::function<void(const PyValue&, int)> visit = [&](const PyValue& v, int depth) {
    if (depth > kMostDepth) throw Error(name_ + ": its traced inputs are nested too deep");
    if (const PyValue::List* list = jit_list(v)) {
      for (const PyRef one : *list) visit(*one, depth + 1);
    } else if (const auto* dict = v.as<PyValue::Dict>()) {
      for (const auto& [key, value] : *dict)
        if (const auto* text = key->as<std::string>(); text && *text == "forward") visit(*value, depth + 1);
    } else if (const PyValue::Object* o = v.object(); o && o->args) {
      const auto* args = o->args->as<PyValue::List>();
      if (!args || args->empty()) return;
      if (!o->calls("torch._utils", "_rebuild_tensor_v2")) return visit(*(*args)[0], depth + 1);
      const PyValue::List* size = args->size() > 2 ? jit_list(*(*args)[2]) : nullptr;
      const PyValue::Object* storage = (*args)[0]->object();
      const auto* id = storage && storage->args ? storage->args->as<PyValue::List>() : nullptr;
      const auto* type = id && id->size() > 1 ? (*id)[1]->as<PyValue::Global>() : nullptr;
      if (!size || size->size() > static_cast<size_t>(kMaxDims))
        throw Error(name_ + ": an input that it was traced with has no sizes");
      Traced t;
      for (const PyRef n : *size) {
        const auto* axis = n->as<int64_t>();
        if (!axis || *axis < 0 || *axis > (int64_t{1} << 40))
          throw Error(name_ + ": an input that it was traced with has a size that is none");
        t.size.push_back(*axis);
      }
      if (const TorchType* known = type ? torch_storage(*type) : nullptr) t.dtype = known->dtype;
      traced_.push_back(std::move(t));
    }
  };
  visit(*pickle, 0);
}

const python::Source* JitArchive::source(const std::string& module) const {
  if (const auto it = sources_.find(module); it != sources_.end()) return &it->second;
  std::string path = module;
  std::replace(path.begin(), path.end(), '.', '/');
  const Zip::Member* m = zip_.find(prefix_ + "code/" + path + ".py");
  if (!m) return nullptr;
  if (m->size > kMostCode)
    throw Error(fmt::format("{}: its member {} has {} bytes, more than any code", name_, m->name, m->size));
  std::string unpacked;
  const std::string text(zip_.data(*m, unpacked));
  try {
    return &sources_.emplace(module, python::parse(text)).first->second;
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}: {}", name_, m->name, e.message()));
  }
}

const python::Statement* JitArchive::find(const std::string& name, python::Statement::Kind kind) const {
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return nullptr;
  const python::Source* in = source(name.substr(0, dot));
  const std::string last = name.substr(dot + 1);
  if (!in) return nullptr;
  for (const python::Statement& s : in->statements)
    if (s.kind == kind && s.name == last) return &s;
  return nullptr;
}
const python::Statement* JitArchive::function(const std::string& name) const {
  return find(name, python::Statement::Kind::function);
}
const python::Statement* JitArchive::type(const std::string& name) const {
  return find(name, python::Statement::Kind::type);
}
const python::Statement* JitArchive::method(const std::string& class_name, const std::string& name) const {
  const python::Statement* of = type(class_name);
  if (!of) return nullptr;
  for (const python::Statement& s : of->body)
    if (s.kind == python::Statement::Kind::function && s.name == name) return &s;
  return nullptr;
}

}  // namespace tenon::formats
