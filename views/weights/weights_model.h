#pragma once
#include <string>
#include <vector>

#include "engine/train/recipe.h"
#include "engine/train/weight_map.h"
#include "views/shared/table.h"

namespace tenon::views {

/// The weights that the next run begins with, as a table: each tensor of the model with what the file gives it, then
/// what of the file is left.
class WeightsModel {
 public:
  /// `from`: what the file is, in words; empty where the recipe names none, and the seed gives every value.
  void set_map(WeightMap map, std::string from);
  const WeightMap& map() const { return map_; }
  const std::string& from() const { return from_; }

  Table table() const;
  /// One line: what is taken, and how much of the model is frozen.
  std::string said() const;
  /// The tensor of the file that stands in a row of the table, -1 for none: rows may be sorted, its words may not.
  int source_of(const Table::Row& row) const;
  /// The names of the model that a tensor of the file may go to, those of its shape alone.
  std::vector<std::string> targets(int source) const;
  /// The one it goes to; empty: none, and where that was said, it is left out.
  std::string target(int source) const;
  bool left_out(int source) const;

  /// The recipe with a tensor of the file sent to another of the model; an empty target leaves it out.
  Recipe sent(const Recipe& recipe, int source, const std::string& target) const;
  /// The recipe that begins with a file; nothing that was said of another one holds for it.
  static Recipe begun_with(Recipe recipe, const std::string& file);
  /// The recipe that begins with what the seed gives. What is frozen stays so.
  static Recipe begun_anew(Recipe recipe);
  /// All of a recipe that the table depends on.
  static std::string said_by(const Recipe& recipe);

 private:
  WeightMap map_;
  std::string from_;
};

}  // namespace tenon::views
