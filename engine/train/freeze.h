#pragma once
#include <string>
#include <vector>

namespace tenon {

/// Which tensors of a model are not trained, or begin anew: the recipe's init.freeze or init.anew, patterns of names
/// separated by ';' in which a star stands for any text ("features.*; stem.weight").
class Freeze {
 public:
  explicit Freeze(const std::string& patterns, std::string key = "init.freeze");
  bool any() const { return !patterns_.empty(); }
  bool holds(const std::string& tensor) const;
  /// Throws Error (usage) for a pattern that fits none of these names.
  void check(const std::vector<std::string>& names) const;

 private:
  std::string key_;
  std::vector<std::string> patterns_;
};

}  // namespace tenon
