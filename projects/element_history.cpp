#include "projects/element_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/state.h"
#include "tracing/record/step_record.h"
#include "tracing/record/tensor_versions.h"

namespace tenon::projects {
namespace {

using tracing::StepRecord;
using tracing::TensorRecord;

/// The last that has the name: an op that ran twice has two.
const TensorRecord* find_tensor(const StepRecord& r, const std::string& name) {
  for (auto t = r.tensors.rbegin(); t != r.tensors.rend(); ++t)
    if (t->name == name) return &*t;
  return nullptr;
}

bool has_element(const TensorRecord& t, const Dims& element) {
  if (element.n != t.layout.ndim()) return false;
  for (int i = 0; i < element.n; ++i)
    if (element[i] < 0 || element[i] >= t.layout.size[i]) return false;
  return true;
}

double element_of(const Tensor& value, const Dims& element) {
  return value.defined() ? value_at(value, element) : std::nan("");
}

/// The op that made the tensor reads its memory: it made a view, and wrote nothing.
bool reads_memory(const StepRecord& r, const TensorRecord& made) {
  const std::vector<int>& in = r.ops.at(made.producer - 1).inputs;
  return std::any_of(in.begin(), in.end(),
                     [&](int i) { return r.tensors[static_cast<size_t>(i)].storage == made.storage; });
}

ElementStep read_step(const StepRecord& r, const ElementQuery& q) {
  ElementStep s;
  s.step = r.step;
  const TensorRecord* t = find_tensor(r, q.tensor);
  if (!t || !has_element(*t, q.element)) {
    s.missing = t ? fmt::format("{} has size {} here", q.tensor, to_string(t->layout.size))
                  : fmt::format("the step has no {}", q.tensor);
    return s;
  }
  s.had = t->producer == 0 && t->category != Category::gradient;
  const auto last = static_cast<uint32_t>(r.ops.size());
  if (s.had) s.before = element_of(tracing::value_after(*t, 0), q.element);
  s.after = element_of(tracing::value_after(*t, last), q.element);
  std::vector<uint32_t> writers;
  for (const TensorRecord& alias : r.tensors)
    if (alias.storage == t->storage && alias.producer && !reads_memory(r, alias)) writers.push_back(alias.producer);
  for (const tracing::TensorVersion& v : t->versions)
    if (v.from) writers.push_back(v.from);
  std::sort(writers.begin(), writers.end());
  writers.erase(std::unique(writers.begin(), writers.end()), writers.end());
  for (uint32_t seq : writers) {
    const tracing::OpRecord& op = r.ops.at(seq - 1);
    const bool made = s.writes.empty() && !s.had;
    s.writes.push_back({seq, op.name, module_path(op.origin.module), name(op.origin.phase),
                        made ? std::nan("") : element_of(tracing::value_before(*t, seq), q.element),
                        element_of(tracing::value_after(*t, seq), q.element)});
  }
  return s;
}

void check_first(const StepRecord& r, const ElementQuery& q) {
  const TensorRecord* t = find_tensor(r, q.tensor);
  if (!t) {
    std::vector<std::string> names;
    for (const TensorRecord& known : r.tensors) names.push_back(known.name);
    const std::string near = near_names(q.tensor, names.data(), names.size());
    throw Error::usage(fmt::format("step {} has no tensor \"{}\"", r.step, q.tensor),
                       near.empty() ? "`tenon goto PROJECT RUN --step N --all` lists their names." : near);
  }
  if (!has_element(*t, q.element))
    throw Error::usage(fmt::format("{} has size {}; there is no element {}", q.tensor, to_string(t->layout.size),
                                   to_string(q.element)),
                       "An element has an index for every axis, from 0.");
}

}  // namespace

ElementHistory element_history(Project& project, int64_t run, const ElementQuery& query, const Progress& progress) {
  const RunInfo info = project.run(run);
  if (query.step < 1 || query.step > info.steps)
    throw Error::usage(fmt::format("run {} has steps 1 to {}; there is no step {}", info.name, info.steps, query.step));
  ElementHistory h{info.name, query.tensor, query.element, {}};
  const int64_t first = std::max<int64_t>(1, query.step - std::max<int64_t>(query.last, 1) + 1);
  record_values(
      project, run, first, query.step,
      [&](const StepRecord& r) {
        if (h.steps.empty()) check_first(r, query);
        h.steps.push_back(read_step(r, query));
      },
      progress);
  return h;
}

}  // namespace tenon::projects
