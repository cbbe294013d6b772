// tenon import, artifacts: traces and snapshots in a project, with what was found in them.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/file.h"
#include "engine/formats/gzip.h"
#include "engine/train/recipe.h"
#include "projects/project.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::app {
namespace {

using nlohmann::json;

constexpr uint64_t kLargest = 512 << 20;  // SQLite holds a gigabyte in one value; a file near it stays where it is

struct Found {
  std::string kind;  ///< "trace" or "memory"
  std::vector<std::pair<std::string, tracing::Finding>> findings;
};

/// A list of segments written as JSON is an array too, as a trace without events would be.
bool is_snapshot(const std::string& file) {
  try {
    snapshot::read_snapshot(file);
    return true;
  } catch (const Error&) {
    return false;
  }
}

Found look(const std::string& file) {
  Found found;
  std::string why;
  try {
    tracing::TraceRequest r;
    r.traces.push_back(traces::read_trace(file));
    if (r.first().size() == 0 && r.first().metadata().empty() && is_snapshot(file)) throw Error("it holds no events");
    found.kind = "trace";
    for (const auto& a : tracing::trace_analyses())
      if (a.min_traces == 1) found.findings.emplace_back(a.name, a.run(r));
    return found;
  } catch (const Error& e) {
    why = e.message();
  }
  try {
    tracing::SnapshotRequest r;
    r.snapshots.push_back(snapshot::read_snapshot(file));
    found.kind = "memory";
    for (const auto& a : tracing::snapshot_analyses())
      if (a.min_files == 1) found.findings.emplace_back(a.name, a.run(r));
    return found;
  } catch (const Error& e) {
    throw Error(fmt::format("{} is neither a trace ({}) nor a memory snapshot ({})", file, why, e.message()),
                "tenon inspect says what it is");
  }
}

std::shared_ptr<projects::Project> project_at(const std::string& path) {
  if (std::filesystem::exists(path)) return projects::Project::open(path);
  // Only to hold what is imported: its model is empty until someone builds one.
  ModelSpec model;
  model.name = "imported";
  model.layers = {{"input", "Input", {{"shape", std::vector<int64_t>{1}}}}, {"output", "Output", {}}};
  model.wires = {{"input", 0, "output", 0}};
  return projects::Project::create(path, model, Recipe().to_json());
}

int import_file(const Args& args) {
  const std::string file = args.word(0), path = args.required("-o");
  Found found = look(file);
  const bool made = !std::filesystem::exists(path);
  auto project = project_at(path);
  int64_t run = 0;
  if (args.has("--run")) run = pick_run(*project, args.text("--run")).id;
  const std::string name = std::filesystem::path(file).filename().string();
  const uint64_t bytes = std::filesystem::file_size(file);
  std::string data;
  if (bytes <= kLargest) {
    data = read_file(file);
    if (!formats::is_gzip(data) && !data.starts_with("PK") && !data.starts_with("\x28\xb5\x2f\xfd"))
      data = formats::gzip(data);
  }
  const bool kept = !data.empty() && data.size() <= kLargest;
  if (!kept) data = json{{"file", std::filesystem::absolute(file).string()}, {"bytes", bytes}}.dump();
  std::vector<projects::NewArtifact> all;
  all.push_back({kept ? found.kind : found.kind + " (elsewhere)", name, std::move(data)});
  for (const auto& [analysis, finding] : found.findings)
    all.push_back({"finding", name + ": " + analysis,
                   finding_json(finding).dump(-1, ' ', false, json::error_handler_t::replace)});
  int64_t id = 0;
  try {
    id = project->add_artifacts(run, 0, all).front();
  } catch (const Error&) {
    // A project made only to hold what did not fit into it goes again.
    project.reset();
    std::error_code ignored;
    if (made) std::filesystem::remove(path, ignored);
    throw;
  }
  std::string sentence;
  for (const auto& [analysis, finding] : found.findings)
    if (analysis == (found.kind == "trace" ? "why" : "peak") && finding.ok) sentence = finding.sentence;
  if (args.json()) {
    print_json({{"project", path},
                {"artifact", id},
                {"kind", found.kind},
                {"stored", kept},
                {"findings", found.findings.size()},
                {"sentence", sentence}});
    return 0;
  }
  print(fmt::format("{}: {} is in it with {} analyses{}\n", path, name, found.findings.size(),
                    kept ? "" : " (the file itself is too large and stays where it is)"));
  if (!sentence.empty()) print(sentence + "\n");
  return 0;
}

int artifacts(const Args& args) {
  auto project = open_to_read(args.word(0));
  if (args.words() == 2) {
    const int64_t id = std::atoll(args.word(1).c_str());
    std::string bytes = project->artifact(id);
    if (args.has("-o"))
      write_file(args.text("-o"), bytes);
    else
      print(bytes + "\n");
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"ID", "KIND", "NAME", "BYTES", "CREATED"}};
  for (const auto& a : project->artifacts()) {
    if (args.json())
      print_json({{"id", a.id},
                  {"run", a.run},
                  {"kind", a.kind},
                  {"name", a.name},
                  {"bytes", a.bytes},
                  {"created", a.created}});
    rows.push_back({std::to_string(a.id), a.kind, a.name, bytes_text(a.bytes), a.created});
  }
  if (!args.json())
    print(rows.size() > 1 ? table(rows, {true, false, false, true, false}) : "The project holds no artifacts.\n");
  return 0;
}

const bool registered_import[] = {
    register_command({"import",
                      "FILE -o PROJECT",
                      1,
                      1,
                      {{"-o", "PROJECT", "the project to put it into; made where there is none"},
                       {"--run", "NAME", "the run it belongs to"},
                       {"--json", "", "one JSON object"}},
                      "puts a trace or memory snapshot into a project, with everything found in it",
                      import_file}),
    register_command({"artifacts",
                      "PROJECT [ID]",
                      1,
                      2,
                      {{"-o", "FILE", "where to write the one with that ID"}, {"--json", "", "JSON lines"}},
                      "what a project holds beside its runs",
                      artifacts}),
};

}  // namespace
}  // namespace tenon::app
