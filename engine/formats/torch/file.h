#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/named_tensors.h"
#include "engine/formats/torch/pickle.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

/// A file written by torch.save: a state_dict, a whole checkpoint or a whole module, in the zip format or in the legacy
/// one. Its pickle is read as data; nothing in it is ever run or looked up. Tensors are windows of the file, and views
/// of one storage stay views of one storage. Throws Error naming the file, the tensor and what is wrong: cut short, a
/// storage of another size, strides that leave it.
class TorchFile {
 public:
  struct Entry {
    std::string name;  ///< the keys on the way to it: "fc.weight", "optimizer/state/0/exp_avg"; a module's path
    std::string dtype, device;  ///< as PyTorch names them: "float32", "cuda:0"
    std::vector<int64_t> shape, stride;
    int64_t offset = 0;   ///< in elements, as the strides
    std::string storage;  ///< entries of one key share memory
    bool parameter = false, requires_grad = false;
    Tensor tensor;        ///< undefined where there is a problem
    std::string problem;  ///< why the engine cannot have it: "is quantized"
  };

  static TorchFile open(const std::string& path);
  static TorchFile parse(const std::shared_ptr<const MappedFile>& file);
  /// The same of a TorchScript program: the values of its modules, whose classes are then no foreign ones. Its code is
  /// left alone.
  static TorchFile parse_program(const std::shared_ptr<const MappedFile>& file);

  bool legacy() const { return legacy_; }
  const std::vector<Entry>& entries() const { return entries_; }  ///< in the order of the file
  /// Everything else that has a value, by name: epoch, learning rates, texts.
  const std::vector<std::pair<std::string, std::string>>& values() const { return values_; }
  /// What the file asks for that is no data, "os.system": what Python would look up, and perhaps run, on loading it.
  const std::vector<std::string>& foreign() const { return foreign_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const PyValue& value() const { return *pickle_; }
  /// All tensors. Throws where the file asks for anything foreign, and where a tensor has a problem.
  NamedTensors tensors() const;

 private:
  friend class TorchReader;
  static TorchFile read(const std::shared_ptr<const MappedFile>& file, bool program);
  std::string name_;
  bool legacy_ = false;
  Pickle pickle_;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> values_;
  std::vector<std::string> foreign_, warnings_;
};

/// A state_dict in the zip format. Tensors of one storage share it in the file, with their strides and offsets.
void save_torch(const std::string& path, const NamedTensors& tensors);

}  // namespace tenon::formats
