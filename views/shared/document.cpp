#include "views/shared/document.h"

#include "core/mapped_file.h"
#include "engine/formats/file_kind.h"
#include "tracing/trace/source_text.h"

namespace tenon::views {

using formats::FileKind;

Document::Kind document_kind(const std::string& path) {
  const auto file = MappedFile::open(path);
  const std::string_view bytes = file->bytes();
  switch (formats::file_kind(bytes)) {
    case FileKind::json:
    case FileKind::gzip:
      return Document::Kind::trace;
    case FileKind::zip:
      return traces::zip_members(path).empty() ? Document::Kind::project : Document::Kind::trace;
    case FileKind::pickle:
      return Document::Kind::snapshot;
    case FileKind::onnx:
    case FileKind::safetensors:
    case FileKind::torch:
    case FileKind::torch_legacy:
    case FileKind::torchscript:
    case FileKind::torch_export:
    case FileKind::torch_tar:
    case FileKind::gguf:
      return Document::Kind::model;
    default:
      return bytes.starts_with("\x28\xb5\x2f\xfd") ? Document::Kind::trace : Document::Kind::project;  // zstd
  }
}

}  // namespace tenon::views
