#pragma once
#include <string>
#include <vector>

#include "core/error.h"
#include "core/registry.h"
#include "tracing/analyses/finding.h"

// What the field's troubleshooting guides warn of, looked for in a file or (projects/checks) in a project: each thing
// that is found with its evidence and its remedy.
namespace tenon::tracing {

/// One thing that a check found.
struct Complaint {
  std::string about;        ///< "layers.0.weight", "class cat", "aten::item"; empty: the whole
  std::string seen;         ///< the evidence, a sentence without its full stop
  std::string remedy;       ///< what to do about it
  std::string module = {};  ///< a layer that it is about, for who wants to see it
  int64_t step = -1;        ///< of a run; -1: none
  Sight sight = {};         ///< of a file: where it is seen
};

struct CheckResult {
  std::string name, title;
  std::vector<Complaint> complaints;
  /// Why the check could not be made: "no run has done a step"; empty: it was.
  std::string skipped = {};
};

/// A check of a kind of file, registered in the file that defines it. `Subject`: what was read and worked out of it.
template <class Subject>
struct FileCheck {
  std::string name;   ///< "trace.pageable_copies"
  std::string title;  ///< "Copies from memory that is not pinned"
  std::vector<Complaint> (*look)(const Subject& subject);
};

/// All checks of a kind, by name. What fails for one is why it was skipped; the others go on.
template <class Subject>
std::vector<CheckResult> run_checks(const Registry<FileCheck<Subject>>& checks, const Subject& subject) {
  std::vector<CheckResult> results;
  for (const FileCheck<Subject>& check : checks) {
    CheckResult r{check.name, check.title, {}};
    try {
      r.complaints = check.look(subject);
    } catch (const Error& e) {
      if (e.message() == "cancelled") throw;
      r.skipped = e.message();
    }
    results.push_back(std::move(r));
  }
  return results;
}

}  // namespace tenon::tracing
