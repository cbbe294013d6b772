#include "projects/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"

namespace tenon::projects {
namespace {

using tracing::Finding;

void go_on(const Progress& progress, int64_t done, int64_t total) {
  if (progress && !progress(done, total)) throw Error("cancelled");
}

const char* kind_of(const Comparable& c) { return c.trace ? "a trace" : c.snapshot ? "a memory snapshot" : "a model"; }

Comparison compare_traces(const Comparable& a, const Comparable& b, size_t top, const Progress& progress) {
  Comparison c;
  const auto events = static_cast<int64_t>(a.trace->size() + b.trace->size());
  // The flames tell how far they are; the calls are matched in one go after them.
  c.flames =
      std::make_shared<tracing::FlamePair>(tracing::flame_difference(*a.trace, *b.trace, [&](uint64_t done, uint64_t) {
        return !progress || progress(static_cast<int64_t>(done) / 2, events);
      }));
  go_on(progress, events / 2, events);
  c.finding = tracing::trace_analyses().at("diff").run({.traces = {a.trace, b.trace}, .top = top});
  go_on(progress, events, events);
  return c;
}

Comparison compare_snapshots(const Comparable& a, const Comparable& b, size_t top, const Progress& progress) {
  Comparison c;
  c.flames = std::make_shared<tracing::FlamePair>(tracing::flame_difference(*a.snapshot, *b.snapshot));
  go_on(progress, 1, 2);
  c.finding = tracing::snapshot_analyses().at("diff").run({.snapshots = {a.snapshot, b.snapshot}, .top = top});
  go_on(progress, 2, 2);
  return c;
}

}  // namespace

Comparison compare(const Comparable& a, const Comparable& b, size_t top, const Progress& progress) {
  if (!a.trace != !b.trace || !a.snapshot != !b.snapshot || !a.model != !b.model)
    throw Error(fmt::format("A is {} and B is {}: they have nothing to be compared by", kind_of(a), kind_of(b)),
                "Compare two traces, two memory snapshots, or two models or checkpoints.");
  Comparison c;
  if (a.model) {
    c.finding = compare_models(*a.model, *b.model, top, progress);
    return c;
  }
  c = a.trace ? compare_traces(a, b, top, progress) : compare_snapshots(a, b, top, progress);
  if (!c.flames->flame.empty()) c.finding.tables.push_back(tracing::stack_changes(*c.flames, top));
  return c;
}

std::shared_ptr<const formats::ModelFile> weights_after(Project& project, int64_t run, int64_t step,
                                                        const Progress& progress) {
  const auto kept = project.checkpoints(run);
  const auto exact = std::find_if(kept.begin(), kept.end(), [&](const CheckpointInfo& c) { return c.step == step; });
  Checkpoint state =
      exact != kept.end() ? project.load_checkpoint(exact->id) : state_at(project, run, step, 0, progress);
  auto m = std::make_shared<formats::ModelFile>();
  m->kind = formats::FileKind::project;
  m->path = fmt::format("{}@{}@{}", project.path(), project.run(run).name, step);
  auto tensors = std::make_shared<std::vector<Tensor>>();
  const std::string kind = "model/";
  for (auto& [name, t] : state.tensors) {
    if (!name.starts_with(kind)) continue;
    m->tensors.push_back({.name = name.substr(kind.size()),
                          .dtype = tenon::name(t.dtype()),
                          .shape = {t.size().begin(), t.size().end()},
                          .bytes = t.nbytes()});
    m->file_bytes += t.nbytes();
    tensors->push_back(std::move(t));
  }
  m->values = [tensors](size_t entry) { return tensors->at(entry); };
  return m;
}

}  // namespace tenon::projects
