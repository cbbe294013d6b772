#include "engine/op/op_source.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// Made by cmake/op_sources.cmake: the files of engine/ops by their names from the root on.
extern const std::pair<const char*, const char*> kOpSources[];
extern const size_t kOpSourceCount;

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::optional<std::string> text_of_file(const Place& place) {
  const std::string text = place_text(place), name = text.substr(0, text.rfind(':'));
  const char* file = place.file_name();
  const auto* end = kOpSources + kOpSourceCount;
  const auto* own = std::find_if(kOpSources, end, [&](const auto& s) { return s.first == name; });
  if (own != end) return own->second;
  constexpr size_t kMost = size_t{4} << 20;
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none) || std::filesystem::file_size(file, none) > kMost) return {};
  std::ifstream in(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

bool is_comment(const std::string& line) {
  const size_t at = line.find_first_not_of(' ');
  return at != line.npos && line.compare(at, 2, "//") == 0;
}

/// How much deeper a line ends than it began; what stands in quotes and comments does not count.
int depth_of(const std::string& line, char open, char close) {
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote) {
      if (c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if (c == '"' || (c == '\'' && (i == 0 || !isalnum(static_cast<unsigned char>(line[i - 1]))))) {
      quote = c;
    } else if (c == '/' && i + 1 < line.size() && line[i + 1] == '/') {
      break;
    } else {
      depth += (c == open) - (c == close);
    }
  }
  return depth;
}

/// The line behind the end of what begins at `first`.
size_t end_of(const std::vector<std::string>& lines, size_t first, char open, char close) {
  int depth = 0;
  bool begun = false;
  for (size_t i = first; i < lines.size(); ++i) {
    begun |= lines[i].find(open) != std::string::npos;
    depth += depth_of(lines[i], open, close);
    if (begun && depth <= 0) return i + 1;
  }
  return first + 1;
}

/// The struct's name in "static const Register<pointwise::Sum<float>> sum_op;": "Sum"; empty where it is none.
std::string registered_name(const std::string& line) {
  const size_t at = line.find("Register<");
  if (at == line.npos) return {};
  std::string name;
  for (size_t i = at + 9; i < line.size(); ++i) {
    if (line[i] == ':')
      name.clear();
    else if (isalnum(static_cast<unsigned char>(line[i])) || line[i] == '_')
      name += line[i];
    else
      break;
  }
  return name;
}

bool begins_struct(const std::string& line, const std::string& name) {
  const size_t at = line.find("struct " + name);
  if (at == line.npos || line.find_first_not_of(' ') != at) return false;
  const size_t end = at + 7 + name.size();
  return end == line.size() || !(isalnum(static_cast<unsigned char>(line[end])) || line[end] == '_');
}

void append(std::string& text, const std::vector<std::string>& lines, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) text += lines[i] + "\n";
}

}  // namespace

std::string definition_text(const Place& place) {
  const auto whole = text_of_file(place);
  if (!whole) return {};
  const std::vector<std::string> lines = lines_of(*whole);
  if (place.line() == 0 || place.line() > lines.size()) return {};
  const size_t at = place.line() - 1;
  const auto with_comment = [&](size_t first) {
    while (first > 0 && is_comment(lines[first - 1])) --first;
    return first;
  };
  std::string text;
  const std::string name = registered_name(lines[at]);
  if (!name.empty())
    for (size_t i = at; i-- > 0;)
      if (begins_struct(lines[i], name)) {
        const size_t end = end_of(lines, i, '{', '}');
        const size_t first = i > 0 && lines[i - 1].starts_with("template") ? i - 1 : i;
        append(text, lines, with_comment(first), end);
        if (at >= end) append(text, lines, at, at + 1);
        return text;
      }
  append(text, lines, with_comment(at), name.empty() ? end_of(lines, at, '(', ')') : at + 1);
  return text;
}

}  // namespace tenon
