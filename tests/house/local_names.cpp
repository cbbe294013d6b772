#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "tests/house/scan.h"

// The functions and types that a source keeps to itself, found by its braces.
namespace tenon::house {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}
bool begins_with_word(std::string_view s, std::string_view word) {
  return s.starts_with(word) && (s.size() == word.size() || !in_word(s[word.size()]));
}
bool has_word(std::string_view s, std::string_view word) {
  for (size_t at = s.find(word); at != s.npos; at = s.find(word, at + 1))
    if ((at == 0 || !in_word(s[at - 1])) && begins_with_word(s.substr(at), word)) return true;
  return false;
}

/// Behind the string or character that begins at the quote `i`.
size_t behind_quoted(std::string_view s, size_t i) {
  if (i > 0 && s[i] == '"' && s[i - 1] == 'R' && (i < 2 || !in_word(s[i - 2]))) {
    const size_t open = s.find('(', i);
    if (open == s.npos) return s.size();
    const std::string end = ")" + std::string(s.substr(i + 1, open - i - 1)) + "\"";
    return std::min(s.size(), std::min(s.size(), s.find(end, open)) + end.size());
  }
  const char quote = s[i];
  for (++i; i < s.size() && s[i] != quote; ++i) i += s[i] == '\\';
  return std::min(s.size(), i + 1);
}

/// The text without comments and preprocessor lines; of strings and characters only `""` is left.
std::string bare(std::string_view s) {
  std::string out;
  bool line_begins = true;
  for (size_t i = 0; i < s.size();) {
    const std::string_view rest = s.substr(i);
    if (rest.starts_with("//") || (line_begins && s[i] == '#')) {
      const bool goes_on = s[i] == '#';
      while (i < s.size() && (s[i] != '\n' || (goes_on && s[i - 1] == '\\'))) ++i;
    } else if (rest.starts_with("/*")) {
      const size_t end = s.find("*/", i + 2);
      i = end == s.npos ? s.size() : end + 2;
    } else if (s[i] == '"' || (s[i] == '\'' && (i == 0 || !in_word(s[i - 1])))) {  // 1'000 holds no character
      i = behind_quoted(s, i);
      out += "\"\"";
      line_begins = false;
    } else {
      if (s[i] == '\n')
        line_begins = true;
      else if (!is_space(s[i]))
        line_begins = false;
      out += s[i++];
    }
  }
  return out;
}

/// Behind the bracket that closes the one at `open`. What stands in parentheses opens and closes no angle.
size_t behind_bracket(std::string_view s, size_t open, char opens, char closes) {
  int depth = 0;
  for (size_t i = open; i < s.size(); ++i) {
    if (opens == '<' && s[i] == '(') i = behind_bracket(s, i, '(', ')') - 1;
    if (s[i] == opens) ++depth;
    if (s[i] == closes && --depth == 0) return i + 1;
  }
  return s.size();
}

/// Whether a brace behind this opens a namespace, and its name.
bool opens_namespace(std::string_view s, std::string_view& name) {
  const size_t at = s.rfind("namespace");
  if (at == s.npos || (at > 0 && in_word(s[at - 1]))) return false;
  name = trimmed(s.substr(at + 9));
  return std::all_of(name.begin(), name.end(), [](char c) { return in_word(c) || c == ':'; });
}

/// What stands before a brace at the level of namespaces.
struct Head {
  bool function = false;
  std::string_view name = {};  ///< empty for members, operators and macros, too
  std::string_view type = {};
};
Head head_of(std::string_view s) {
  s = trimmed(s);
  if (s.empty() || has_word(s, "operator")) return {true, {}};
  while (true) {
    const size_t macro = std::min(s.size(), s.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"));
    std::string_view rest;
    if (begins_with_word(s, "template"))
      rest = trimmed(s.substr(behind_bracket(s, std::min(s.size(), s.find('<')), '<', '>')));
    else if (macro > 0 && s.substr(macro).starts_with('('))  // its use needs no semicolon
      rest = trimmed(s.substr(behind_bracket(s, macro, '(', ')')));
    if (rest.empty()) break;
    s = rest;
  }
  for (std::string_view type : {"struct", "class", "enum", "union"})
    if (begins_with_word(s, type)) {
      s = trimmed(s.substr(type.size()));
      if (begins_with_word(s, "class")) s = trimmed(s.substr(5));  // enum class
      return {false, {}, s.substr(0, std::find_if_not(s.begin(), s.end(), in_word) - s.begin())};
    }
  int angles = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '<') ++angles;
    if (s[i] == '>') --angles;
    if (angles > 0) continue;
    if (s[i] == '=') return {};
    if (s[i] != '(') continue;
    const std::string_view before = trimmed(s.substr(0, i));
    size_t from = before.size();
    while (from > 0 && in_word(before[from - 1])) --from;
    const std::string_view name = before.substr(from);
    constexpr std::array<std::string_view, 5> kNone = {"alignas", "decltype", "noexcept", "requires", "__attribute__"};
    if (std::find(kNone.begin(), kNone.end(), name) != kNone.end()) {
      i = behind_bracket(s, i, '(', ')') - 1;
      continue;
    }
    const bool member = trimmed(before.substr(0, from)).ends_with("::"), pointer = s.substr(i + 1).starts_with('*');
    const bool macro = std::none_of(name.begin(), name.end(), [](unsigned char c) { return std::islower(c); });
    return {true, s[0] != ',' && !member && !pointer && !macro ? name : std::string_view{}};
  }
  return {};
}

}  // namespace

std::vector<std::string> local_names(const std::string& text) {
  const std::string code = bare(text);
  const std::string_view s = code;
  std::vector<std::string> names;
  std::vector<bool> anonymous;  // of the namespaces that are open
  std::string head;
  std::string_view name;
  for (size_t i = 0; i < s.size();) {
    if (s[i] == '}') {
      if (!anonymous.empty()) anonymous.pop_back();
      head.clear();
      ++i;
    } else if (s[i] == ';') {
      head.clear();
      ++i;
    } else if (s[i] != '{') {
      head += s[i++];
    } else if (opens_namespace(head, name) || trimmed(head) == "extern \"\"") {
      anonymous.push_back(opens_namespace(head, name) && name.empty());
      head.clear();
      ++i;
    } else {
      const Head of = head_of(head);
      const bool unnamed = std::find(anonymous.begin(), anonymous.end(), true) != anonymous.end();
      if ((unnamed || has_word(head, "static")) && !of.name.empty()) names.push_back(std::string(of.name) + "()");
      // Behind its own brace the type may go on: "struct Made { ... } made{3};".
      if (unnamed && !of.type.empty() && (names.empty() || names.back() != of.type)) names.emplace_back(of.type);
      i = behind_bracket(s, i, '{', '}');
      if (of.function) head.clear();  // everything else ends at its semicolon
    }
  }
  return names;
}

}  // namespace tenon::house
