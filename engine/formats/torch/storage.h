#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/tensor.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/torch/pickle.h"
#include "engine/formats/torch/types.h"
#include "engine/formats/zip.h"

namespace tenon::formats {

/// Where the bytes of storages lie in a file, whichever container it has.
class TorchStorages {
 public:
  struct Place {
    std::shared_ptr<const MappedFile> file;
    size_t offset = 0, bytes = 0;
  };
  /// `program`: a TorchScript program is read, too. Of several values in an archive `member` is the one that is read.
  explicit TorchStorages(std::shared_ptr<const MappedFile> file, bool program = false, std::string member = "data")
      : file_(std::move(file)), program_(program), member_(std::move(member)) {}

  /// Reads the container up to the pickle of the file's value.
  Pickle open(bool& legacy, std::vector<std::string>& warnings);
  /// Throws where the storage is missing.
  Place find(const std::string& key);
  bool swapped() const { return swapped_; }

 private:
  Pickle open_zip(std::vector<std::string>& warnings);
  Pickle open_legacy();
  [[noreturn]] void fail(const std::string& what) const;

  std::shared_ptr<const MappedFile> file_;
  bool program_;
  std::string member_;
  std::optional<Zip> zip_;
  std::string prefix_;
  std::map<std::string, Place> places_;
  bool swapped_ = false;
};

/// Makes entries of what a pickle asks for: rebuilds tensors over their storages.
class TorchTensors {
 public:
  explicit TorchTensors(TorchStorages& storages, std::string file) : storages_(storages), file_(std::move(file)) {}
  /// False where the value is no tensor. `name` is for errors, and the entry's.
  bool read(const PyValue& v, const std::string& name, TorchFile::Entry& out);

 private:
  bool call(const PyValue::Global& g, const PyValue::List& args, TorchFile::Entry& out, int depth);
  bool object(const PyValue& v, TorchFile::Entry& out, int depth);
  /// The flat tensor of a storage; undefined, with the entry's problem set, where the engine cannot have it.
  Tensor flat(const PyValue& storage, const TorchType* as, TorchFile::Entry& out);
  void place(const PyValue& offset, const PyValue& size, const PyValue& stride, const Tensor& base,
             TorchFile::Entry& out);
  [[noreturn]] void fail(const TorchFile::Entry& at, const std::string& what) const;

  TorchStorages& storages_;
  std::string file_;
  std::map<std::pair<std::string, std::string>, Tensor> flats_;  ///< by storage and dtype
};

}  // namespace tenon::formats
