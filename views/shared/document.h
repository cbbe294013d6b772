#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracing/trace/counter_curve.h"
#include "tracing/trace/file_key.h"
#include "tracing/trace/joined_trace.h"
#include "tracing/trace/trace_store.h"

namespace tenon::formats {
struct ModelFile;
}
namespace tenon::snapshot {
struct Snapshot;
class Timeline;
}  // namespace tenon::snapshot

namespace tenon::views {

/// A file that the window holds open, or a folder with the traces of the ranks of one session.
struct Document {
  enum class Kind : uint8_t { project, trace, snapshot, model };
  static constexpr int kProject = 0;  ///< the id of the project, of which a window has at most one
  /// The id of what is seen of a file while it is read: nothing of it can be selected.
  static constexpr int kBeginning = -1;

  int id = kProject;  ///< counts from 1 for what is opened beside the project; never given again
  Kind kind = Kind::project;
  std::string path, title;

  // What was read of it: one of these, by its kind.
  std::shared_ptr<const traces::Trace> trace = {};
  std::shared_ptr<const std::vector<traces::CounterCurve>> curves = {};  ///< of the trace
  std::shared_ptr<const snapshot::Snapshot> snapshot = {};
  std::vector<std::shared_ptr<const snapshot::Timeline>> timelines = {};  ///< of the snapshot's traces
  std::shared_ptr<const formats::ModelFile> model = {};

  // Of a session: `trace` holds the events of all ranks on one axis, for the timeline and what is selected in it.
  std::vector<traces::TracePart> ranks = {};
  size_t rank = 0;                          ///< of them, what every other page is about
  std::vector<std::string> left_out = {};   ///< a sentence for each file of the folder that is not among them
  std::optional<traces::FileKey> key = {};  ///< of the file as it was read; a folder has none
  bool cut = false;                         ///< short since then: what is missing of it counts as zeros

  /// What pages are about: the rank that is chosen, or the one trace that there is.
  traces::TracePart part() const { return part_of(rank); }
  traces::TracePart part_of(size_t chosen) const { return ranks.empty() ? traces::TracePart{trace} : ranks.at(chosen); }
  /// The rank that an event of `trace` belongs to; -1: none, or there are no ranks.
  int rank_of(int64_t event) const;
  /// "rank 3"; empty where there are none.
  std::string rank_title(size_t which) const;
  std::string rank_title() const { return rank_title(rank); }
  /// "session", "session · rank 3": what pages say they are about.
  std::string part_title() const { return ranks.empty() ? title : title + " · " + rank_title(); }
  /// The rank that is chosen, as a document of its file alone.
  Document only_rank() const;
};
/// "trace", "snapshot"
const char* name(Document::Kind kind);
/// What a list says of it: how large the file is, and what is in it ("12,345 events").
struct DocumentNote {
  double bytes = 0;
  std::string holds, icon;
};
DocumentNote note_of(const Document& document);

/// What a file is to the window, by its content; a folder is one of traces. What is none of these counts as a project,
/// whose reader says what is wrong with it. Throws Error where the file cannot be read.
Document::Kind document_kind(const std::string& path);

/// The beginning of a large trace or snapshot, to be seen while the whole of it is read: Document::kBeginning. `bytes`:
/// of its text. Nothing where the file opens in a moment, or no more than a beginning of it would be left. Throws Error
/// as read_document().
std::optional<Document> read_beginning(const std::string& path, Document::Kind kind, size_t bytes);
/// What is seen first, and how many times more the next beginning holds while the whole is still not there.
inline constexpr size_t kFirstBeginning = size_t{24} << 20, kNextBeginning = 6;
/// Keeps what was read of a trace or a snapshot for the next time, as the settings say; of a trace alone with its
/// overview, where asked for.
void keep_read(const Document& document, bool with_overview = false);

/// Reads a file that is no project, or a folder of traces; the id is left to the window, and so is keep_read().
/// `progress` is called with bytes; returning false throws Error "cancelled". Throws Error naming the file where it is
/// not what its kind says, or there is no view yet for it.
Document read_document(const std::string& path, Document::Kind kind,
                       const std::function<bool(uint64_t done, uint64_t total)>& progress = {});

}  // namespace tenon::views
