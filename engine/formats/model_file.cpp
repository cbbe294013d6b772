#include "engine/formats/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "core/error.h"
#include "core/mapped_file.h"

namespace tenon::formats {
namespace {

Registry<ModelFileReader>& readers() {
  static auto& all = *new Registry<ModelFileReader>("reader of model files");
  return all;
}

/// A name leads to one tensor: of two that a damaged file calls the same, the second is told apart.
void tell_apart(std::vector<ModelFile::Entry>& tensors) {
  std::unordered_set<std::string> names;
  for (ModelFile::Entry& e : tensors) {
    const std::string given = e.name;
    for (int n = 2; !names.insert(e.name).second; ++n) e.name = fmt::format("{} ({})", given, n);
  }
}

}  // namespace

const Registry<ModelFileReader>& model_file_readers() { return readers(); }
bool register_model_file(ModelFileReader reader, Place place) { return readers().add(std::move(reader), place); }
const ModelFileReader* model_file_reader(FileKind kind) {
  for (const ModelFileReader& r : readers())
    if (r.kind == kind) return readers().find(r.name);
  return nullptr;
}

std::string ModelFile::Fact::text() const {
  const auto* number = std::get_if<int64_t>(&value);
  return number ? std::to_string(*number) : std::get<std::string>(value);
}

std::string ModelFile::Fact::head() const {
  std::string out = name;
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

int64_t ModelFile::Entry::elements() const {
  int64_t n = 1;
  bool none = false, overflow = false;
  for (int64_t d : shape) {
    none |= d == 0;
    overflow |= __builtin_mul_overflow(n, d, &n);
  }
  return none ? 0 : overflow || n < 0 ? INT64_MAX : n;
}

std::shared_ptr<const ModelFile> ModelFile::open(const std::string& path) { return parse(MappedFile::open(path)); }

std::shared_ptr<const ModelFile> ModelFile::parse(const std::shared_ptr<const MappedFile>& file) {
  const FileKind kind = file_kind(file->bytes());
  const ModelFileReader* reader = model_file_reader(kind);
  if (!reader)
    throw Error(fmt::format("{} is {}", file->name(), describe(kind)),
                "ONNX models, safetensors files, GGUF files, PyTorch checkpoints and NumPy arrays are read.");
  ModelFile m = reader->read(file);
  m.kind = kind;
  m.path = file->name();
  m.file_bytes = file->bytes().size();
  tell_apart(m.tensors);
  return std::make_shared<const ModelFile>(std::move(m));
}

int ModelFile::find_tensor(const std::string& name) const {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const Entry& e) { return e.name == name; });
  return at == tensors.end() ? -1 : static_cast<int>(at - tensors.begin());
}

int64_t ModelFile::elements() const {
  int64_t all = 0;
  for (const Entry& e : tensors)
    if (__builtin_add_overflow(all, e.elements(), &all)) return INT64_MAX;
  return all;
}

uint64_t ModelFile::bytes() const {
  uint64_t all = 0;
  for (const Entry& e : tensors) all += e.bytes;
  return all;
}

std::vector<std::pair<std::string, uint64_t>> ModelFile::bytes_by_dtype() const {
  std::map<std::string, uint64_t> sums;
  for (const Entry& e : tensors) sums[e.dtype] += e.bytes;
  std::vector<std::pair<std::string, uint64_t>> out(sums.begin(), sums.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

Tensor ModelFile::tensor(size_t entry) const {
  const Entry& e = tensors.at(entry);
  if (!e.problem.empty())
    throw Error(fmt::format("{}: the values of \"{}\" cannot be shown: it {}", path, e.name, e.problem));
  return values(entry);
}

size_t ModelFile::at(const std::string& name) const {
  if (const int i = find_tensor(name); i >= 0) return static_cast<size_t>(i);
  std::vector<std::string> names;
  for (const Entry& e : tensors) names.push_back(e.name);
  const std::string near = near_names(name, names.data(), names.size());
  throw Error(fmt::format("{} has no tensor \"{}\"{}", path, name, near.empty() ? "" : " " + near),
              "`tenon inspect FILE` lists them.");
}

}  // namespace tenon::formats
