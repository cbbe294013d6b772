#pragma once
#include <cstdint>
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

/// One attribute a definition has: its name, default, and what values are sensible.
struct AttrDef {
  std::string name;
  AttrValue fallback;
  double min = 0, max = 0;  ///< equal: no limits
  std::string help;
  std::vector<std::string> choices = {};  ///< of a text; empty: any
};

/// "a whole number", "a number", "true or false", "text", "a list of whole numbers".
const char* attr_kind(const AttrValue& v);
/// As typed and shown: 0.001, true, "text", 1,2,3.
std::string attr_text(const AttrValue& v);
/// From text as typed ("true", "1e-3", "30,60"). Throws Error (usage) that begins with `key`, names the value and what
/// it may be.
AttrValue parse_attr(const AttrDef& def, const std::string& text, const std::string& key);
/// Throws Error (usage) where the value is of another kind, out of its limits or none of the choices.
void check_attr(const AttrDef& def, const AttrValue& value, const std::string& key);

/// The values of a definition's attributes: those that were given, and the defaults of the others.
class AttrValues {
 public:
  /// Throws Error (usage) naming `owner` for an attribute that is none of `defs`, or whose value does not fit. `defs`
  /// must stay.
  AttrValues(const std::vector<AttrDef>& defs, const std::vector<Attr>& given, const std::string& owner);
  int64_t integer(const std::string& name) const { return std::get<int64_t>(at(name)); }
  double number(const std::string& name) const { return std::get<double>(at(name)); }
  bool flag(const std::string& name) const { return std::get<bool>(at(name)); }
  const std::string& text(const std::string& name) const { return std::get<std::string>(at(name)); }
  const std::vector<int64_t>& ints(const std::string& name) const { return std::get<std::vector<int64_t>>(at(name)); }
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
/// The settings of a call as attributes of `defs`.
std::vector<Attr> call_attrs(const AttrCall& call, const std::vector<AttrDef>& defs, const std::string& key);

/// The entry of a registry with this name. Throws Error (usage) "no <what> is called ..." with the near names and all
/// there are.
template <class List>
const auto& find_named(const List& list, const std::string& name, const std::string& what);
[[noreturn]] void refuse_name(const std::string& name, const std::vector<std::string>& there, const std::string& what);

template <class List>
const auto& find_named(const List& list, const std::string& name, const std::string& what) {
  std::vector<std::string> there;
  for (const auto& entry : list) {
    if (entry.name == name) return entry;
    there.push_back(entry.name);
  }
  refuse_name(name, there, what);
}
/// Puts a definition into its registry, kept sorted by name.
template <class Def>
bool add_named(std::vector<Def>& list, Def def) {
  auto at = list.begin();
  while (at != list.end() && at->name < def.name) ++at;
  list.insert(at, std::move(def));
  return true;
}

}  // namespace tenon
