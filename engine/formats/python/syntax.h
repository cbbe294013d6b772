#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

// The part of Python in which models are written: classes with __init__ and forward, assignments, calls, numbers,
// lists, `for` and `if`. It is read, never run.
namespace tenon::python {

struct NamedExpr;
struct Expr {
  enum class Kind : uint8_t {
    none,
    boolean,    ///< truth
    whole,      ///< integer
    number,     ///< real
    text,       ///< text
    name,       ///< text
    list,       ///< items; of a tuple too
    dict,       ///< items: key, value, key, value, ...
    star,       ///< items[0]
    call,       ///< items[0] is called with the other items and `named`
    attribute,  ///< items[0].text
    index,      ///< items[0][items[1]]
    slice,      ///< items: from, to; `none` where left out
    unary,      ///< text is the operator
    binary,     ///< text is the operator; comparisons, `and` and `or` too
    choice,     ///< items[0] if items[1] else items[2]
    each,       ///< [items[0] for text in items[1]]
  };
  Kind kind = Kind::none;
  bool truth = false;
  bool tuple = false;  ///< of a list
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Expr> items;
  std::vector<NamedExpr> named;
  int line = 0;
};
struct NamedExpr {
  std::string name;
  Expr value;
};

struct Statement {
  enum class Kind : uint8_t {
    expression,  ///< value
    assign,      ///< target = value
    give,        ///< return value
    loop,        ///< for target in value: body
    branch,      ///< if value: body else: other
    function,    ///< def name(parameters): body
    type,        ///< class name(value): body
    pass,        ///< and whatever says nothing about a model: imports; documentation, whose text is value
    unknown,     ///< text says what; an error only where it is reached
  };
  Kind kind = Kind::pass;
  int line = 0;
  std::string name;     ///< of a function or class; what is `unknown`
  std::string comment;  ///< behind it on its last line
  Expr target, value;
  struct Parameter {
    std::string name, note;  ///< note: its annotation, as written
    bool has_default = false;
    Expr fallback;
  };
  std::vector<Parameter> parameters;
  std::vector<Statement> body, other;
};

struct Source {
  std::vector<Statement> statements;
  std::map<int, std::string> comments;  ///< by line
};
/// Throws Error that begins with the line for what is no Python, or none that is read
/// here.
Source parse(const std::string& text);
/// One expression. Throws as parse().
Expr parse_expression(const std::string& text);

}  // namespace tenon::python
