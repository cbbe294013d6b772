#pragma once
#include <cstdint>
#include <string>

#include "core/tensor.h"
#include "engine/formats/cpp/artifact.h"

namespace tenon::formats {

/// Bytes of a compiled source.
struct ObjectSize {
  int64_t code = 0, data = 0;  ///< machine code; constants and tables
};

/// What an artifact did when it was compiled and run here.
struct ArtifactTrial {
  Tensor output;           ///< [rows, ...], as the model's
  double seconds = 0;      ///< of one run, its processor time
  ObjectSize fast, small;  ///< compiled with -O2 and with -Os
};

/// The C++ compiler of this machine, by its path; empty where there is none.
std::string system_compiler();
/// Compiles the files that `header` and `source` name, with -O2 and -Os, and runs the model of one input and one output
/// on rows of samples, in batches of its own size. Throws Error with the compiler's words where that fails.
ArtifactTrial try_artifact(const std::string& compiler, const Artifact& artifact, const std::string& header,
                           const std::string& source, const Tensor& rows);
/// From an object file of ELF; throws Error naming it where it is none of 64 bits.
ObjectSize object_size(const std::string& path);

}  // namespace tenon::formats
