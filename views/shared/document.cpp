#include "views/shared/document.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/file_kind.h"
#include "engine/formats/model_file.h"
#include "tracing/analyses/session.h"
#include "tracing/analyses/whole_overview.h"
#include "tracing/snapshot/snapshot.h"
#include "tracing/snapshot/snapshot_store.h"
#include "tracing/trace/source_text.h"
#include "tracing/trace/store_file.h"
#include "tracing/trace/trace_reader.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/settings.h"
#include "views/shared/tensor_stats.h"

namespace tenon::views {

using formats::FileKind;

namespace {
/// Which of the two a text or what is packed holds, by its first bytes: both may be JSON, and both are packed by gzip.
Document::Kind trace_or_snapshot(const std::string& path) {
  constexpr size_t kLooked = 1 << 16;
  const std::string head = traces::unpacked_head(path, kLooked);
  if (formats::file_kind(head) == FileKind::pickle) return Document::Kind::snapshot;
  auto first = [&](std::initializer_list<const char*> keys) {
    size_t at = std::string::npos;
    for (const char* key : keys) at = std::min(at, head.find(key));
    return at;
  };
  const bool snapshot = first({"\"segments\"", "\"device_traces\"", "\"segment_type\""}) <
                        first({"\"traceEvents\"", "\"schemaVersion\"", "\"ph\""});
  return snapshot ? Document::Kind::snapshot : Document::Kind::trace;
}

using Curves = std::vector<traces::CounterCurve>;

/// Those of all ranks on the axis of the whole, each with its rank before its name.
Curves curves_of(const Document& d) {
  Curves all;
  for (size_t r = 0; r < d.ranks.size(); ++r)
    for (const traces::CounterCurve& c : traces::counter_curves(*d.ranks[r].trace))
      all.push_back(c.moved(d.rank_title(r) + " · " + c.name(), d.ranks[r].shift));
  return all;
}

void add_timelines(Document& d) {
  for (size_t i = 0; i < d.snapshot->traces.size(); ++i)
    d.timelines.push_back(std::make_shared<const snapshot::Timeline>(*d.snapshot, i));
}

/// The ranks of a folder; of one trace alone a document of that file.
void read_folder(Document& d, const traces::ReadOptions& options) {
  tracing::Session session = tracing::read_session({d.path}, options);
  d.left_out = std::move(session.left_out);
  if (session.ranks.size() == 1) {
    d.trace = session.ranks[0];
    d.path = d.trace->path();
    d.title = std::filesystem::path(d.path).filename().string();
    d.curves = std::make_shared<const Curves>(traces::counter_curves(*d.trace));
    return;
  }
  traces::JoinedTraces joined = tracing::join_ranks(session.ranks, d.path);
  d.trace = std::move(joined.whole);
  d.ranks = std::move(joined.parts);
  d.curves = std::make_shared<const Curves>(curves_of(d));
}
}  // namespace

int Document::rank_of(int64_t event) const {
  for (size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].holds(event)) return static_cast<int>(r);
  return -1;
}

std::string Document::rank_title(size_t which) const {
  return which < ranks.size() ? tracing::rank_name(*ranks[which].trace, which) : std::string();
}

Document Document::only_rank() const {
  if (ranks.empty()) return *this;
  Document d{.id = id, .kind = kind, .path = ranks[rank].trace->path(), .title = part_title()};
  d.trace = ranks[rank].trace;
  return d;
}

Document::Kind document_kind(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return Document::Kind::trace;
  const auto file = MappedFile::open(path);
  const std::string_view bytes = file->bytes();
  switch (formats::file_kind(bytes)) {
    case FileKind::json:
    case FileKind::gzip:
      return trace_or_snapshot(path);
    case FileKind::zip:
      return traces::zip_members(path).empty() ? Document::Kind::project : Document::Kind::trace;
    case FileKind::pickle:
      return Document::Kind::snapshot;
    case FileKind::onnx:
    case FileKind::safetensors:
    case FileKind::torch:
    case FileKind::torch_legacy:
    case FileKind::torchscript:
    case FileKind::torch_export:
    case FileKind::torch_tar:
    case FileKind::gguf:
    case FileKind::npy:
    case FileKind::npz:
      return Document::Kind::model;
    default:
      if (traces::is_store(traces::kTraceStore, bytes)) return Document::Kind::trace;
      if (traces::is_store(snapshot::kSnapshotStore, bytes)) return Document::Kind::snapshot;
      return bytes.starts_with("\x28\xb5\x2f\xfd") ? trace_or_snapshot(path) : Document::Kind::project;  // zstd
  }
}

