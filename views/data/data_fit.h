#pragma once
#include <string>
#include <vector>

#include "engine/train/model_fit.h"

namespace tenon {
class Recipe;
namespace data {
struct Split;
}
}  // namespace tenon

namespace tenon::views {

/// How a project's model meets the data it is to learn from, and what can be done where it does not.
struct DataFit {
  ModelFit fit;
  std::vector<std::string> templates;  ///< whose models could learn from them, the most suitable first
  /// Whether a person has something to do.
  bool open() const { return !fit.problem.empty(); }
};
/// `raw`: the recipe's data before any transform. Throws Error where a transform cannot take them.
DataFit fit_of(const ModelSpec& model, const Recipe& recipe, const data::Split& raw);
/// In a sentence, and what could be done.
std::string fit_text(const DataFit& f);

}  // namespace tenon::views
