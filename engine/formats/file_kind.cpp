#include "engine/formats/file_kind.h"

#include "core/error.h"
#include "engine/formats/gzip.h"
#include "engine/formats/zip.h"

namespace tenon::formats {
namespace {

FileKind zip_kind(std::string_view bytes) {
  try {
    const Zip zip(bytes, "");
    bool value = false, arrays = !zip.members().empty();
    for (const Zip::Member& m : zip.members()) {
      if (m.name.ends_with("/constants.pkl")) return FileKind::torchscript;
      if (m.name.ends_with("/archive_format") || m.name == kExportedProgramOf27) return FileKind::torch_export;
      value |= m.name.ends_with("/data.pkl");
      arrays &= m.name.ends_with(".npy");
    }
    return value ? FileKind::torch : arrays ? FileKind::npz : FileKind::zip;
  } catch (const Error&) {
    // A damaged archive is what its first member says.
    return bytes.substr(0, 400).find("/data.pkl") != bytes.npos ? FileKind::torch : FileKind::zip;
  }
}

bool is_idx(std::string_view b) {
  if (b.size() < 8 || b[0] != 0 || b[1] != 0) return false;
  const int type = b[2], axes = b[3];
  return (type == 8 || type == 9 || (type >= 0x0b && type <= 0x0e)) && axes >= 1 && axes <= 8;
}

}  // namespace

FileKind file_kind(std::string_view b) {
  if (b.empty()) return FileKind::empty;
  if (b.starts_with(std::string_view("SQLite format 3\0", 16))) return FileKind::project;
  if (is_gzip(b)) return FileKind::gzip;
  if (b.starts_with("PK\x03\x04") || b.starts_with("PK\x05\x06")) return zip_kind(b);
  if (b.starts_with("\x93NUMPY")) return FileKind::npy;
  if (b.starts_with("\x89HDF")) return FileKind::hdf5;
  if (b.starts_with("GGUF")) return FileKind::gguf;
  if (b.starts_with("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")) return FileKind::torch_legacy;
  if (b.size() > 1 && b[0] == '\x80' && b[1] >= 2 && b[1] <= 5) return FileKind::pickle;
  if (b.size() > 262 && b.substr(257, 5) == "ustar") return FileKind::torch_tar;
  // Eight bytes of length, then JSON: no length that makes sense has its upper three bytes set.
  if (b.size() > 8 && b[8] == '{' && b[5] == 0 && b[6] == 0 && b[7] == 0) return FileKind::safetensors;
  if (is_idx(b)) return FileKind::idx;
  // A protobuf that begins with its version of the format, as every writer puts it.
  if (b.size() > 2 && b[0] == 8 && b[1] > 0 && b[1] < 64 && (b[2] & 7) == 2) return FileKind::onnx;
  const size_t text = b.substr(0, 64).find_first_not_of(" \t\r\n");
  if (text != b.npos && (b[text] == '{' || b[text] == '[')) return FileKind::json;
  return FileKind::unknown;
}

const char* describe(FileKind kind) {
  switch (kind) {
    case FileKind::unknown:
      return "a file of no kind that is known here";
    case FileKind::empty:
      return "an empty file";
    case FileKind::project:
      return "a Tenon project";
    case FileKind::onnx:
      return "an ONNX model";
    case FileKind::safetensors:
      return "a safetensors file";
    case FileKind::torch:
      return "a PyTorch checkpoint";
    case FileKind::torch_legacy:
      return "a PyTorch checkpoint in the legacy format";
    case FileKind::torchscript:
      return "a TorchScript program";
    case FileKind::torch_export:
      return "a program exported by PyTorch (.pt2)";
    case FileKind::torch_tar:
      return "a tar archive, as PyTorch before 0.1.10 wrote, which is not read here";
    case FileKind::zip:
      return "a zip archive that is no PyTorch checkpoint";
    case FileKind::npy:
      return "a NumPy array";
    case FileKind::npz:
      return "NumPy arrays (.npz)";
    case FileKind::idx:
      return "an IDX array";
    case FileKind::pickle:
      return "a Python pickle";
    case FileKind::json:
      return "a JSON text";
    case FileKind::gzip:
      return "a gzip file";
    case FileKind::hdf5:
      return "an HDF5 file, which is not read here";
    case FileKind::gguf:
      return "a GGUF model";
  }
  return "";
}

}  // namespace tenon::formats
