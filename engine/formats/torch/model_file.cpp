#include "engine/formats/torch/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/torch/types.h"
#include "engine/formats/zip.h"

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

/// What TorchScript's printer made of the classes of a program: the members of code/ that are no list of places in the
/// source that it came from.
void add_sources(const File& file, ModelFile& m) {
  constexpr uint64_t kMostText = uint64_t{16} << 20;  // of one listing: the largest models have some hundred KiB
  auto zip = std::make_shared<const Zip>(file->bytes(), file->name());
  const std::string& first = zip->members().front().name;
  const std::string folder = first.substr(0, first.find('/') == first.npos ? 0 : first.find('/') + 1) + "code/";
  std::vector<const Zip::Member*> members;
  for (const Zip::Member& member : zip->members())
    if (member.name.starts_with(folder) && member.name.ends_with(".py")) members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const Zip::Member* a, const Zip::Member* b) { return a->name < b->name; });
  for (const Zip::Member* member : members) m.sources.push_back({member->name.substr(folder.size()), member->size});
  m.source_text = [file, zip, members](size_t source) {
    const Zip::Member& member = *members.at(source);
    if (member.size > kMostText)
      throw Error(
          fmt::format("{}: its member {} has {} bytes, more than any listing", file->name(), member.name, member.size));
    std::string unpacked;
    const std::string_view text = zip->data(member, unpacked);
    if (!zip->intact(member, text))
      throw Error(fmt::format("{}: its member {} does not match its checksum", file->name(), member.name));
    return std::string(text);
  };
}

/// What are keys of dictionaries in a checkpoint are attributes of modules in a program.
ModelFile read_program(const File& file) {
  ModelFile m;
  std::vector<Tensor> values;
  add_torch(TorchFile::parse_program(file), m, values);
  for (ModelFile::Entry& e : m.tensors) std::replace(e.name.begin(), e.name.end(), '/', '.');
  for (auto& [name, text] : m.texts) std::replace(name.begin(), name.end(), '/', '.');
  add_sources(file, m);
  return with_values(std::move(m), std::move(values));
}

const bool registered_torch = register_model_file({"torch", FileKind::torch, read_checkpoint});
const bool registered_torch_legacy = register_model_file({"torch-legacy", FileKind::torch_legacy, read_checkpoint});
const bool registered_torchscript = register_model_file({"torchscript", FileKind::torchscript, read_program});

}  // namespace
}  // namespace tenon::formats
