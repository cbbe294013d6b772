#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/formats/python/forms.h"
#include "engine/formats/python/value.h"

namespace tenon::python {

/// Follows a source as Python would, with tensors that are no more than "the result of this layer": classes are made,
/// their forward is walked through once, and every layer that is called becomes one of the model. Nothing of the source
/// is run: what has no meaning here is an Error with its line.
class Interpreter {
 public:
  Interpreter(const Source& source, const ModelSpec* before);
  /// Layers and wires, Input and Output included.
  ModelSpec run();
  /// What was left out, in sentences.
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// By layer: the line that makes it.
  const std::map<std::string, int>& lines() const { return lines_; }

 private:
  friend class Matcher;
  struct Frame {  ///< a function that is being followed
    Names names;
    Object* self = nullptr;
    bool forward = false;
    std::string target;   ///< the variable that the statement assigns to
    std::string comment;  ///< behind the statement
    bool off = false;     ///< what is called is off: it takes its input's place
  };

  /// The variable and the comment are for the outermost layer of a statement: what it reads is made without them.
  struct Held {
    std::string target, comment;
  };
  static Held hold(Frame& f);
  static void give_back(Frame& f, Held held);

  const Statement& model_class() const;
  Value instance(const Statement& type, std::vector<Value> args, std::vector<std::pair<std::string, Value>> named,
                 int line);
  void place(Object& o, const std::string& path);
  /// A module as a part of another one: itself, or where it is a part already the same in one more place.
  std::shared_ptr<Object> as_part(const std::shared_ptr<Object>& o, int line) const;
  void note_submodels(const Object& o);
  void comment(Object& o);
  void note_unused(const Object& o);

  /// True once the function has given a result.
  bool follow(const std::vector<Statement>& body, Frame& f, Value& result);
  bool follow(const Statement& s, Frame& f, Value& result);
  void expression(const Statement& s, Frame& f);
  void assign(const Statement& s, Frame& f);
  void bind(const Expr& target, const Value& v, Frame& f, int line);
  void bind_function(Frame& f, const Statement& function, const std::vector<Value>& args,
                     const std::vector<std::pair<std::string, Value>>& named, int line);

  Value eval(const Expr& e, Frame& f);
  Value eval_name(const Expr& e, Frame& f);
  Value eval_attribute(const Expr& e, Frame& f);
  Value eval_index(const Expr& e, Frame& f);
  Value eval_binary(const Expr& e, Frame& f);
  Value eval_each(const Expr& e, Frame& f);
  Value eval_call(const Expr& e, Frame& f);
  std::vector<Value> items_of(const Value& v, int line) const;
  Value builtin(const std::string& name, const std::vector<Value>& args, int line);
  /// A module of torch.nn; false where the name is none.
  bool construct(const std::string& name, const std::vector<Value>& args,
                 const std::vector<std::pair<std::string, Value>>& named, int line, Value& out);
  Value call(const std::shared_ptr<Object>& o, const std::vector<Value>& args, Frame& f, int line);
  /// F.relu(x), torch.flatten(x, 1), x.relu(): a layer without a module of its own; false where there is none.
  bool function(const std::string& name, const std::vector<Value>& args,
                const std::vector<std::pair<std::string, Value>>& named, Frame& f, int line, Value& out);
  /// A module that an expression is about, without following any call: self.conv, self.blocks[0]; null for none.
  std::shared_ptr<Object> peek(const Expr& e, Frame& f);

  /// A layer of the model, wired to what arrives.
  Value add(LayerSpec layer, const std::vector<int>& inputs, Frame& f, int line);
  std::string name_for(const std::string& type, Frame& f) const;
  bool has(const std::string& name) const { return lines_.count(name) > 0; }
  void count(int line);

  const std::vector<Statement>& source_;
  const std::map<int, std::string>& comments_;
  std::map<int, Object*> commented_;  ///< by line; null: several modules are made there
  const ModelSpec* before_;
  std::map<std::string, const Statement*> classes_;
  ModelSpec model_;
  std::map<std::string, int> lines_;
  std::vector<std::string> remarks_;
  int depth_ = 0;   ///< of expressions within each other
  int making_ = 0;  ///< classes whose __init__ is being followed
  int64_t steps_ = 0;
};

/// nn.Conv2d(...) with what it is told; the layer has no name yet.
LayerSpec layer_of(const LayerInfo& info, const std::vector<Value>& args,
                   const std::vector<std::pair<std::string, Value>>& named, int line);
/// "nn.Linear", "F.relu", "torch.cat" of a dotted name; empty for another expression.
std::string dotted(const Expr& e);

}  // namespace tenon::python
