#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "projects/project.h"
#include "projects/query/query_table.h"

namespace tenon::views {

/// A query that a person gave a name.
struct SavedQuery {
  projects::QueryKind of = projects::QueryKind::trace;  ///< what it asks
  std::string name, sql;
  bool operator==(const SavedQuery&) const = default;
};

/// Queries by their names: those of the project where one is open that can be written, else those of the person.
class SavedQueries {
 public:
  /// Null: those of the person.
  explicit SavedQueries(std::shared_ptr<projects::Project> project);
  /// By name.
  std::vector<SavedQuery> all() const;
  /// Takes the place of one of the same kind and name. Throws Error (usage) for an empty name or query.
  void put(const SavedQuery& query);
  void remove(projects::QueryKind of, const std::string& name);

 private:
  nlohmann::json read() const;
  void write(const std::vector<SavedQuery>& all);
  std::shared_ptr<projects::Project> project_;
};

}  // namespace tenon::views
