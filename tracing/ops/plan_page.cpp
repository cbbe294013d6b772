#include "tracing/ops/plan_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tracing/ops/seen_plan.h"

namespace tenon::tracing {

namespace {
Cell needed_until(const SeenPlan& plan, const StepPlanRow& r) {
  if (r.last >= static_cast<int>(plan.kernels.size())) return std::string("left behind");
  const StepPlanRow& last = plan.kernels[static_cast<size_t>(r.last)].row;
  return last.again ? Cell(fmt::format("{}, again", last.seq)) : Cell(int64_t{last.seq});
}
}  // namespace

Finding plan_page(const SeenPlan& plan) {
  if (!plan.planned()) return nothing(fmt::format("There is no plan: {}.", fmt::join(plan.told, "; ")));
  const StepPlanFigures& figures = plan.figures;
  Finding f;
  f.sentence = fmt::format(
      "Forward and backward are {} kernels{}{}{}. Their values share {} of memory; one beside the other they "
      "would take {}.",
      count_text(figures.kernels),
      figures.chains == 0 ? ""
                          : fmt::format(", {} of which run tile by tile in {} {}", count_text(figures.chained),
                                        count_text(figures.chains), figures.chains == 1 ? "chain" : "chains"),
      figures.again == 0 ? ""
      : figures.again == 1
          ? "; one of the kernels computes again what was not kept"
          : fmt::format("; {} of the kernels compute again what was not kept", count_text(figures.again)),
      figures.views == 0 ? ""
      : figures.views == 1
          ? "; one op beside them is a view, which costs nothing"
          : fmt::format("; {} ops beside them are views, which cost nothing", count_text(figures.views)),
      bytes_text(figures.arena_bytes), bytes_text(figures.value_bytes));
  f.facts = {{"kernels_count", "kernels", Unit::count, figures.kernels},
             {"again_count", "kernels that run again", Unit::count, figures.again},
             {"views_count", "views", Unit::count, figures.views},
             {"chains_count", "chains", Unit::count, figures.chains},
             {"chained_count", "kernels in chains", Unit::count, figures.chained},
             {"arena_bytes", "arena", Unit::bytes, figures.arena_bytes},
             {"value_bytes", "values", Unit::bytes, figures.value_bytes},
             {"peak_bytes", "alive at the peak", Unit::bytes, plan.peak_bytes}};
  Table t{"kernels",
          {{"seq", "#", Unit::count},
           {"op", "OP", Unit::text},
           {"module", "MODULE", Unit::text},
           {"phase", "PHASE", Unit::text},
           {"results", "RESULTS", Unit::text},
           {"bytes", "BYTES", Unit::bytes},
           {"offset", "AT", Unit::count},
           {"last_seq", "NEEDED UNTIL #", Unit::count},
           {"peak_bytes", "AT PEAK", Unit::bytes},
           {"chain", "CHAIN", Unit::count},
           {"why", "WHY NOT CHAINED", Unit::text, true}},
          {}};
  const Cell none = std::string();
  for (const PlannedKernel& k : plan.kernels) {
    const StepPlanRow& r = k.row;
    t.rows.push_back({int64_t{r.seq}, r.again ? fmt::format("{}, again", r.op) : std::string(r.op), r.module,
                      std::string(name(r.phase)), r.results, r.bytes,
                      r.tile         ? Cell(std::string("tile"))
                      : r.offset < 0 ? none
                                     : Cell(r.offset),
                      needed_until(plan, r), k.peak_bytes == 0 ? none : Cell(k.peak_bytes),
                      r.chain < 0 ? none : Cell(int64_t{r.chain}), r.why});
  }
  f.tables.push_back(std::move(t));
  return f;
}

}  // namespace tenon::tracing
