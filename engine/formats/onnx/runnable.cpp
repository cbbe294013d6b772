#include "engine/formats/onnx/runnable.h"

#include "core/mapped_file.h"

namespace tenon::formats {
namespace {

Registry<RunnableFormat>& runnable_formats() {
  static auto& all = *new Registry<RunnableFormat>("format of models that can be run");
  return all;
}
const bool registered_onnx_runnable =
    register_runnable({"onnx", FileKind::onnx, [](const std::string& path, const auto&) { return load_onnx(path); }});

}  // namespace

bool register_runnable(RunnableFormat format, Place place) { return runnable_formats().add(std::move(format), place); }

bool is_runnable(FileKind kind) {
  for (const RunnableFormat& f : runnable_formats())
    if (f.kind == kind) return true;
  return false;
}

OnnxModel load_runnable(const std::string& path, const std::vector<InputHint>& inputs) {
  const FileKind kind = file_kind(MappedFile::open(path)->bytes());
  for (const RunnableFormat& f : runnable_formats())
    if (f.kind == kind) return f.load(path, inputs);
  return load_onnx(path);
}

}  // namespace tenon::formats
