#pragma once
#include <memory>
#include <string>

#include "engine/formats/onnx/model.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

/// The program of a .pt2 archive as an ONNX model: what takes one takes it. Its weights are windows of the file;
/// nothing in the file is run. Throws Error naming the file; OnnxUnsupported that lists, operator by operator, what
/// there is no rule for, how often, and the first node.
OnnxModel load_exported(const std::string& path);
OnnxModel parse_exported(const std::shared_ptr<const MappedFile>& file);

}  // namespace tenon::formats
