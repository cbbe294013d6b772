#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "projects/time_travel.h"
#include "tracing/record/step_difference.h"

namespace tenon::projects {

/// Against what the numbers of a step are held. Each kind reads its own.
struct AuditOptions {
  std::string against = "again";  ///< the name of an AuditDef
  double tolerance = -1;          ///< see tracing::OpDifference::beyond(); below 0: the kind's own
  // again: in what the second computation differs from the first.
  int threads_a = 1, threads_b = 0;  ///< 0: every core
  /// Keys of the recipe that hold in the second alone, such as amp = bf16; they may not change what the state is made
  /// of.
  std::vector<std::pair<std::string, std::string>> set = {};
  // file
  std::string file = {};
  // onnx: a Python interpreter with onnxruntime and numpy; empty: the first on the path that has them.
  std::string python = {};
};
struct Audit {
  std::string run;
  int64_t step = 0;
  std::string a, b;  ///< what the two sides are: "1 thread", "ONNX Runtime 1.20.0"
  double tolerance = 0;
  double loss_a = 0, loss_b = 0;  ///< NaN where the kind has none
  std::string remark;             ///< what else is to be known, a sentence; empty: nothing
  tracing::StepDifference difference;
  /// "All 143 ops of step 40 give the same bits.", or the first op that does not, with both values.
  std::string sentence;
};

/// One kind of reference, registered in the file that defines it.
struct AuditDef {
  std::string name;      ///< "f64"
  std::string title;     ///< "f64"
  std::string help;      ///< what is compared, a sentence
  double tolerance = 0;  ///< what may differ unless one says otherwise
  bool after = false;    ///< it looks at the state after the step; else at the step itself
  /// Fills sides, losses and differences. `session` stands where `after` says. `go_on` is asked now and then; once it
  /// returned false, Error "cancelled" is thrown.
  void (*compare)(const RunInfo& run, TrainingSession& session, const AuditOptions& options,
                  const std::function<bool()>& go_on, Audit& audit) = nullptr;
  int order = 0;  ///< among the others where one chooses
};
bool register_audit(AuditDef def, Place place = Place::current());
/// Sorted by name.
const Registry<AuditDef>& audits();
/// Throws Error (usage) naming those that there are.
const AuditDef& audit_named(const std::string& name);

/// Holds the numbers of one step of a run against a reference, op by op. Throws Error for a step that the run has not
/// done, and for what the kind cannot do.
Audit audit_step(Project& project, int64_t run, int64_t step, const AuditOptions& options,
                 const Progress& progress = {});

/// How many of an audit's ops are beyond its tolerance.
int64_t beyond_tolerance(const Audit& audit);

}  // namespace tenon::projects
