#include "tracing/record/own_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/profile.h"
#include "engine/train/session.h"
#include "tracing/trace/trace_maker.h"

namespace tenon::tracing {

OwnTrace own_trace(const std::vector<Tick>& ticks, int64_t start_ns, std::vector<OwnTrace::Step> steps,
                   const std::string& run) {
  traces::TraceMaker maker;
  auto ops = std::make_shared<std::vector<OpEvent>>();
  std::map<uint16_t, uint32_t> rows;
  auto row_of = [&](uint16_t thread) {
    auto [it, fresh] = rows.try_emplace(thread, 0);
    if (fresh) it->second = maker.row(thread, thread == 0 ? "training" : fmt::format("loader {}", thread));
    return it->second;
  };
  row_of(0);
  auto slice = [&](uint16_t thread, const char* category, const std::string& name, int64_t start, int64_t end,
                   OpEvent op) {
    start = std::max<int64_t>(start, 0);  // a loader may have been inside a span when the clock started
    maker.slice(row_of(thread), category, name, start, std::max<int64_t>(0, end - start), ops->size());
    ops->push_back(op);
  };
  for (const auto& s : steps)
    slice(0, "user_annotation", fmt::format("ProfilerStep#{}", s.step), s.start_ns, s.end_ns, {});
  // A backward op belongs to the forward op that was the last to have its number: steps follow one another.
  std::unordered_map<uint32_t, int64_t> forward;
  for (const Tick& t : ticks) {
    const int64_t start = std::max<int64_t>(t.start_ns - start_ns, 0);
    if (t.thread == 0 && t.forward_seq == 0 && t.origin.seq) forward[t.origin.seq] = start;
    if (const auto from = forward.find(t.forward_seq); t.forward_seq && from != forward.end()) {
      maker.forward_backward(row_of(0), from->second, row_of(t.thread), start);
      forward.erase(from);  // the first op of the gradient is linked
    }
    slice(t.thread, t.origin.seq ? "cpu_op" : "user_annotation", interned_name(t.name), t.start_ns - start_ns,
          t.start_ns - start_ns + t.duration_ns, {t.origin.seq, t.origin.module, t.origin.phase});
  }
  auto json_text = [](const std::string& s) {
    return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  auto arguments = [ops, json_text](uint64_t number) {
    const OpEvent& o = (*ops)[number];
    if (o.seq)
      return fmt::format("\"Ev Idx\":{},\"Module Hierarchy\":{},\"phase\":\"{}\"", o.seq,
                         json_text(module_path(o.module)), name(o.phase));
    return o.phase == Phase::none ? std::string() : fmt::format("\"phase\":\"{}\"", name(o.phase));
  };
  OwnTrace own;
  own.store = maker.finish("tenon", {{"traceName", json_text(run)}}, arguments);
  own.ops = ops;
  own.steps = std::move(steps);
  return own;
}

OwnTrace record_profile(TrainingSession& session, int64_t count, const std::string& run) {
  std::vector<OwnTrace::Step> steps;
  profile_start(session.group());
  struct Stop {
    ~Stop() { profile_stop(); }
  } stop;
  const int64_t start = now_ns();
  for (int64_t i = 0; i < count && !session.finished(); ++i) {
    const int64_t begin = now_ns() - start;
    StepResult s = session.step();
    steps.push_back({s.step, begin, now_ns() - start});
  }
  return own_trace(profile_stop(), start, std::move(steps), run);
}

}  // namespace tenon::tracing
