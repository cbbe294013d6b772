#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::formats {

struct OnnxModel;

/// How a model becomes C++.
struct ArtifactOptions {
  int64_t batch = 1;            ///< samples of a run
  bool weights_beside = false;  ///< in a file that the program maps or reads, instead of in the source
};

/// A model as C++17 that needs nothing but <cmath>: NAME.h says what there is, NAME.cpp computes it in memory that the
/// caller gives, without heap, exceptions or static state.
struct Artifact {
  std::string name;            ///< the namespace
  std::string header, source;  ///< NAME.h and NAME.cpp
  std::string weights;         ///< the bytes of NAME.bin; empty where they are in the source
  int64_t calls = 0;           ///< of kernels in a run
  int64_t kernels = 0;         ///< functions, one for each kernel and its sizes
  int64_t arena_bytes = 0;     ///< that a run computes in
  int64_t unshared_bytes = 0;  ///< that it would without a plan of the memory
  int64_t weight_bytes = 0;
  std::vector<int64_t> input_sizes, output_sizes;  ///< elements of each
};

/// The words that a file's name makes as a namespace: "p-first" is p_first.
std::string artifact_name(const std::string& file_stem);

/// `file`: the name of the header that the source includes, "model.h"; `says`: a line about where the model is from.
/// A size that the model leaves open is the batch where it is an input's first, else an Error. Throws OnnxUnsupported
/// naming the operator and node that no kernel is for.
Artifact write_artifact(const OnnxModel& model, const std::string& file, const ArtifactOptions& options,
                        const std::string& says = {});

}  // namespace tenon::formats
