#include "views/query/saved_queries.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "views/shared/settings.h"

namespace tenon::views {

using nlohmann::json;
using projects::QueryKind;

namespace {
constexpr const char* kQueries = "queries";  // of the project's window state

bool same_name(const SavedQuery& q, QueryKind of, const std::string& name) { return q.of == of && q.name == name; }
}  // namespace

SavedQueries::SavedQueries(std::shared_ptr<projects::Project> project)
    : project_(project && !project->read_only() ? std::move(project) : nullptr) {}

json SavedQueries::read() const { return project_ ? project_->window_state(kQueries) : settings::queries(); }

std::vector<SavedQuery> SavedQueries::all() const {
  std::vector<SavedQuery> found;
  const json list = read();
  for (const json& j : list.is_array() ? list : json::array()) {
    const auto text = [&](const char* key) {
      return j.is_object() && j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string();
    };
    for (const QueryKind kind : projects::kQueryKinds)
      if (text("of") == name(kind) && !text("name").empty()) found.push_back({kind, text("name"), text("sql")});
  }
  std::sort(found.begin(), found.end(), [](const SavedQuery& a, const SavedQuery& b) { return a.name < b.name; });
  return found;
}

void SavedQueries::write(const std::vector<SavedQuery>& all) {
  json list = json::array();
  for (const SavedQuery& q : all) list.push_back({{"of", name(q.of)}, {"name", q.name}, {"sql", q.sql}});
  if (project_)
    project_->set_window_state(kQueries, list);
  else
    settings::set_queries(list);
}

void SavedQueries::put(const SavedQuery& query) {
  if (query.name.empty()) throw Error::usage("a saved query needs a name");
  if (query.sql.find_first_not_of(" \t\n") == query.sql.npos) throw Error::usage("there is no query to save");
  std::vector<SavedQuery> list = all();
  std::erase_if(list, [&](const SavedQuery& q) { return same_name(q, query.of, query.name); });
  list.push_back(query);
  write(list);
}

void SavedQueries::remove(QueryKind of, const std::string& name) {
  std::vector<SavedQuery> list = all();
  std::erase_if(list, [&](const SavedQuery& q) { return same_name(q, of, name); });
  write(list);
}

}  // namespace tenon::views
