#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/formats/named_tensors.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

struct GgmlType;

/// A GGUF file, as llama.cpp reads and writes them. Metadata and the list of tensors are checked whole when it is
/// opened, the tensors are windows of the file: opening one of any size is cheap, and nothing is allocated from what
/// the file claims. Versions 2 and 3, little-endian. Throws Error naming the file, the key or tensor, and the rule it
/// breaks.
class Gguf {
 public:
  struct Entry {
    std::string name;
    uint32_t type = 0;                ///< ggml's number of it
    const GgmlType* known = nullptr;  ///< null: a type of that number is not known here
    std::vector<int64_t> shape;       ///< in PyTorch's order: the file has it the other way round
    uint64_t begin = 0, bytes = 0;    ///< from the start of the data; no bytes where the type is not known
    std::string dtype() const;        ///< "Q4_K"
    /// Why its values cannot be had; empty: they can.
    std::string problem() const;
  };

  static Gguf open(const std::string& path);
  static Gguf parse(std::shared_ptr<const MappedFile> file);

  uint32_t version() const { return version_; }
  uint32_t alignment() const { return alignment_; }
  const std::vector<Entry>& entries() const { return entries_; }  ///< in the order of the file
  /// As text; of an array the first elements and their number.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  /// Quantized values become f32; others are a window of the file. Throws where there is a problem.
  Tensor tensor(const Entry& entry) const;

 private:
  void check_places(uint64_t data_bytes) const;

  std::shared_ptr<const MappedFile> file_;
  uint32_t version_ = 0, alignment_ = 32;
  size_t data_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

using GgufValue = std::variant<uint32_t, float, bool, std::string, std::vector<std::string>, std::vector<int32_t>>;
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;
/// Version 3, in the order given; views are written in logical order. Throws Error for what ggml has no place for: a
/// dtype, more than four dimensions, a name of 64 bytes or more, or one that is there twice.
void save_gguf(const std::string& path, const NamedTensors& tensors, const GgufMetadata& metadata);

}  // namespace tenon::formats
