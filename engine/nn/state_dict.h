#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/named_tensors.h"
#include "engine/nn/module.h"

namespace tenon::nn {

struct LoadOptions {
  /// Throw where anything is missing, left over or of another size. Off: load what fits.
  bool strict = true;
  /// Rules (from, to), the first that fits applies: a key that begins with `from` begins with `to` instead. An empty
  /// `from` fits every key.
  std::vector<std::pair<std::string, std::string>> rename;
};
struct LoadReport {
  std::vector<std::string> loaded, missing, unexpected;
  std::vector<std::string> mismatched;  ///< "fc.weight: [10, 128] here, [100, 128] in the file"
  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  /// What did not fit, in one line; empty where all did.
  std::string text() const;
};

/// Copies tensors into the parameters and buffers of the same names, converting their type. With strict, throws Error
/// listing what does not fit, and changes nothing.
LoadReport load_state_dict(Module& module, const formats::NamedTensors& tensors, const LoadOptions& options = {});

}  // namespace tenon::nn
