#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/spec/attr.h"
#include "projects/search/search_space.h"

namespace tenon::projects {

/// What a sweep was told.
struct SweepPlan {
  enum class Method : uint8_t { grid, random, bayes };
  SearchSpace space;
  Method method = Method::bayes;
  std::string metric;  ///< that is recorded: "test_loss"
  int direction = -1;  ///< 1: high values are better, -1: low ones
  int64_t runs = 0;
  uint64_t seed = 0;
  int64_t prune = 0;         ///< the first rung, in steps; 0: nothing is pruned
  int64_t prune_factor = 3;  ///< of a rung's trials one in so many goes on; the next rung is so many times as far
  int64_t side_by_side = 1;  ///< trials of a round: none of them knows of another's result

  /// Everything but the keys, as attributes: `tenon sweep` and the window's form read this list.
  static const std::vector<AttrDef>& attrs();
  /// Throws Error (usage) naming what does not fit.
  SweepPlan(const Settings& keys, const std::vector<Attr>& attrs, const Recipe& base);
  static SweepPlan from_json(const nlohmann::json& j, const Recipe& base);
  nlohmann::json to_json() const;

  /// The first trial of the round to which a trial belongs.
  int64_t round_of(int64_t number) const { return (number - 1) / side_by_side * side_by_side + 1; }
  bool is_better(double a, double b) const { return direction > 0 ? a > b : a < b; }
};
const char* name(SweepPlan::Method m);

}  // namespace tenon::projects
