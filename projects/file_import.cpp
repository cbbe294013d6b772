#include "projects/file_import.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/utf8.h"
#include "engine/formats/gzip.h"
#include "tracing/analyses/finding_json.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::projects {

namespace {
using nlohmann::json;

constexpr uint64_t kLargest = 512 << 20;  // SQLite holds a gigabyte in one value; a file near it stays where it is

/// A list of segments written as JSON is an array too, as a trace without events would be.
bool is_snapshot(const std::string& file) {
  try {
    snapshot::read_snapshot(file);
    return true;
  } catch (const Error&) {
    return false;
  }
}
}  // namespace

LookedAt look_at(const std::string& file, const Progress& progress) {
  LookedAt looked{file, {}, {}};
  std::error_code gone;  // told by who reads it
  const auto whole = static_cast<int64_t>(std::filesystem::file_size(file, gone));
  auto go_on = [&](int64_t done) {
    if (progress && !progress(done, whole)) throw Error("cancelled");
  };
  std::string why;
  try {
    traces::ReadOptions options;
    if (progress)
      options.progress = [&progress](uint64_t done, uint64_t total) {
        return progress(static_cast<int64_t>(done), static_cast<int64_t>(total));
      };
    tracing::TraceRequest r;
    r.traces.push_back(traces::read_trace(file, options));
    if (r.first().size() == 0 && r.first().metadata().empty() && is_snapshot(file)) throw Error("it holds no events");
    looked.kind = "trace";
    for (const auto& a : tracing::trace_analyses()) {
      go_on(whole);
      if (a.min_traces == 1) looked.findings.emplace_back(a.name, a.run(r));
    }
    return looked;
  } catch (const Error& e) {
    why = e.message();
  }
  go_on(0);
  try {
    tracing::SnapshotRequest r;
    r.snapshots.push_back(snapshot::read_snapshot(file));
    looked.kind = "memory";
    for (const auto& a : tracing::snapshot_analyses())
      if (a.min_files == 1) looked.findings.emplace_back(a.name, a.run(r));
    return looked;
  } catch (const Error& e) {
    throw Error(fmt::format("{} is neither a trace ({}) nor a memory snapshot ({})", file, why, e.message()),
                "`tenon inspect FILE` says what it is.");
  }
}

ImportedFile add_file(Project& project, int64_t run, const LookedAt& looked) {
  ImportedFile in;
  in.kind = looked.kind;
  in.name = std::filesystem::path(looked.file).filename().string();
  const uint64_t bytes = std::filesystem::file_size(looked.file);
  std::string data;
  if (bytes <= kLargest) {
    data = read_file(looked.file);
    if (!formats::is_gzip(data) && !data.starts_with("PK") && !data.starts_with("\x28\xb5\x2f\xfd"))
      data = formats::gzip(data);
  }
  in.stored = !data.empty() && data.size() <= kLargest;
  if (!in.stored) {
    const std::string at = std::filesystem::absolute(looked.file).string();
    if (!is_utf8(at))
      throw Error(as_utf8(at) + ": a project says where so large a file lies, and its name is not UTF-8", "rename it");
    data = json{{"file", at}, {"bytes", bytes}}.dump();
  }
  std::vector<NewArtifact> all;
  all.push_back({in.stored ? in.kind : in.kind + " (elsewhere)", in.name, std::move(data)});
  for (const auto& [analysis, finding] : looked.findings) {
    all.push_back({"finding", in.name + ": " + analysis,
                   tracing::finding_json(finding).dump(-1, ' ', false, json::error_handler_t::replace)});
    if (analysis == (in.kind == "trace" ? "why" : "peak") && finding.ok) in.sentence = finding.sentence;
  }
  in.findings = looked.findings.size();
  in.artifact = project.add_artifacts(run, 0, all).front();
  return in;
}

std::string ImportedFile::text() const {
  return fmt::format("{} is in it with {} analyses{}", name, findings,
                     stored ? "" : " (the file itself is too large and stays where it is)");
}

}  // namespace tenon::projects
