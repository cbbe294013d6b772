#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/registry.h"
#include "engine/formats/file_kind.h"
#include "engine/formats/onnx/model.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

/// What is known of an input from elsewhere, for files that do not say it themselves.
struct InputHint {
  Shape size;
  std::optional<DType> type = {};
};

/// A kind of file that becomes an ONNX model in memory: what takes one takes these files.
struct RunnableFormat {
  std::string name;
  FileKind kind = FileKind::unknown;
  std::function<OnnxModel(const std::string& path, const std::vector<InputHint>& inputs)> load;
};
bool register_runnable(RunnableFormat format, Place place = Place::current());
/// Whether files of a kind are models that can be run.
bool is_runnable(FileKind kind);
/// The model of a file, by its content. Throws Error naming the file; OnnxUnsupported where Tenon lacks what it needs.
/// A file of another kind is read as ONNX, and told to be none.
/// `inputs` in the model's order, or none.
OnnxModel load_runnable(const std::string& path, const std::vector<InputHint>& inputs = {});

}  // namespace tenon::formats
