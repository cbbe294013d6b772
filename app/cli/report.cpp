// tenon report: a run, a trace, a snapshot or a model file in one page.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "views/report/document_report.h"
#include "views/report/report.h"

namespace tenon::app {
namespace {

using views::Document;

int report_document(const Args& args, Document::Kind kind, const std::string& path) {
  const std::string& file = args.word(0);
  if (args.words() > 1 || args.has("--checkpoint"))
    throw Error::usage(file + " is no project: it has no runs and no checkpoints");
  views::check_page_name(path);
  catch_interrupts();
  Bar reading("reading"), bar("analysing");
  const Document document = views::read_document(file, kind, [&](uint64_t done, uint64_t total) {
    reading.show(static_cast<int64_t>(done), static_cast<int64_t>(total));
    return !interrupted();
  });
  reading.clear();
  views::keep_read(document);
  need_one_trace(document);
  const std::string done = views::write_document_report(document, path, bar.progress());
  bar.clear();
  if (args.json())
    print_json({{"file", path}, {"of", document.title}, {"kind", views::name(kind)}});
  else
    print(done + "\n");
  return 0;
}

int report(const Args& args) {
  const std::string path = args.required("-o");
  if (const auto kind = views::document_kind(args.word(0)); kind != Document::Kind::project)
    return report_document(args, kind, path);
  const auto [project, run, step] = asked_state(args);
  Bar replay("replaying"), bar("evaluating");
  const std::string done = views::write_report(*project, run, step, path, replay.progress(), bar.progress());
  replay.clear();
  bar.clear();
  if (args.json())
    print_json({{"file", path}, {"run", run.name}, {"step", step}});
  else
    print(done + "\n");
  return 0;
}

const bool registered_report =
    register_command({"report",
                      "PROJECT [RUN] | FILE -o F.html",
                      1,
                      2,
                      {{"-o", "FILE", "the page: one file of HTML with everything in it"},
                       {"--checkpoint", "best|last|STEP", "which state of a run (last)"},
                       kThreads,
                       kJson},
                      "writes all about a run, a trace, a snapshot or a model file as one page",
                      report});

}  // namespace
}  // namespace tenon::app
