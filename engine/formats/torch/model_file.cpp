#include "engine/formats/torch/model_file.h"

#include <algorithm>

#include "core/mapped_file.h"
#include "engine/formats/torch/types.h"

namespace tenon::formats {

void add_torch(const TorchFile& t, ModelFile& m, std::vector<Tensor>& values) {
  for (const TorchFile::Entry& e : t.entries()) {
    ModelFile::Entry out{.name = e.name, .dtype = e.dtype, .shape = e.shape, .problem = e.problem};
    const TorchType* type = torch_dtype(e.dtype);
    const auto item = static_cast<uint64_t>(type ? type->item : 1);
    if (__builtin_mul_overflow(static_cast<uint64_t>(out.elements()), item, &out.bytes)) out.bytes = UINT64_MAX;
    if (e.parameter) out.category = "parameter";
    out.storage = e.storage;
    out.device = e.device;
    out.stride = e.stride;
    out.offset = e.offset;
    if (out.problem.empty() && !e.tensor.defined()) out.problem = "has no values";
    m.tensors.push_back(std::move(out));
    values.push_back(e.tensor);
  }
  m.texts.insert(m.texts.end(), t.values().begin(), t.values().end());
  m.foreign.insert(m.foreign.end(), t.foreign().begin(), t.foreign().end());
  m.warnings.insert(m.warnings.end(), t.warnings().begin(), t.warnings().end());
}

ModelFile with_values(ModelFile m, std::vector<Tensor> values) {
  m.values = [values = std::move(values)](size_t i) { return values.at(i); };
  return m;
}

namespace {

using File = std::shared_ptr<const MappedFile>;

ModelFile read_checkpoint(const File& file) {
  ModelFile m;
  std::vector<Tensor> values;
  add_torch(TorchFile::parse(file), m, values);
  return with_values(std::move(m), std::move(values));
}

/// What are keys of dictionaries in a checkpoint are attributes of modules in a program.
ModelFile read_program(const File& file) {
  ModelFile m;
  std::vector<Tensor> values;
  add_torch(TorchFile::parse_program(file), m, values);
  for (ModelFile::Entry& e : m.tensors) std::replace(e.name.begin(), e.name.end(), '/', '.');
  for (auto& [name, text] : m.texts) std::replace(name.begin(), name.end(), '/', '.');
  return with_values(std::move(m), std::move(values));
}

const bool registered_torch = register_model_file({"torch", FileKind::torch, read_checkpoint});
const bool registered_torch_legacy = register_model_file({"torch-legacy", FileKind::torch_legacy, read_checkpoint});
const bool registered_torchscript = register_model_file({"torchscript", FileKind::torchscript, read_program});

}  // namespace
}  // namespace tenon::formats
