#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "engine/formats/python/syntax.h"
#include "engine/spec/attr.h"
#include "engine/spec/model_spec.h"

namespace tenon::python {

/// One way of writing what a layer does in `forward`.
struct Call {
  /// An expression of the module `m`, the inputs x0, x1, ... by port, and attributes by name (`*name` spreads a list).
  /// It is written where exactly its inputs are wired, and any of these ways is read.
  std::string pattern;
  std::vector<std::pair<std::string, AttrValue>> when = {};  ///< attributes that only this way expresses
};

/// How PyTorch source says a layer type where that is not `nn.TYPE(attributes)`, called with its inputs. Layers that
/// have PyTorch's name, attributes and meaning need none.
struct PythonForm {
  std::string name;              ///< of the layer type
  std::vector<Call> calls = {};  ///< none: m(x0, x1, ...)
  bool module = true;            ///< false: it has no module, only the call
  std::string helper = {};       ///< source of what PyTorch lacks: a class called TYPE, or a function of a call
  std::vector<std::string> leading = {};  ///< attributes that the constructor is given by place, always
  /// Attributes whose default in PyTorch is another, and which; none where it has no default. They are always written.
  std::vector<std::pair<std::string, std::optional<AttrValue>>> usual = {};
  std::vector<std::string> outside = {};  ///< attributes that are no arguments of the constructor
  std::vector<std::string> whole = {};    ///< lists that one number cannot stand for
  bool width = false;                     ///< the constructor is given the size of the input's last axis, too
  std::string unless = {};                ///< "a b": attribute a is not written where b is given
};
bool register_python_form(PythonForm form, Place place = Place::current());
const Registry<PythonForm>& python_forms();

/// The form of a type; of one without its own what PyTorch's names give. Lives as long as the program.
const PythonForm& form_of(const LayerInfo& info);
/// The calls of a form, read.
std::vector<Expr> patterns_of(const PythonForm& form, const LayerInfo& info);
/// The attributes that a constructor is given by place.
std::vector<std::string> leading_of(const PythonForm& form, const LayerInfo& info);
/// An attribute that Tenon joins with another in PyTorch's `padding`.
inline constexpr const char* kAutoPadding = "auto_padding";

}  // namespace tenon::python
