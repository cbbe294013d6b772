// tenon digest, goto, nan: any step of a run again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "engine/formats/npy.h"
#include "engine/ops/view_steps.h"
#include "projects/run_driver.h"
#include "projects/time_travel.h"
#include "tracing/record/numbers.h"
#include "tracing/record/step_record.h"

namespace tenon::app {
namespace {

int digest(const Args& args) {
  const std::string wanted_step = args.required("--step");
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = project->run(args.word(1));
  const int64_t step = pick_step(run, wanted_step);
  catch_interrupts();
  Bar bar("replaying");
  const std::string d =
      projects::digest_at(*project, run.id, step, static_cast<int>(args.integer("--threads", 0, 1)), bar.progress());
  bar.clear();
  if (args.json())
    print_json({{"run", run.name}, {"step", step}, {"digest", d}});
  else
    print(d + "\n");
  return 0;
}

struct Listed {
  std::string name, kind;
  DType dtype;
  Layout layout;
  Tensor value;  ///< undefined where it was not kept
};

/// The tensor as a chain of views shows it.
void see_through(Listed& l, const std::string& views) {
  const int64_t storage = l.value && l.value.storage()
                              ? static_cast<int64_t>(l.value.storage()->bytes / itemsize(l.dtype))
                              : l.layout.offset + l.layout.numel();
  const std::vector<ViewStep> steps = view_chain(views, l.layout, storage);
  if (steps.empty()) return;
  if (l.value) l.value = viewed(l.value, steps);
  l.layout = steps.back().layout;
  l.name += " " + views;
}

/// Whether a step finds it and leaves it: a record has it as the step found it.
bool lasts(Category c) { return c == Category::parameter || c == Category::buffer || c == Category::optimizer; }

int go_to(const Args& args) {
  const std::string wanted_step = args.required("--step");
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = project->run(args.word(1));
  const int64_t step = pick_step(run, wanted_step);
  std::string wanted = args.text("--tensor");
  if (args.has("--view") && wanted.empty()) throw Error::usage("--view is of one tensor: name it with --tensor");
  if (args.has("--out") && wanted.empty()) throw Error::usage("--out saves one tensor: name it with --tensor");
  use_threads(args);
  catch_interrupts();
  Bar bar("replaying");
  std::vector<Listed> list;
  const Checkpoint state = projects::state_at(*project, run.id, step, 0, bar.progress());
  bool found = false;
  for (const auto& [name, t] : state.tensors) {
    list.push_back({name,
                    name.starts_with("optimizer/") ? "optimizer"
                    : name.starts_with("teacher/") ? "teacher"
                                                   : "model",
                    t.dtype(), t.layout(), t});
    found = found || name == wanted;
  }
  // A parameter by its bare name is what the step left; what the step found is among what it computed with.
  if (const std::string of_model = "model/" + wanted;
      !found && !wanted.empty() && std::any_of(state.tensors.begin(), state.tensors.end(), [&](const auto& named) {
        return named.first == of_model;
      }))
    wanted = of_model, found = true;
  // What the step computed on the way: only when asked for, for it takes a recording.
  if (args.has("--all") || (!wanted.empty() && !found)) {
    if (step < 1)
      throw Error::usage(wanted.empty() ? "step 0 is before the first step: it computed nothing"
                                        : fmt::format("step 0 has no tensor \"{}\"", wanted));
    const auto record = projects::record_step(*project, run.id, step, bar.progress());
    for (const tracing::TensorRecord& t : record->tensors)
      list.push_back({t.name, std::string(name(t.category)) + (lasts(t.category) ? " before the step" : ""), t.dtype,
                      t.layout, t.value});
  }
  bar.clear();

  if (!wanted.empty()) {
    const Listed* hit = nullptr;
    std::vector<std::string> names;
    for (const Listed& l : list) {
      if (l.name == wanted) hit = &l;
      names.push_back(l.name);
    }
    if (!hit) {
      const std::string near = near_names(wanted, names.data(), names.size());
      throw Error::usage(fmt::format("step {} has no tensor \"{}\"", step, wanted),
                         near.empty() ? "Without --tensor, and with --all, their names are listed." : near);
    }
    list = {Listed(*hit)};  // hit points to nothing from here on
    if (args.has("--view")) see_through(list.front(), args.text("--view"));
    if (args.has("--out")) {
      const Tensor& value = list.front().value;
      if (!value)
        throw Error(fmt::format("the values of {} were overwritten within the step and are not kept", wanted));
      formats::save_npy(args.text("--out"), value);
    }
  }
  std::vector<std::vector<std::string>> rows = {
      {"TENSOR", "KIND", "DTYPE", "SHAPE", "STRIDE", "MIN", "MAX", "MEAN", "STD", "NOT FINITE"}};
  for (const Listed& l : list) {
    std::vector<std::string> row = {l.name, l.kind, name(l.dtype), to_string(l.layout.size),
                                    to_string(l.layout.stride)};
    nlohmann::json j = {{"step", step},
                        {"name", l.name},
                        {"kind", l.kind},
                        {"dtype", name(l.dtype)},
                        {"shape", std::vector<int64_t>(l.layout.size.begin(), l.layout.size.end())},
                        {"stride", std::vector<int64_t>(l.layout.stride.begin(), l.layout.stride.end())}};
    if (l.value) {
      const tracing::Statistics s = tracing::statistics(l.value);
      for (double v : {s.min, s.max, s.mean, s.deviation}) row.push_back(value_text(v));
      row.push_back(count_text(s.bad()));
      j.update({{"min", s.min},
                {"max", s.max},
                {"mean", s.mean},
                {"std", s.deviation},
                {"norm", s.norm},
                {"nan", s.nan},
                {"inf", s.positive_infinity + s.negative_infinity}});
    }
    if (args.json()) print_json(j);
    rows.push_back(std::move(row));
  }
  if (!args.json()) print(table(rows, {false, false, false, false, false, true, true, true, true, true}));
  return 0;
}

nlohmann::json origin_json(const tracing::NanOrigin& n) {
  auto list = [](const Dims& d) { return std::vector<int64_t>(d.begin(), d.end()); };
  nlohmann::json operands = nlohmann::json::array();
  for (const auto& o : n.operands)
    operands.push_back({{"name", o.name},
                        {"type", o.type},
                        {"index", list(o.index)},
                        {"value", json_number(o.value)},
                        {"min", o.min},
                        {"max", o.max},
                        {"mean", o.mean},
                        {"not_finite", o.bad}});
  return {{"step", n.step},
          {"seq", n.seq},
          {"op", n.op},
          {"module", n.module},
          {"phase", n.phase},
          {"index", list(n.index)},
          {"value", json_number(n.value)},
          {"not_finite", n.bad},
          {"total", n.total},
          {"operands", operands},
          {"sample", n.sample},
          {"source", n.source},
          {"sentence", n.sentence}};
}

int nan_origin(const Args& args) {
  // Opened for writing where that is possible: the finding is kept in the project.
  const auto project = projects::Project::open(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.words() > 1 ? args.word(1) : "");
  use_threads(args);
  catch_interrupts();
  Bar bar("replaying");
  const auto record = projects::find_nan(*project, run.id, bar.progress());
  bar.clear();
  if (!record) {
    if (args.json())
      print_json({{"run", run.name}, {"found", false}});
    else
      print(fmt::format("run {}: every loss and gradient norm of its {} steps is finite\n", run.name,
                        count_text(run.steps)));
    return 0;
  }
  if (!record->nan)
    throw Error(
        fmt::format("step {} is not finite in the metrics of run {}, but its replay is", record->step, run.name),
        "The data files may have changed since.");
  const tracing::NanOrigin& n = *record->nan;
  const nlohmann::json j = origin_json(n);
  const std::string name = fmt::format("first non-finite value, step {}", n.step);
  bool known = false;
  for (const auto& a : project->artifacts(run.id, "anomaly")) known = known || (a.step == n.step && a.name == name);
  if (!project->read_only() && !known) project->add_artifact(run.id, n.step, "anomaly", name, j.dump());
  if (args.json()) {
    nlohmann::json out = j;
    out.update({{"run", run.name}, {"found", true}});
    print_json(out);
    return 0;
  }
  std::string text = n.sentence + "\n\n";
  std::vector<std::vector<std::string>> rows = {{"step", count_text(n.step)}};
  rows.push_back({"op", n.seq ? fmt::format("{} (#{} of the step, {})", n.op, n.seq, n.phase)
                              : "none: the value was there before the step"});
  rows.push_back({"module", n.module.empty() ? "-" : n.module});
  rows.push_back({"element", fmt::format("{} of the result is {}; {} of {} elements are not finite", to_string(n.index),
                                         value_text(n.value), count_text(n.bad), count_text(n.total))});
  for (const auto& o : n.operands)
    rows.push_back({"input", fmt::format("{} {}: element {} is {}; min {} max {} mean {}, {} not finite", o.name,
                                         o.type, to_string(o.index), value_text(o.value), value_text(o.min),
                                         value_text(o.max), value_text(o.mean), count_text(o.bad))});
  if (n.sample >= 0)
    rows.push_back({"sample", fmt::format("{} of the training set{}", count_text(n.sample),
                                          n.source.empty() ? "" : ": " + n.source)});
  print(text + table(rows));
  return 0;
}

const bool registered_time_travel[] = {
    register_command({"digest",
                      "PROJECT RUN --step N",
                      2,
                      2,
                      {{"--step", "N|last|best", "the step"}, kThreads, kJson},
                      "SHA-256 over parameters, optimizer, random state and data cursor after a step",
                      digest}),
    register_command({"goto",
                      "PROJECT RUN --step N",
                      2,
                      2,
                      {{"--step", "N|last|best", "the step"},
                       {"--tensor", "NAME", "this one only"},
                       {"--view", "VIEWS", "of --tensor: as '.T[::2]' shows it; tenon strides lists the views"},
                       {"--all", "", "also the activations and gradients of the step"},
                       {"--out", "X.npy", "save the tensor"},
                       kThreads,
                       kJson},
                      "goes back to a step and lists its tensors, or saves one",
                      go_to}),
    register_command(
        {"nan", "PROJECT [RUN]", 1, 2, {kThreads, kJson}, "finds where a run first stopped being finite", nan_origin}),
};

}  // namespace
}  // namespace tenon::app
