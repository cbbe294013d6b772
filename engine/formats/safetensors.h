#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/named_tensors.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

/// A safetensors file. The header is checked whole when it is opened, the tensors are windows of the file: opening one
/// of any size is cheap, and nothing is allocated from what the header claims. Throws Error naming the file, the tensor
/// and the rule it breaks: a header larger than the file or 100 MB, a name given twice, offsets that overlap, leave a
/// hole or leave the file, a length that is not the shape's.
class Safetensors {
 public:
  struct Entry {
    std::string name, dtype;  ///< dtype as the file says it: "BF16"
    std::vector<int64_t> shape;
    uint64_t begin = 0, end = 0;  ///< bytes, from the start of the data
  };

  static Safetensors open(const std::string& path);
  static Safetensors parse(std::shared_ptr<const MappedFile> file);

  const std::vector<Entry>& entries() const { return entries_; }  ///< in the order of their data
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  /// Why the engine cannot have an entry: it has no such dtype, or the shape has too many dimensions. Empty: it can.
  static std::string problem(const Entry& entry);
  /// Throws where there is a problem.
  Tensor tensor(const Entry& entry) const;
  /// Throws Error with the near names where there is none of that name.
  Tensor tensor(const std::string& name) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  size_t data_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

/// As the reference writes it: wide types first, then by name, the data aligned to 8 bytes. Views are written in
/// logical order, and each on its own: the format knows no shared memory.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {{"format", "pt"}});

}  // namespace tenon::formats
