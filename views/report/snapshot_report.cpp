// The page of a memory snapshot.
#include <algorithm>

#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/snapshot.h"
#include "views/memory/snapshot_plot.h"
#include "views/report/document_report.h"
#include "views/shared/scene_svg.h"

namespace tenon::views {

namespace {
constexpr float kUsageWidth = 920, kUsageHeight = 420;
constexpr size_t kBlocksListed = 25, kRowsOfFinding = 20;

/// The device that held most, at the moment it did.
void tell_usage(HtmlPage& page, const Document& d) {
  size_t most = 0;
  for (size_t i = 0; i < d.timelines.size(); ++i)
    if (d.timelines[i]->peak_bytes() > d.timelines[most]->peak_bytes()) most = i;
  if (most >= d.timelines.size() || d.timelines[most]->events() == 0)
    return page.text(
        "The snapshot has no recorded events, so nothing is known of memory over time: "
        "torch.cuda.memory._record_memory_history() before the dump keeps them.");
  SnapshotPlot plot;
  plot.set_history(read_history(d, {.document = d.id, .trace = most}));
  plot.set_map(
      std::make_shared<const snapshot::AllocatorState>(snapshot::state_after(*d.snapshot, most, plot.cursor() + 1)));
  Scene scene({kUsageWidth, kUsageHeight});
  plot.draw(scene);
  page.text("The cursor stands at the peak, " + plot.moment_text(plot.cursor()) + ".");
  page.figure(to_inline_svg(scene, "Memory of " + d.title, "usage-"),
              "Bytes alive over the recording, by who allocated them; under it what lay where at the peak.");
  page.heading("By who allocated it");
  page.table(plot.groups());
  Table blocks = plot.blocks();
  if (blocks.rows.size() > kBlocksListed) blocks.rows.resize(kBlocksListed);
  page.folded("The largest blocks at the peak", blocks);
}
}  // namespace

void tell_snapshot(HtmlPage& page, const Document& d, const PageProgress& progress) {
  std::vector<NamedFinding> all;
  for (const tracing::SnapshotAnalysis& a : tracing::snapshot_analyses())
    if (a.min_files == 1)
      all.push_back({a.name, [&d, run = a.run] { return run({.snapshots = {d.snapshot}, .top = kRowsOfFinding}); }});
  go_on(progress, 0, all.size() + 1);
  page.section("usage", "Memory over time");
  tell_usage(page, d);
  tell_findings(page, all, progress);
}

}  // namespace tenon::views
