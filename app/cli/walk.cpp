// tenon walk, history: a step op by op, and one element over steps.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "engine/train/moments.h"
#include "projects/element_history.h"
#include "tracing/record/step_record.h"
#include "tracing/record/step_walk.h"
#include "views/tensor/history_table.h"
#include "views/walk/walk_table.h"

namespace tenon::app {
namespace {

using tracing::StepRecord;

nlohmann::json list_of(const Dims& d) { return std::vector<int64_t>(d.begin(), d.end()); }

nlohmann::json walked_op_json(const tracing::OpRecord& op) {
  return {{"seq", op.seq},
          {"op", op.name},
          {"module", module_path(op.origin.module)},
          {"phase", name(op.origin.phase)},
          {"attributes", op.attrs}};
}

/// Null: not there, or not kept.
nlohmann::json values_json(const Tensor& value) {
  if (!value.defined()) return nullptr;
  const Moments m = moments_of(value);
  nlohmann::json j = {{"count", m.count}, {"not_finite", m.nans + m.infinite}, {"zeros", m.zeros}};
  if (m.count > m.nans) j.update({{"min", json_number(m.low)}, {"max", json_number(m.high)}});
  if (m.finite()) j["mean"] = m.sum / static_cast<double>(m.finite());
  return j;
}

void tell_op(const Args& args, const StepRecord& r, uint32_t seq) {
  const tracing::OpRecord& op = r.ops[seq - 1];
  const auto lives = tracing::tensor_lives(r);
  if (!args.json()) {
    print(views::cursor_text(r, seq) + (op.attrs.empty() ? "" : "\n" + op.attrs) + "\n");
    print_table(views::walk_tensors_table(r, seq));
    if (args.has("--alive"))
      print_table(views::walk_alive_table(r, lives, seq));
    else
      print("\n" + views::alive_text(r, lives, seq) + "\n");
    return;
  }
  nlohmann::json j = walked_op_json(op), tensors = nlohmann::json::array(), alive = nlohmann::json::array();
  constexpr const char* kRoles[] = {"input", "output", "written over"};
  for (const tracing::WalkTensor& w : tracing::tensors_at(r, seq)) {
    const tracing::TensorRecord& t = r.tensors[static_cast<size_t>(w.tensor)];
    tensors.push_back({{"name", t.name},
                       {"role", kRoles[static_cast<int>(w.role)]},
                       {"dtype", name(t.dtype)},
                       {"shape", list_of(t.layout.size)},
                       {"before", values_json(w.before)},
                       {"after", values_json(w.after)}});
  }
  for (size_t i = 0; i < r.tensors.size(); ++i)
    if (lives[i].at(seq)) alive.push_back(r.tensors[i].name);
  j.update({{"step", r.step}, {"tensors", tensors}, {"alive", alive}});
  print_json(j);
}

void tell_ops(const Args& args, const StepRecord& r) {
  if (!args.json()) return print_table(views::walk_ops_table(r));
  for (const tracing::OpRecord& op : r.ops)
    if (!op.name.empty()) print_json(walked_op_json(op));
}

uint32_t start_of(const Args& args, const StepRecord& r) {
  const int64_t at = args.integer("--at", 0, 1);
  if (at > static_cast<int64_t>(r.ops.size()))
    throw Error::usage(fmt::format("step {} has {} ops; there is no #{}", r.step, r.ops.size(), at));
  if (at > 0 || !args.has("--back")) return static_cast<uint32_t>(at);
  return static_cast<uint32_t>(r.ops.size()) + 1;
}

int run_on(const Args& args, const StepRecord& r, const std::vector<tracing::WalkBreak>& breaks) {
  const bool back = args.has("--back"), every = args.has("--every");
  uint32_t at = start_of(args, r);
  std::vector<std::vector<std::string>> rows = {{"OP", "MODULE", "BREAK", "VALUE"}};
  bool any = false;
  int64_t unknown = 0;
  while (true) {
    const tracing::WalkRun run = tracing::run_to_break(r, at, breaks, back);
    unknown += run.unknown;
    if (args.json() && run.stop) {
      nlohmann::json j = walked_op_json(r.ops[run.stop->seq - 1]);
      j["break"] = breaks[run.stop->which].text;
      if (run.stop->output >= 0) j.update({{"output", run.stop->output}, {"value", json_number(run.stop->value)}});
      print_json(j);
    }
    if (!every || !run.stop) {
      if (!args.json() && !(every && any)) print(views::walk_run_text(r, breaks, run) + "\n");
      if (run.stop && !every) tell_op(args, r, run.stop->seq);
      any = any || run.stop;
      break;
    }
    any = true;
    at = run.stop->seq;
    const tracing::OpRecord& op = r.ops[at - 1];
    rows.push_back({fmt::format("{} #{}", op.name, op.seq), module_path(op.origin.module), breaks[run.stop->which].text,
                    run.stop->output < 0 ? "" : value_text(run.stop->value)});
  }
  if (every && any && !args.json()) {
    print(table(rows, {false, false, false, true}));
    if (unknown)
      print(fmt::format("{} outputs could not be judged: their values were not kept\n", count_text(unknown)));
  }
  return any ? 0 : 1;
}

int walk(const Args& args) {
  std::string text;
  for (const std::string& one : args.all("--break")) text += (text.empty() ? "" : "; ") + one;
  const std::vector<tracing::WalkBreak> breaks = tracing::parse_breaks(text);
  for (const char* option : {"--back", "--every"})
    if (args.has(option) && breaks.empty())
      throw Error::usage(fmt::format("{} says how to run on to a break", option),
                         "Give one: --break \"max_abs(output(*)) > 1e3\"");
  const std::string wanted = args.required("--step");
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = project->run(args.word(1));
  const int64_t step = pick_step(run, wanted);
  use_threads(args);
  catch_interrupts();
  Bar bar("replaying");
  const auto record = projects::record_step(*project, run.id, step, bar.progress());
  bar.clear();
  if (!breaks.empty()) return run_on(args, *record, breaks);
  if (const uint32_t at = start_of(args, *record))
    tell_op(args, *record, at);
  else
    tell_ops(args, *record);
  return 0;
}

Dims element_of(const std::string& text) {
  Dims at;
  size_t from = 0;
  while (from < text.size() || at.n == 0) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string one = text.substr(from, comma - from);
    const size_t first = one.find_first_not_of(' '), last = one.find_last_not_of(' ');
    const bool digits = first != one.npos && one.find_first_not_of("0123456789", first) > last && last - first < 15;
    if (!digits || at.n == kMaxDims)
      throw Error::usage(fmt::format("--element {}: an index for every axis is expected, as in 3,4", text));
    at.push_back(std::stoll(one.substr(first)));
    from = comma + 1;
    if (comma == text.size()) break;
  }
  return at;
}

nlohmann::json history_json(const projects::ElementHistory& h, const projects::ElementStep& s) {
  nlohmann::json j = {{"run", h.run}, {"tensor", h.tensor}, {"element", list_of(h.element)}, {"step", s.step}};
  if (!s.missing.empty()) {
    j["missing"] = s.missing;
    return j;
  }
  if (s.had) j["before"] = json_number(s.before);
  j["after"] = json_number(s.after);
  j["writes"] = nlohmann::json::array();
  for (const projects::ElementWrite& w : s.writes)
    j["writes"].push_back({{"seq", w.seq},
                           {"op", w.op},
                           {"module", w.module},
                           {"phase", w.phase},
                           {"before", json_number(w.before)},
                           {"after", json_number(w.after)}});
  return j;
}

int element_over_steps(const Args& args) {
  projects::ElementQuery query{args.word(2), {}};
  const std::string element = args.text("--element");
  if (!element.empty()) query.element = element_of(element);
  query.last = args.integer("--last", 20, 1);
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = project->run(args.word(1));
  query.step = pick_step(run, args.text("--step", "last"));
  use_threads(args);
  catch_interrupts();
  Bar bar("replaying");
  const projects::ElementHistory h = projects::element_history(*project, run.id, query, bar.progress());
  bar.clear();
  if (args.json()) {
    for (const projects::ElementStep& s : h.steps) print_json(history_json(h, s));
    return 0;
  }
  print(views::history_text(h) + "\n");
  print_table(views::history_table(h));
  return 0;
}

const bool registered_walk[] = {
    register_command(
        {"walk",
         "PROJECT RUN --step N",
         2,
         2,
         {{"--step", "N|last|best", "the step, which is replayed"},
          {"--at", "OP", "the number of an op: what it read and gave, before and after it, and what else is there"},
          {"--break", "TEXT",
           "run on (from --at) to the next op of \"module features.*\", of \"op conv2d\", or whose output fulfils a "
           "condition: \"max_abs(output(*)) > 1e3\"; may be repeated; exit status 1 where there is none"},
          {"--back", "", "backwards"},
          {"--every", "", "every op at which a break holds"},
          {"--alive", "", "list the tensors that are there at the op"},
          kThreads,
          kJson},
         "a step op by op: its ops, or the tensors as of one of them",
         walk}),
    register_command({"history",
                      "PROJECT RUN TENSOR --element I,J",
                      3,
                      3,
                      {{"--element", "I,J", "an index for every axis; none for a tensor without axes"},
                       {"--step", "N|last|best", "the last step that is looked at (last)"},
                       {"--last", "N", "how many steps (20)"},
                       kThreads,
                       kJson},
                      "one element of a tensor over steps, and the ops that wrote it",
                      element_over_steps}),
};

}  // namespace
}  // namespace tenon::app