const char* name(Document::Kind kind) {
  switch (kind) {
    case Document::Kind::project:
      return "project";
    case Document::Kind::trace:
      return "trace";
    case Document::Kind::snapshot:
      return "snapshot";
    case Document::Kind::model:
      return "model";
  }
  return "";
}

DocumentNote note_of(const Document& d) {
  const auto count = [](size_t n) { return format_grouped(static_cast<int64_t>(n)); };
  if (d.trace)
    return {static_cast<double>(d.trace->source_bytes()),
            d.ranks.empty() ? tr("{} events", count(d.trace->size()))
                            : tr("{} events of {} ranks", count(d.trace->size()), d.ranks.size()),
            "timeline"};
  if (d.snapshot)
    return {static_cast<double>(d.snapshot->source_bytes), tr("{} events", count(d.snapshot->events.size_())),
            "memory"};
  if (d.model) return {static_cast<double>(d.model->file_bytes), format_tensors(d.model->tensors.size()), "model"};
  return {};
}

std::optional<Document> read_beginning(const std::string& path, Document::Kind kind, size_t bytes) {
  // What is less is read before anyone has looked at its beginning.
  constexpr uint64_t kLarge = 48 << 20, kLargePacked = 4 << 20;
  constexpr size_t kMostText = size_t{256} << 20;  // of a trace, whose text is kept
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return {};
  const uint64_t all = std::filesystem::file_size(path, code);
  const FileKind is = formats::file_kind(MappedFile::open(path)->bytes());
  const bool packed = is != FileKind::json && is != FileKind::pickle;
  if (code || all < (packed ? kLargePacked : kLarge) || (kind == Document::Kind::trace && bytes > kMostText)) return {};
  // A longer one than the first is worth its work where it is still a small part of what is to be read.
  if (bytes > kFirstBeginning && all < (packed ? bytes / 8 : 8 * bytes)) return {};
  Document d{
      .id = Document::kBeginning, .kind = kind, .path = path, .title = std::filesystem::path(path).filename().string()};
  if (kind == Document::Kind::trace) {
    d.trace = traces::read_beginning(path, bytes);
    if (!d.trace) return {};
    d.curves = std::make_shared<const Curves>(traces::counter_curves(*d.trace));
  } else {
    d.snapshot = snapshot::read_beginning(path, bytes);
    if (!d.snapshot) return {};
    add_timelines(d);
  }
  return d;
}

void keep_read(const Document& d, bool with_overview) {
  if (!settings::flag("keep_read_traces")) return;
  if (d.ranks.empty() && d.trace) with_overview ? tracing::keep_with_overview(d.trace) : traces::keep_store(*d.trace);
  for (const traces::TracePart& r : d.ranks) traces::keep_store(*r.trace);
  if (d.snapshot) snapshot::keep_store(*d.snapshot);
}

Document read_document(const std::string& path, Document::Kind kind,
                       const std::function<bool(uint64_t done, uint64_t total)>& progress) {
  Document d{.kind = kind, .path = path, .title = std::filesystem::path(path).filename().string()};
  const traces::ReadOptions options{.write_cache = false, .progress = progress};
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) d.key = traces::file_key(path);
  switch (kind) {
    case Document::Kind::trace:
      if (std::filesystem::is_directory(path, code)) {
        read_folder(d, options);
        break;
      }
      d.trace = traces::read_trace(path, options);
      d.curves = std::make_shared<const Curves>(traces::counter_curves(*d.trace));
      break;
    case Document::Kind::snapshot:
      d.snapshot = snapshot::read_snapshot(path, {.write_cache = false, .progress = progress});
      add_timelines(d);
      break;
    case Document::Kind::model:
      d.model = formats::ModelFile::open(path);
      break;
    case Document::Kind::project:
      throw Error(path + " is no trace, snapshot or model");
  }
  return d;
}

}  // namespace tenon::views
