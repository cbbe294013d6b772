#include "tracing/ops/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/backend.h"
#include "core/error.h"
#include "tracing/record/step_record.h"

namespace tenon::tracing {
namespace {

std::string sizes_of(const StepRecord& r, const OpRecord& op) {
  std::string text;
  const auto& of = op.inputs.empty() ? op.outputs : op.inputs;
  for (int i : of)
    if (i >= 0) text += (text.empty() ? "" : " ") + to_string(r.tensors[static_cast<size_t>(i)].layout.size);
  return text;
}

/// The first device beside the processor on which the step kept a value.
std::string device_elsewhere(const StepRecord& r) {
  for (const TensorRecord& t : r.tensors)
    if (t.value.defined() && !(t.value.device() == Device{})) return to_string(t.value.device());
  return {};
}

double least_ns(double flops, double bytes, const kernels::Ceilings& c) {
  return std::max(flops / c.flops, bytes / c.bytes) * 1e9;
}

Limit limit_of(const RoofRow& row, const kernels::Ceilings& c) {
  if (row.ns < row.count * kSmallCallNs) return Limit::size;
  if (row.least_ns <= 0) return Limit::unknown;
  return row.intensity() >= c.ridge() || row.bytes <= 0 ? Limit::arithmetic : Limit::memory;
}

/// Small calls of an op become one row, in the place of the first.
std::vector<RoofRow> with_small_together(std::vector<RoofRow> rows, std::map<std::string, int64_t>* merged) {
  std::vector<RoofRow> all;
  std::map<std::string, size_t> small;  // by op: its place in `all`
  for (RoofRow& row : rows) {
    if (row.limit != Limit::size) {
      all.push_back(std::move(row));
      continue;
    }
    const auto [at, first] = small.emplace(row.op, all.size());
    ++(*merged)[row.op];
    if (first) {
      all.push_back(std::move(row));
      continue;
    }
    RoofRow& into = all[at->second];
    into.calls.insert(into.calls.end(), row.calls.begin(), row.calls.end());
    into.count += row.count;
    into.ns += row.ns;
    into.flops += row.flops;
    into.bytes += row.bytes;
    into.least_ns += row.least_ns;
  }
  return all;
}

std::string steps_text(const Roofline& r) {
  const std::string time = nanoseconds_text(static_cast<double>(r.step_ns));
  return r.steps == 1 ? fmt::format("{} of step {}", time, count_text(r.last_step))
                      : fmt::format("{} of the {} steps to {}", time, count_text(r.steps), count_text(r.last_step));
}

std::string roofline_sentence(const Roofline& r) {
  int64_t small_ns = 0, beyond = 0;
  for (const RoofRow& row : r.rows) {
    if (row.limit == Limit::size) small_ns += row.ns;
    beyond += row.reached() > 1;
  }
  std::string s = fmt::format("Of the {}, {} run at half of their ceiling or more", steps_text(r),
                              share_text(share(r.near_ns, r.step_ns)));
  constexpr double kWorthTelling = 0.005;
  if (share(small_ns, r.step_ns) >= kWorthTelling)
    s += fmt::format(", and {} are calls too small to fill the machine", share_text(share(small_ns, r.step_ns)));
  s += ".";
  if (!r.rows.empty() && r.rows.front().to_win() > 0) {
    const RoofRow& most = r.rows.front();
    s += fmt::format(" {} has the most to win: {} of its {}{}.",
                     most.sizes.empty() ? most.op : fmt::format("{} of {}", most.op, most.sizes),
                     nanoseconds_text(most.to_win()), nanoseconds_text(static_cast<double>(most.ns)),
                     most.limit == Limit::memory       ? ", where memory is the limit"
                     : most.limit == Limit::arithmetic ? ", where arithmetic is the limit"
                                                       : "");
  }
  if (beyond)
    s += fmt::format(" {} above 100 %: what {} read lay in a cache, or {} in fewer bits than 32.",
                     beyond == 1 ? "One row is" : count_text(beyond) + " rows are", beyond == 1 ? "it" : "they",
                     beyond == 1 ? "it computes" : "they compute");
  return s;
}

Sight sight_of_call(const StepRecord& r, const std::map<uint32_t, int64_t>& events, const RoofRow& row) {
  if (row.calls.empty() || !r.timeline.store) return {};
  const auto at = events.find(row.calls.front());
  return at == events.end() ? Sight{} : Sight::of(at->second);
}

}  // namespace

const char* name(Limit l) {
  switch (l) {
    case Limit::memory:
      return "memory";
    case Limit::arithmetic:
      return "arithmetic";
    case Limit::size:
      return "too small";
    default:
      return "no ceiling known";
  }
}

double RoofRow::to_win() const {
  return limit == Limit::unknown ? 0 : std::max(0.0, static_cast<double>(ns) - least_ns);
}

Roofline roofline(const std::vector<std::shared_ptr<const StepRecord>>& steps, const kernels::Ceilings& ceilings) {
  if (steps.empty()) throw Error("a roofline is of recorded steps, and there is none");
  Roofline r;
  r.ceilings = ceilings;
  r.run = steps.back()->run;
  r.first_step = steps.front()->step;
  r.last_step = steps.back()->step;
  r.steps = static_cast<int64_t>(steps.size());
  for (const auto& step : steps) {
    r.step_ns += step->duration_ns;
    if (r.elsewhere.empty()) r.elsewhere = device_elsewhere(*step);
  }
  if (!r.elsewhere.empty()) return r;
  std::map<std::tuple<std::string, double, double>, size_t> known;  // by op and work: a row
  std::vector<RoofRow> rows;
  for (const auto& step : steps)
    for (const OpRecord& op : step->ops) {
      if (op.seq == 0) continue;
      const auto [at, first] = known.emplace(std::tuple(op.name, op.flops, op.bytes), rows.size());
      if (first) rows.push_back({.op = op.name, .sizes = sizes_of(*step, op)});
      RoofRow& row = rows[at->second];
      if (&step == &steps.back()) row.calls.push_back(op.seq);
      ++row.count;
      row.ns += op.duration_ns;
      row.flops += op.flops;
      row.bytes += op.bytes;
      row.least_ns += least_ns(op.flops, op.bytes, ceilings);
      r.ops_ns += op.duration_ns;
    }
  for (RoofRow& row : rows) row.limit = limit_of(row, ceilings);
  std::map<std::string, int64_t> merged;
  r.rows = with_small_together(std::move(rows), &merged);
  const std::vector<OpRecord>& last = steps.back()->ops;
  for (RoofRow& row : r.rows) {
    if (row.limit == Limit::size && merged[row.op] > 1) row.sizes = fmt::format("{} sizes", merged[row.op]);
    std::stable_sort(row.calls.begin(), row.calls.end(),
                     [&](uint32_t a, uint32_t b) { return last[a - 1].duration_ns > last[b - 1].duration_ns; });
    if (row.reached() >= 0.5) r.near_ns += row.ns;
  }
  std::stable_sort(r.rows.begin(), r.rows.end(),
                   [](const RoofRow& a, const RoofRow& b) { return a.to_win() > b.to_win(); });
  return r;
}

Finding roofline_page(const Roofline& r, const StepRecord& last) {
  if (!r.elsewhere.empty())
    return nothing(fmt::format("Step {} ran on {}: the ceilings that were measured are the processor's.", r.last_step,
                               r.elsewhere));
  Finding f;
  f.sentence = roofline_sentence(r);
  f.facts = {{"peak_gflops", "peak, GFLOP/s of f32", Unit::number, r.ceilings.flops / 1e9},
             {"copy_gbytes", "copied, GB/s", Unit::number, r.ceilings.bytes / 1e9},
             {"ridge", "ridge, FLOP per byte", Unit::number, r.ceilings.ridge()},
             {"threads", "threads", Unit::count, int64_t{r.ceilings.threads}},
             {"step_ns", r.steps == 1 ? "step" : "steps", Unit::nanoseconds, r.step_ns},
             {"between_ns", "between its ops", Unit::nanoseconds, std::max<int64_t>(0, r.step_ns - r.ops_ns)}};
  Table t{"ops",
          {{"op", "OP", Unit::text},
           {"sizes", "SIZES", Unit::text},
           {"to_win_ns", "TO WIN", Unit::nanoseconds},
           {"reached", "REACHED", Unit::share},
           {"limit", "LIMIT", Unit::text},
           {"took_ns", "TOOK", Unit::nanoseconds},
           {"share", "SHARE", Unit::share},
           {"calls", "CALLS", Unit::count},
           {"gflops", "GFLOP/S", Unit::number},
           {"ceiling_gflops", "CEILING", Unit::number},
           {"gbytes", "GB/S", Unit::number},
           {"flop_per_byte", "FLOP PER BYTE", Unit::number},
           {"flops", "FLOP", Unit::count, true},
           {"bytes", "BYTES", Unit::bytes, true}},
          {}};
  std::map<uint32_t, int64_t> events;
  if (last.timeline.store)
    for (traces::EventId e = 0; e < last.timeline.store->size(); ++e)
      if (const uint32_t seq = last.timeline.op(e).seq) events.emplace(seq, e);
  const auto or_empty = [](double v) { return v > 0 ? Cell(v) : Cell(std::string()); };
  for (const RoofRow& row : r.rows)
    t.add({row.op, row.sizes, row.to_win(), row.least_ns > 0 ? Cell(row.reached()) : Cell(std::string()),
           std::string(name(row.limit)), row.ns, share(row.ns, r.step_ns), row.count, or_empty(row.gflops()),
           or_empty(row.ceiling()), or_empty(row.gbytes()), or_empty(row.intensity()), row.flops, row.bytes},
          sight_of_call(last, events, row));
  f.tables.push_back(std::move(t));
  return f;
}

}  // namespace tenon::tracing
