#pragma once
#include <ctime>
#include <memory>
#include <string>

#include "projects/database.h"
#include "projects/project.h"

namespace tenon::projects {

/// What the parts of Project share. Two connections: a checkpoint being written never makes a reader (the window) wait.
struct Project::Impl {
  std::string path;
  bool read_only = false;
  std::unique_ptr<Database> writer;  ///< null where read-only
  std::unique_ptr<Database> reader;

  /// The connection for changes; throws where the project is read-only.
  Database& write() const;
  Database& read() const { return *reader; }

  int64_t model_id(const ModelSpec& model);
  int64_t recipe_id(const nlohmann::json& recipe);
  /// Models and recipes that neither the project nor a run holds any longer.
  void drop_unused_documents();

  // Parts of a transaction that the caller holds.
  void put_metrics(int64_t run, const std::vector<MetricRow>& rows);
  void drop_metrics(int64_t run, int64_t step);           ///< the points after it, and the hits of watches
  void put_epoch(int64_t run, const EpochLength& epoch);  ///< where it is known
  /// Sums up every series that has points and no sum.
  void put_missing_sums();
  void put_status(int64_t run, const std::string& status, const std::string& error);
  void put_progress(int64_t run, int64_t steps, double seconds);
  int64_t put_artifact(int64_t run, int64_t step, const std::string& kind, const std::string& name,
                       const std::string& bytes);
};

/// ISO 8601, UTC, seconds.
std::string now_text();
/// Names this process so that another can tell whether it still lives.
std::string process_identity();
bool process_alive(const std::string& identity);

}  // namespace tenon::projects
