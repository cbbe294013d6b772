#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tenon::python {

/// Source with places for values that differ from one instance of a class to the next.
struct Text {
  struct Piece {
    int kind = -1;  ///< -1: words; else the class that is made here
    std::string words;
    int slot = -1;  ///< of words: a value instead of them; of a class: the first of its values
  };
  struct Slot {
    std::string name, of, value;  ///< the argument's name, the layer it belongs to, and what it is here
  };
  std::vector<Piece> pieces;
  std::vector<Slot> slots;

  void words(const std::string& w);
  void value(Slot s);
  /// Another text, with its values.
  void append(const Text& t);
  /// An instance of class `kind`, whose body has these values.
  void instance(int kind, const std::vector<Slot>& values);
  /// The same for texts that are the same but for their values.
  std::string key() const;
};

/// Classes of a source: groups of layers that are alike but for some values share one, which is told these values.
class Classes {
 public:
  /// The class of a body; a new one where none is alike and says the same of itself.
  int of(const Text& body, const std::string& wanted_name, const std::string& comment);
  /// To be called once all are known: which values differ.
  void settle();
  /// All definitions, those that others use first; then `root` as the class `name`.
  std::string source(const Text& root, const std::string& name, const std::string& comment) const;
  void reserve(const std::string& name) { names_.push_back(name); }

 private:
  struct Class {
    std::string key, name, comment;
    Text body;
    std::vector<std::vector<Text::Slot>> instances;
    struct Parameter {
      std::string name;
      int slot;  ///< the first of those that have its value
    };
    std::vector<Parameter> parameters;
    std::vector<int> parameter_of;  ///< by slot; -1: the same everywhere
  };
  std::string unused(const std::string& name);
  std::string printed(const Text& t, const std::function<std::string(int)>& value) const;
  std::string definition(const std::string& name, const std::string& comment, const std::vector<Class::Parameter>& told,
                         const std::string& body) const;
  std::vector<Class> classes_;
  std::vector<std::string> names_;
};

}  // namespace tenon::python
