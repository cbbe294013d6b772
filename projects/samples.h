#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {
class Recipe;
namespace data {
class Dataset;
}
}  // namespace tenon

// Samples of the training set as a person calls them.
namespace tenon::projects {

/// The rows that a text names, its parts separated by ';': numbers ("96, 120-130"), or the places that samples come
/// from, as they are shown ("x.npy, row 120", "own.csv, line 7"). Sorted. Throws Error (usage) for a place that no
/// sample of the recipe's training set comes from.
std::vector<int64_t> named_samples(const Recipe& recipe, const std::string& text);
/// The value of data.without that leaves these out too.
std::string also_without(const Recipe& recipe, const std::vector<int64_t>& rows);
/// "sample 1,204 (train.csv, line 1205)"; several as numbers, "samples 3, 17-20".
std::string samples_text(const data::Dataset& train, const std::vector<int64_t>& rows);

}  // namespace tenon::projects
