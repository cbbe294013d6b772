#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "projects/time_travel.h"
#include "tracing/analyses/finding.h"

// Traces and memory snapshots in a project, with what the analyses found in them.
namespace tenon::projects {

/// A file that was looked at.
struct LookedAt {
  std::string file;
  std::string kind;                                                ///< "trace" or "memory"
  std::vector<std::pair<std::string, tracing::Finding>> findings;  ///< by analysis
};
/// Reads a trace or a memory snapshot and asks every analysis of one file. Progress counts bytes; throws Error
/// "cancelled", or one that says what the file is not.
LookedAt look_at(const std::string& file, const Progress& progress = {});

/// What of a file is in the project now.
struct ImportedFile {
  int64_t artifact = 0;
  std::string kind, name;
  bool stored = false;  ///< the file itself too; one too large for a project stays where it is
  size_t findings = 0;
  std::string sentence;  ///< what bounds the step, or who was alive at the peak; may be empty
  std::string text() const;
};
/// All of it or nothing. `run`: the run it belongs to, 0 for none.
ImportedFile add_file(Project& project, int64_t run, const LookedAt& looked);

}  // namespace tenon::projects
