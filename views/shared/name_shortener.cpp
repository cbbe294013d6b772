#include "views/shared/name_shortener.h"

#include <algorithm>

namespace tenon::views {

bool is_sentence(std::string_view words) {
  constexpr int kMostOfAName = 4;
  int depth = 0, blanks = 0;
  for (const char c : words) {
    if (c == '<' || c == '(' || c == '[') ++depth;
    if (c == '>' || c == ')' || c == ']') depth = depth > 0 ? depth - 1 : 0;
    blanks += c == ' ' && depth == 0;
  }
  return blanks > kMostOfAName;
}

namespace {
/// Parts with the separator that ends them: "layers.2.weight" has "layers.", "2." and "weight". Words are one part.
std::vector<std::string> parts_of(const std::string& name) {
  if (name.find(' ') != std::string::npos) return {name};
  std::vector<std::string> parts(1);
  for (char c : name) {
    parts.back() += c;
    if (c == '.' || c == '/') parts.emplace_back();
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}
std::string part_key(size_t place, const std::string& part) { return std::to_string(place) + part; }
}  // namespace

NameShortener::NameShortener(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto parts = parts_of(name);
    for (size_t i = 0; i < parts.size(); ++i) ++names_with_[part_key(i, parts[i])];
  }
}

std::string NameShortener::shorten(const std::string& name, const std::function<bool(const std::string&)>& fits) const {
  if (name.empty() || fits(name)) return name;
  const auto parts = parts_of(name);
  // Commonest first; of equally common ones that which says least of the whole, the one in front.
  std::vector<size_t> order(parts.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  auto shared = [&](size_t i) {
    const auto at = names_with_.find(part_key(i, parts[i]));
    return at == names_with_.end() ? 0 : at->second;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return shared(a) > shared(b); });
  std::vector<bool> gone(parts.size());
  std::string text = name;
  for (size_t k = 0; k + 1 < order.size(); ++k) {
    gone[order[k]] = true;
    text.clear();
    for (size_t i = 0; i < parts.size(); ++i)
      if (!gone[i])
        text += parts[i];
      else if (i == 0 || !gone[i - 1])
        text += "…";
    if (fits(text)) break;
  }
  return text;
}

}  // namespace tenon::views
