#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// Attributes: what a definition (a layer, an optimizer, a schedule, a data set, a loss, a transform) may be told, each
// with a name, a default, limits and help. A definition lists its own; everything that sets or shows them reads that
// list.
namespace tenon {

/// One value of an attribute as the builder, the project file and the code writer see it.
using AttrValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>>;
struct Attr {
  std::string name;
  AttrValue value;
  bool operator==(const Attr&) const = default;
};

/// One attribute a definition has: its name, default, and what values are sensible. The kind is that of the default.
struct AttrDef {
  std::string name;
  AttrValue fallback;
  double min = 0, max = 0;  ///< of numbers, and of the numbers of a list; equal: no limits
  std::string help;
  std::vector<std::string> choices = {};  ///< of a text; empty: any
  std::string unit = {};                  ///< what a number counts: "steps"; may be typed behind it
  /// Of a text without choices: what this machine offers. Another one may have others: they are values too.
  std::vector<std::string> (*offers)() = nullptr;
};

/// "a whole number", "a number", "true or false", "text", "a list of whole numbers".
const char* attr_kind(const AttrValue& v);
/// As typed and shown: 0.001, true, relu, 30, 60.
std::string attr_text(const AttrValue& v);
/// "at least 1", "0 to 0.9"; empty where there are no limits.
std::string attr_range(const AttrDef& def);
/// What a value may be: "a whole number, at least 1, in steps", "one of none, ema, swa".
std::string attr_allowed(const AttrDef& def);

/// A value as the definition wants it: a whole number stands for a number and for a list of one, a number without a
/// fraction for a whole one. Throws Error (usage) that begins with `key`, names the value and what it may be, where it
/// is of another kind, out of its limits or none of the choices.
AttrValue fit_attr(const AttrDef& def, AttrValue value, const std::string& key);
/// From text as typed: "1e4" and "+3" are numbers; true, yes, on and 1 the same; a list is "3, 3", "3x3" or "[3 3]";
/// the unit may follow. Throws as fit_attr().
AttrValue parse_attr(const AttrDef& def, const std::string& text, const std::string& key);

/// A value as JSON has it, of the kind it shows. Throws Error that begins with `where` for what is none.
AttrValue attr_from_json(const nlohmann::json& j, const std::string& where);
nlohmann::json attr_to_json(const AttrValue& v);

/// The values of a definition's attributes: those that were given, and the defaults of the others.
class AttrValues {
 public:
  AttrValues() = default;
  /// Throws Error (usage) naming `owner` for an attribute that is none of `defs`, or whose value does not fit.
  AttrValues(const std::vector<AttrDef>& defs, const std::vector<Attr>& given, const std::string& owner);
  int64_t integer(const std::string& name) const { return std::get<int64_t>(at(name)); }
  double number(const std::string& name) const { return std::get<double>(at(name)); }
  bool flag(const std::string& name) const { return std::get<bool>(at(name)); }
  const std::string& text(const std::string& name) const { return std::get<std::string>(at(name)); }
  const std::vector<int64_t>& ints(const std::string& name) const { return std::get<std::vector<int64_t>>(at(name)); }
  /// Throws Error where no attribute of that name is defined.
  const AttrValue& at(const std::string& name) const;
  bool has(const std::string& name) const;

 private:
  std::vector<Attr> values_;
};

/// A word with settings, as in "random_crop padding=4": how recipes write lists of definitions.
struct AttrCall {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attrs;
};
/// Calls separated by ';', a call's settings by blanks. Throws Error (usage) that begins with `key` for a word without
/// '='.
std::vector<AttrCall> parse_calls(const std::string& text, const std::string& key);
/// The settings of a call as attributes of `defs`, each of its kind and within its limits.
std::vector<Attr> call_attrs(const AttrCall& call, const std::vector<AttrDef>& defs, const std::string& key);

}  // namespace tenon
