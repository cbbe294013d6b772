#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
class Recipe;
struct AttrDef;
}  // namespace tenon

// What a sweep searches: keys of the recipe, each with the values it may have.
namespace tenon::projects {

/// One key of a recipe and what it may be: a list of values, or a range of numbers.
struct SearchKey {
  enum class Kind : uint8_t { values, linear, log, whole };
  std::string key;
  Kind kind = Kind::values;
  std::vector<std::string> values;  ///< as they are typed
  bool numbers = false;             ///< the values are numbers: neighbours in the list are alike
  double lo = 0, hi = 1;            ///< of a range
  bool rounds = false;              ///< the range is of whole numbers
  int points = 0;                   ///< of a range in a grid; 0: kGridPoints

  static constexpr int kGridPoints = 5;

  /// As it is typed: "adam,sgd", "log:0.0001..0.1", "int:1..8".
  std::string text() const;
  /// The value at a place in [0, 1): equal shares of it for equal stretches of the list, the range or its logarithm.
  std::string value_at(double place) const;
  /// The place of a value, in the middle of its share; 0.5 for one that is none of the key's.
  double place_of(const std::string& value) const;
  /// How many different values there are, at most `most`.
  int64_t different(int64_t most) const;
  /// How many places a grid has, and the value at one.
  int64_t grid_size() const;
  std::string grid_value(int64_t at) const;
};

/// The settings of one trial, as `--set` takes them.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// The keys of a sweep, checked against the recipe that they change.
class SearchSpace {
 public:
  /// {"optimizer.lr", "log:1e-4..1e-1"}. A range is lin:LO..HI, log:LO..HI or int:LO..HI, with ":N" behind it for N
  /// points in a grid; LO..HI alone is linear. Anything else is a list, separated by "|" where there is one, else by
  /// ",". Throws Error (usage) that names the key: unknown (with the near ones), twice, without a meaning for the
  /// recipe, or a value that it cannot have.
  SearchSpace(const Settings& keys, const Recipe& base);
  SearchSpace() = default;

  const std::vector<SearchKey>& keys() const { return keys_; }
  size_t size() const { return keys_.size(); }
  Settings texts() const;

  /// The values at a point of the unit cube, a coordinate a key.
  Settings settings(const std::vector<double>& point) const;
  std::vector<double> point(const Settings& settings) const;
  /// The same for a surrogate: a list of words is as many coordinates as it has words, all equally far from each other.
  std::vector<double> features(const Settings& settings) const;
  size_t features() const;
  /// Settings that there are, at most `most`.
  int64_t different(int64_t most) const;

  /// Points of the grid over all keys; the last key changes first.
  int64_t grid_size() const;
  Settings grid_point(int64_t at) const;

 private:
  std::vector<SearchKey> keys_;
};

/// What a key might sensibly be searched over: every choice, both of true and false, a decade or two around a number.
std::string suggested_range(const AttrDef& def, const Recipe& base);

}  // namespace tenon::projects
