#pragma once
#include <memory>
#include <string>

#include "engine/formats/model_file.h"
#include "projects/time_travel.h"
#include "tracing/analyses/finding.h"
#include "tracing/analyses/flame_difference.h"
#include "tracing/snapshot/snapshot.h"
#include "tracing/trace/trace_store.h"

// Two of one kind, A and B, and what is different: the window and the command line say the same.
namespace tenon::projects {

/// What can be compared: one of these.
struct Comparable {
  std::shared_ptr<const traces::Trace> trace = {};
  std::shared_ptr<const snapshot::Snapshot> snapshot = {};
  std::shared_ptr<const formats::ModelFile> model = {};
};

struct Comparison {
  tracing::Finding finding;                    ///< rows say what they are about in A and in B
  std::shared_ptr<tracing::FlamePair> flames;  ///< of traces and snapshots; null: of models
};

/// Throws Error where the two are not of one kind, and Error "cancelled". `top`: rows of a table at most.
Comparison compare(const Comparable& a, const Comparable& b, size_t top, const Progress& progress = {});

/// Structure and weights of two models: what changed, most first.
tracing::Finding compare_models(const formats::ModelFile& a, const formats::ModelFile& b, size_t top,
                                const Progress& progress = {});

/// The weights of a run after a step, as of a file: parameters and buffers by their names in the model. A state that
/// was not kept is replayed.
std::shared_ptr<const formats::ModelFile> weights_after(Project& project, int64_t run, int64_t step,
                                                        const Progress& progress = {});

}  // namespace tenon::projects
