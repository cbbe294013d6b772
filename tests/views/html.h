#pragma once
#include <algorithm>
#include <string>
#include <vector>

// Pages of HTML as tests read them.
namespace tenon::views {

inline size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
  return n;
}
inline bool page_has(const std::string& text, const std::string& word) { return text.find(word) != text.npos; }

/// Every tag that is opened is closed, in order: a page that no browser has to mend.
inline std::string unbalanced(const std::string& html) {
  static const std::vector<std::string> alone = {"meta",     "img",     "br",   "rect",
                                                 "polyline", "polygon", "path", "!DOCTYPE"};
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    const bool end = html[at + 1] == '/';
    const size_t from = at + 1 + end, to = html.find_first_of(" >/\n", from);
    const std::string tag = html.substr(from, to - from);
    const size_t close = html.find('>', at);
    if (std::find(alone.begin(), alone.end(), tag) != alone.end()) {
      // A rectangle with a title in it is no lone tag.
      if (tag == "rect" && !end && html[close - 1] != '/') open.push_back(tag);
      if (tag == "rect" && end && (open.empty() || open.back() != tag)) return "</rect>";
      if (tag == "rect" && end) open.pop_back();
      continue;
    }
    if (!end) {
      open.push_back(tag);
    } else if (open.empty() || open.back() != tag) {
      return "</" + tag + "> at " + html.substr(at, 80);
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace tenon::views
