#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/house/scan.h"

// The types that headers define for everyone, found by lines: the formatter leaves a namespace and what stands in it at
// the margin.
namespace tenon::house {

Violations scan_shared_types(const std::vector<std::pair<std::string, std::string>>& headers) {
  static const std::regex opens("^namespace ([\\w:]+) \\{");
  static const std::regex type(
      "^(?:template <.*>\\s*)?(?:struct|class|enum class) (\\w+)(?: final)?(?: : [^;]*)? \\{.*");
  std::map<std::string, std::set<std::string>> defined;
  for (const auto& [path, text] : headers) {
    std::vector<std::string> within;
    std::istringstream lines(text);
    std::smatch m;
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_search(line, m, opens)) {
        within.push_back(m[1]);
      } else if (line.starts_with("}  // namespace") && !within.empty()) {
        within.pop_back();
      } else if (std::regex_match(line, m, type)) {
        std::string name;
        for (const std::string& n : within) name += n + "::";
        defined[name + m[1].str()].insert(path);
      }
    }
  }
  Violations out;
  for (const auto& [name, paths] : defined) {
    if (paths.size() < 2) continue;
    std::string list;
    for (const std::string& p : paths) list += (list.empty() ? "" : " and ") + p;
    out.push_back(name + " is defined in " + list + ": a program that has both runs one's destructor on the other");
  }
  return out;
}

}  // namespace tenon::house
