#include <map>
#include <regex>
#include <sstream>

#include "tests/house/scan.h"

// What a header gives everyone, and what a source keeps to itself under the same name. Found by lines: the formatter
// leaves a namespace and what stands in it at the margin.
namespace tenon::house {
namespace {

/// A type or function at the margin of a namespace.
struct Given {
  std::string space, name;  ///< "tenon::views", "Row"
  bool local = false;       ///< in an anonymous namespace
  size_t line = 0;          ///< from 1
};

std::vector<Given> names_of(const std::string& text) {
  static const std::regex opens("^(?:inline )?namespace ([\\w:]*) ?\\{");
  static const std::regex type(
      "^(?:template <.*>\\s*)?(?:struct|class|enum class) (\\w+)(?: final)?(?: : [^;]*)? \\{.*");
  static const std::regex function(
      "^(?!using|return|struct|class|enum|extern|friend|typedef|static_assert|[A-Z_0-9]+\\()[\\w\\[][^=({]*[ "
      "*&>](\\w+)\\(.*");
  std::vector<std::string> within;
  std::vector<Given> out;
  std::istringstream lines(text);
  std::smatch m;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (std::regex_search(line, m, opens)) {
      if (line.find('}') == line.npos) within.push_back(m[1]);
    } else if (line.starts_with("}  // namespace") && !within.empty()) {
      within.pop_back();
    } else if (!within.empty() && !line.empty() &&
               (std::regex_match(line, m, type) || std::regex_match(line, m, function))) {
      Given g{"", m[1], false, number};
      for (const std::string& n : within) {
        g.local = g.local || n.empty();
        if (!n.empty()) g.space += (g.space.empty() ? "" : "::") + n;
      }
      out.push_back(g);
    }
  }
  return out;
}

}  // namespace

Violations scan_hidden_names(const std::vector<std::pair<std::string, std::string>>& headers,
                             const std::vector<std::pair<std::string, std::string>>& sources) {
  std::map<std::pair<std::string, std::string>, std::string> given;
  for (const auto& [path, text] : headers)
    for (const Given& g : names_of(text))
      if (!g.local) given.emplace(std::pair{g.space, g.name}, path);
  Violations out;
  for (const auto& [path, text] : sources)
    for (const Given& g : names_of(text)) {
      const auto at = given.find({g.space, g.name});
      if (!g.local || at == given.end()) continue;
      out.push_back(path + ":" + std::to_string(g.line) + ": keeps a " + g.name +
                    " to itself, which hides the one that " + at->second + " gives everyone in " + g.space);
    }
  return out;
}

}  // namespace tenon::house
