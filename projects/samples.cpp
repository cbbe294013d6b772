#include "projects/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/name_pattern.h"
#include "engine/data/dataset.h"
#include "engine/data/row_list.h"
#include "engine/train/open_data.h"
#include "engine/train/recipe.h"
#include "tracing/analyses/finding.h"

namespace tenon::projects {
namespace {

constexpr const char* kWithout = "data.without";

bool are_numbers(const std::string& part) { return part.find_first_not_of("0123456789, -") == part.npos; }

}  // namespace

std::vector<int64_t> named_samples(const Recipe& recipe, const std::string& text) {
  std::vector<int64_t> rows;
  std::map<std::string, bool> places;  // whether one was found
  for (const std::string& part : split_list(text)) {
    if (!are_numbers(part)) {
      places[part] = false;
      continue;
    }
    const std::vector<int64_t> some = data::parse_rows(part, "samples");
    rows.insert(rows.end(), some.begin(), some.end());
  }
  if (!places.empty()) {
    const data::Split split = open_data(recipe);
    for (int64_t row = 0; row < split.train->size(); ++row)
      if (const auto at = places.find(split.train->source(row).text()); at != places.end()) {
        rows.push_back(row);
        at->second = true;
      }
    for (const auto& [place, found] : places)
      if (!found) {
        const std::string like = split.train->source(0).text();
        throw Error::usage(fmt::format("no sample of the training set comes from \"{}\"", place),
                           like.empty()
                               ? "Name samples by their rows, as in 96, 120-130; they are generated."
                               : fmt::format("Places look like \"{}\"; or name rows, as in 96, 120-130.", like));
      }
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::string also_without(const Recipe& recipe, const std::vector<int64_t>& rows) {
  std::vector<int64_t> all = data::parse_rows(recipe.text(kWithout), kWithout);
  all.insert(all.end(), rows.begin(), rows.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return data::rows_text(all);
}

std::string samples_text(const data::Dataset& train, const std::vector<int64_t>& rows) {
  if (rows.size() != 1) return "samples " + data::rows_text(rows);
  const std::string place = train.source(rows[0]).text();
  return "sample " + tracing::count_text(rows[0]) + (place.empty() ? "" : " (" + place + ")");
}

}  // namespace tenon::projects
