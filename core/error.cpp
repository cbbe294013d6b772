#include "core/error.h"

#include <algorithm>
#include <new>
#include <tuple>
#include <vector>

namespace tenon {

static std::string join(const std::string& message, const std::string& hint) {
  return hint.empty() ? message : message + "\n  " + hint;
}

Error::Error(std::string message, std::string hint, Kind kind)
    : std::runtime_error(join(message, hint)), message_(std::move(message)), hint_(std::move(hint)), kind_(kind) {}

Error caught_error() {
  try {
    throw;
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return Error("memory is out", "Try a smaller batch or model.");
  } catch (const std::exception& e) {
    return Error(e.what());
  } catch (...) {
    return Error("something that says nothing of itself was thrown");
  }
}

Error Error::in(const std::string& where) const { return Error("in " + where + ": " + message_, hint_, kind_); }

static size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t cost = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = row[j];
      row[j] = cost;
    }
  }
  return row[b.size()];
}

std::string near_names(const std::string& word, const std::string* first, size_t count) {
  std::vector<std::tuple<size_t, size_t, std::string>> near;  // those that hold the word first, the shortest of them
  for (size_t i = 0; i < count; ++i) {
    size_t d = edit_distance(word, first[i]);
    bool contains = word.size() > 2 && first[i].find(word) != std::string::npos;
    if (d <= std::max<size_t>(2, word.size() / 3) || contains) near.emplace_back(contains ? 0 : d, d, first[i]);
  }
  std::sort(near.begin(), near.end());
  if (near.empty()) return {};
  std::string text = "did you mean ";
  for (size_t i = 0; i < std::min<size_t>(3, near.size()); ++i) text += (i ? ", " : "") + std::get<2>(near[i]);
  return text + "?";
}

}  // namespace tenon
