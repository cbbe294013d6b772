#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/formats/onnx/runnable.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

/// A TorchScript program as an ONNX model: what takes one takes it. Its weights are windows of the file; nothing in the
/// file is run. What it was traced with says its inputs' sizes; of a program that was scripted `inputs` do, or those
/// are tried that its first layers take. Any batch may be given where the program serves one. Throws Error naming the
/// file; OnnxUnsupported that names the operator and the module where one cannot be read.
OnnxModel load_jit(const std::string& path, const std::vector<InputHint>& inputs = {});
OnnxModel parse_jit(const std::shared_ptr<const MappedFile>& file, const std::vector<InputHint>& inputs = {});

}  // namespace tenon::formats
