// NumPy's arrays as files of tensors: .npy is one, .npz holds several.
#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/model_file.h"
#include "engine/formats/npy.h"
#include "engine/formats/zip.h"

namespace tenon::formats {
namespace {

using File = std::shared_ptr<const MappedFile>;

/// The longest header of version 1, and what stands before it.
constexpr size_t kHead = (size_t{1} << 16) + 12;

ModelFile::Entry entry_of(const NpyHead& head, std::string name) {
  ModelFile::Entry e{.name = std::move(name), .dtype = head.descr, .shape = head.shape, .problem = head.problem};
  const uint64_t item = head.problem.empty() ? itemsize(head.dtype) : 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(e.elements()), item, &e.bytes)) e.bytes = UINT64_MAX;
  return e;
}

ModelFile read_npy(const File& file) {
  ModelFile m;
  const std::string stem = std::filesystem::path(file->name()).stem().string();
  m.tensors.push_back(entry_of(npy_head(file->bytes(), file->name()), stem.empty() ? "array" : stem));
  m.values = [file](size_t) { return npy_tensor(file); };
  return m;
}

ModelFile read_npz(const File& file) {
  auto zip = std::make_shared<const Zip>(file->bytes(), file->name());
  ModelFile m;
  for (const Zip::Member& member : zip->members()) {
    const std::string where = fmt::format("{}: {}", file->name(), member.name);
    m.tensors.push_back(
        entry_of(npy_head(zip->head(member, kHead), where), member.name.substr(0, member.name.size() - 4)));
  }
  m.values = [file, zip](size_t i) {
    const Zip::Member& member = zip->members().at(i);
    const std::string where = fmt::format("{}: {}", file->name(), member.name);
    std::string unpacked;
    const std::string_view data = zip->data(member, unpacked);
    if (!zip->intact(member, data)) throw Error(where + " is damaged: its checksum is another");
    return npy_tensor(member.method == 0 ? MappedFile::part(file, member.offset, member.size)
                                         : MappedFile::of(std::move(unpacked), where));
  };
  return m;
}

const bool registered_npy = register_model_file({"npy", FileKind::npy, read_npy});
const bool registered_npz = register_model_file({"npz", FileKind::npz, read_npz});

}  // namespace
}  // namespace tenon::formats
