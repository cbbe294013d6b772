#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/jit/archive.h"
#include "engine/formats/jit/graph.h"

namespace tenon::formats {

/// Reads the forward of a TorchScript program with tensors that are names: what it would compute becomes the graph's
/// operators; numbers, texts, lists and branches over them are known. Nothing of the file is run, and whatever its code
/// says, the work is bounded.
class JitInterpreter {
 public:
  JitInterpreter(const JitArchive& archive, JitGraph& graph);
  /// The names of the tensors that forward returns, those of its tuples, lists and dictionaries in their order. Throws
  /// OnnxUnsupported that names every operator that cannot be read, with the module where it is met first: what follows
  /// from one is looked through for others.
  std::vector<std::string> forward(size_t inputs);
  /// Inputs of forward that the code says are something else, "n (int)". One with a value of its own is left at it.
  std::vector<std::string> inputs_that_are_no_tensors() const;

 private:
  using Frame = std::map<std::string, JitValue>;
  using Named = std::vector<std::pair<std::string, JitValue>>;

  JitValue module_of(const PyValue& v) const;
  JitValue value_of(const PyValue& v, const std::string& path);
  JitValue attribute(const JitValue& of, const std::string& name);
  JitValue invoke(const python::Statement& f, std::vector<JitValue> args, const Named& named, const std::string& scope);
  std::optional<JitValue> block(const std::vector<python::Statement>& body, Frame& frame);
  std::optional<JitValue> loop(const python::Statement& s, Frame& frame);
  void assign(const python::Expr& target, const JitValue& v, Frame& frame);
  JitValue evaluate(const python::Expr& e, Frame& frame);
  JitValue binary(const python::Expr& e, Frame& frame);
  JitValue call(const python::Expr& e, Frame& frame);
  JitValue call_method(const JitValue& of, const std::string& name, std::vector<JitValue> args, const Named& named);
  JitValue call_torch(const std::string& function, std::vector<JitValue> args, const Named& named);
  JitValue lacked(const std::string& function, const std::string& why);
  [[noreturn]] void refuse_lacked() const;
  std::optional<JitValue> builtin(const std::string& name, const python::Expr& e, Frame& frame);
  std::string dotted(const python::Expr& e, const Frame& frame) const;
  JitValue number_of(const JitValue& v) const;

  const JitArchive& archive_;
  JitGraph& graph_;
  std::map<const PyValue*, std::string> paths_;  ///< of modules and values: the first that leads there
  std::string scope_;                            ///< the module at work
  struct Lacked {
    std::string function, scope, why;
    int count = 1;
  };
  std::vector<Lacked> lacked_;  ///< operators that cannot be read, in the order of the code
  int depth_ = 0;
  size_t steps_ = 0;
};

}  // namespace tenon::formats
