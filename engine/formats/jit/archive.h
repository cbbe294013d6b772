#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/formats/python/syntax.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/zip.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

/// A TorchScript program as torch.jit.save writes it: modules with their values, the code of their classes, and the
/// inputs that it was traced with. Everything is read as data; nothing in it is ever run.
class JitArchive {
 public:
  /// Throws Error naming the file and the member that is wrong.
  explicit JitArchive(std::shared_ptr<const MappedFile> file);

  const std::string& name() const { return name_; }
  /// Tensors of the modules, by their path: "layer1.0.weight".
  const std::map<std::string, Tensor>& weights() const { return weights_; }
  /// The outermost module.
  const PyValue& root() const { return values_.value(); }
  /// CONSTANTS.c0, c1, ... of the code; undefined where the engine cannot have one.
  const std::vector<Tensor>& constants() const { return constants_; }
  /// The tensors that forward was traced with: sizes and types alone. Empty where it was not.
  struct Traced {
    Shape size;
    std::string dtype;  ///< "float32"; empty where it is not known
  };
  const std::vector<Traced>& traced() const { return traced_; }

  /// A function, or a method of a class, by its full name: "__torch__.torch.nn.functional.relu". Null where there is
  /// none.
  const python::Statement* function(const std::string& name) const;
  const python::Statement* type(const std::string& name) const;
  const python::Statement* method(const std::string& type, const std::string& name) const;

 private:
  const python::Source* source(const std::string& module) const;
  const python::Statement* find(const std::string& name, python::Statement::Kind kind) const;
  void read_constants();
  void read_traced();

  std::shared_ptr<const MappedFile> file_;
  std::string name_, prefix_;
  Zip zip_;
  TorchFile values_;
  std::map<std::string, Tensor> weights_;
  std::vector<Tensor> constants_;
  std::vector<Traced> traced_;
  mutable std::map<std::string, python::Source> sources_;  ///< by module, once it was asked for
};

/// The attributes of a module, or of another object of the program; null where it is none.
const PyValue::Dict* jit_attributes(const PyValue& v);
/// A list, also one that a program writes with its type; null where it is none.
const PyValue::List* jit_list(const PyValue& v);

}  // namespace tenon::formats
