#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::formats {

enum class FileKind : uint8_t {
  unknown,
  empty,
  project,
  onnx,
  safetensors,
  torch,
  torch_legacy,
  torchscript,
  torch_export,
  torch_tar,
  zip,
  npy,
  npz,
  idx,
  pickle,
  json,
  gzip,
  hdf5,
  gguf
};
/// What a file is, by its content alone. Whether it is whole is for its reader to say.
FileKind file_kind(std::string_view bytes);
/// The member of a .pt2 archive up to PyTorch 2.7 that is its program; later ones have a member "archive_format".
inline constexpr std::string_view kExportedProgramOf27 = "serialized_exported_program.json";
/// "a safetensors file"
const char* describe(FileKind kind);

}  // namespace tenon::formats
