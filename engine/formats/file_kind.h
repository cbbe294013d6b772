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
/// "a safetensors file"
const char* describe(FileKind kind);

}  // namespace tenon::formats
