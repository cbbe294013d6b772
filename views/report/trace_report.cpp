// The page of a trace.
#include "tracing/analyses/trace_analysis.h"
#include "views/overview/overview_model.h"
#include "views/report/document_report.h"
#include "views/shared/scene_svg.h"

namespace tenon::views {

namespace {
constexpr float kTracePicture = 920, kTracePictureHeight = 300;
constexpr size_t kRowsOfReport = 25;  // as many as the command line shows

void tell_trace_overview(HtmlPage& page, const Document& d) {
  page.section("overview", "Overview");
  const auto overview = read_overview(d.trace, {}, kRowsOfReport);
  page.text(overview->page.sentence);
  if (!overview->overview) return;
  page.facts(overview->page.figures);
  OverviewModel bars;
  bars.set_page(overview);
  page.figure(to_inline_svg(bars.frame({kTracePicture, kTracePictureHeight}), "Steps of " + d.title, "steps-"),
              "The time of every step by part. Every moment counts once, as the first part that goes on in it, so the "
              "parts of a step add up to its length.");
  auto table = [&](const char* title) {
    const Table* t = overview->table(title);
    return t && !t->rows.empty() ? t : nullptr;
  };
  page.heading("What to try");
  if (const Table* t = table("Recommendations"))
    page.table(*t);
  else
    page.text(kNoAdvice);
  if (const Table* t = table("Kernels")) {
    page.heading("Kernels, copies and fills");
    page.table(*t);
  }
  if (const Table* t = table("Ops")) {
    page.heading("Ops");
    page.table(*t);
  }
  if (const Table* t = table("Steps")) page.folded("Every step by part", *t);
  if (const Table* t = table("Parts")) page.folded("The parts in numbers", *t);
  if (const Table* t = table("Configuration")) {
    page.section("configuration", "Configuration");
    page.table(*t);
  }
}
}  // namespace

void tell_trace(HtmlPage& page, const Document& d, const PageProgress& progress) {
  std::vector<NamedFinding> all;
  for (const tracing::TraceAnalysis& a : tracing::trace_analyses())
    if (a.min_traces == 1 && a.name != "overview")
      all.push_back({a.name, [&d, run = a.run] { return run({.traces = {d.trace}, .top = kRowsOfReport}); }});
  go_on(progress, 0, all.size() + 1);
  tell_trace_overview(page, d);
  tell_findings(page, all, progress);
}

}  // namespace tenon::views
