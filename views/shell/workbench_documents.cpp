// What is opened beside the project: read, seen while it is read, shown, closed.
#include <QFileInfo>
#include <algorithm>
#include <chrono>

#include "core/give_way.h"
#include "tracing/snapshot/snapshot.h"
#include "views/frame/view_def.h"
#include "views/shared/format.h"
#include "views/shell/workbench.h"

// Note [Beginnings]
// A gigabyte takes seconds. So a beginning of a large file, which takes a fraction of one, is read beside it and shown
// where its kind is drawn (StepModel::set_beginning); while the whole is still not there, a longer one takes its place
// again and again. None waits for another: the beginning of what was opened last is what is seen. What a person has
// zoomed to in it stays when the whole comes, and the view that they are in stays in front. A beginning is no document:
// nothing of it can be selected, analysed or kept, as its events get other numbers in the whole.

namespace tenon::views {

/// The first file has the layout of its kind, for which a window arranges and draws everything anew: until that is seen
/// nobody else is to keep the processor busy. Not valid: nothing is arranged.
std::shared_future<void> Workbench::arranged_for(Document::Kind kind) {
  if (has_project() || !documents_.empty() || jobs.has_any(kReading)) return {};
  emit first_read(kind);
  const auto seen = std::make_shared<std::promise<void>>();
  QTimer::singleShot(0, this, [seen] { seen->set_value(); });  // when all that was posted is done, the drawing too
  return seen->get_future().share();
}

void Workbench::read(const QString& path, Document::Kind kind) {
  const std::shared_future<void> seen = arranged_for(kind);
  const QString title = QFileInfo(path).fileName();
  const int id = next_document_++;  // documents stand in the order in which they were asked for
  // Before the whole, which keeps its worker for seconds.
  read_clock_.start();
  if (kind == Document::Kind::trace || kind == Document::Kind::snapshot)
    show_beginning(path, kind, id, kFirstBeginning);
  jobs.start(
      kReading + path, tr("Read %1").arg(title),
      [path, kind, seen](const Jobs::Report& report, const std::atomic<bool>&) {
        constexpr std::chrono::milliseconds kLongest(300);
        if (seen.valid()) seen.wait_for(kLongest);
        const auto progress = [&report](uint64_t done, uint64_t total) {
          return report(static_cast<int64_t>(done), static_cast<int64_t>(total));
        };
        return giving_way([&] { return read_document(path.toStdString(), kind, progress); });
      },
      [this, path, id](Document document) {
        document.id = id;
        takes_over_ = true;
        was_read(path, std::move(document));
        takes_over_ = false;
      },
      [this, path, title](const QString& message, const QString& hint) {
        drop_beginning(path);
        fail(tr("Read %1").arg(title), message, hint);
        emit open_failed();
      },
      false, Jobs::Unit::bytes);
}

void Workbench::was_read(const QString& path, Document document) {
  const int id = document.id;
  const Document::Kind kind = document.kind;
  bool any_seen = false, looked_into = false;
  for (const auto& m : models()) {
    any_seen |= m->shows_beginning();
    looked_into |= m->looks_into_beginning();
  }
  const bool seen = any_seen && begun_id_ == id, later_seen = any_seen && begun_id_ > id;
  const auto at = std::find_if(documents_.begin(), documents_.end(), [id](const Document& d) { return d.id > id; });
  const bool newest = at == documents_.end();
  documents_.insert(at, std::move(document));
  log(tr("Opened %1").arg(path));
  emit documents_changed();
  tell_left_out(id);
  tell_mended(id);
  keep(id);
  // What was asked for later is what a person wants to see, unless they look at this one already.
  const bool shows = seen || (newest && !later_seen);
  if (shows) select(Selection::of_document(id, "open"));
  drop_beginning(path);
  if (!shows || (seen && looked_into)) return;
  for (const ViewDef& def : view_defs())
    if (def.opens == kind) return ask(QString("view.") + def.id);
}

void Workbench::show_beginning(const QString& path, Document::Kind kind, int id, size_t bytes) {
  const auto wanted = [this, path] { return jobs.has(kReading + path); };
  jobs.start(
      "beginning " + path, tr("Read the beginning of %1").arg(QFileInfo(path).fileName()),
      [path, kind, bytes](const Jobs::Report&, const std::atomic<bool>&) {
        return read_beginning(path.toStdString(), kind, bytes);
      },
      [this, wanted, id, bytes](std::optional<Document> begun) {
        if (!begun || !wanted()) return more_.stop();
        beginning_ = std::move(begun);
        begun_id_ = id;
        begun_bytes_ = bytes;
        begun_after_ms_ = read_clock_.elapsed();
        more_.start();
        for (const auto& m : models()) m->set_beginning(beginning());
        emit documents_changed();
        emit state_changed();
      },
      [](const QString&, const QString&) {},  // the whole says what is wrong with it
      true);
}

/// A longer beginning, where the whole is still far: it costs a small part of the time that went by before.
void Workbench::see_more() {
  if (!beginning_) return more_.stop();
  if (read_clock_.elapsed() < begun_after_ms_ * static_cast<int64_t>(kNextBeginning)) return;
  more_.stop();
  const QString tag = reading_tag(*beginning_);
  for (const auto& job : jobs.list())
    if (job->tag == tag && job->share() < 0.5)
      show_beginning(QString::fromStdString(beginning_->path), beginning_->kind, begun_id_,
                     begun_bytes_ * kNextBeginning);
}

void Workbench::drop_beginning(const QString& path) {
  if (!beginning_ || (!path.isEmpty() && beginning_->path != path.toStdString())) return;
  more_.stop();
  for (const auto& m : models()) {
    const bool shown = m->shows_beginning();
    m->set_beginning(nullptr);
    if (shown) m->set_document(shown_document());
  }
  beginning_.reset();
  emit documents_changed();
  emit state_changed();
}

/// A job that was cancelled tells nobody.
void Workbench::reading_cancelled() {
  const QString path = QString::fromStdString(beginning_->path), title = QString::fromStdString(beginning_->title);
  drop_beginning({});
  log(tr("Reading %1 was cancelled").arg(path));
  emit notice({tr("Reading %1 was cancelled").arg(title), tr("Nothing of it is open."), tr("Read it"),
               [this, path] { open(path); },
               [this, path] {
                 return std::none_of(documents_.begin(), documents_.end(),
                                     [&](const Document& d) { return d.path == path.toStdString(); }) &&
                        !jobs.has(kReading + path);
               },
               true});
}

/// For the next time: written once the document is there to be seen, and with the overview, which is seen first and
/// worked out once for both.
void Workbench::keep(int id) {
  const Document* d = document(id);
  if (d->kind != Document::Kind::trace && d->kind != Document::Kind::snapshot) return;
  jobs.start(
      QString("keep %1").arg(id), tr("Keep what was read of %1").arg(QString::fromStdString(d->title)),
      [document = *d](const Jobs::Report&, const std::atomic<bool>&) {
        giving_way([&] { keep_read(document, true); });
      },
      [] {}, {}, true);
}

/// Files of a folder that are not among what is shown of it.
void Workbench::tell_left_out(int id) {
  const Document* d = document(id);
  if (!d || d->left_out.empty()) return;
  QStringList sentences;
  for (const std::string& s : d->left_out) sentences << QString::fromStdString(s);
  for (const QString& s : sentences) log(s);
  constexpr qsizetype kTold = 3;
  const qsizetype more = sentences.size() - kTold;
  if (more > 0) sentences = sentences.mid(0, kTold) << tr("And %1 more, which the log names.").arg(more);
  emit notice({tr("Some of the folder was left out"),
               sentences.join(" "),
               {},
               {},
               [this, id] { return document(id) != nullptr; },
               true});
}

/// What was mended or passed over in a file, with the way to the list of it.
void Workbench::tell_mended(int id) {
  const Document* d = document(id);
  uint64_t count = 0;
  bool cut = false;
  if (d->trace && d->ranks.empty()) {
    for (const traces::Repair& r : d->trace->repairs()) count += r.count;
    cut = d->trace->truncated();
  } else if (d->snapshot) {
    for (const auto& [what, times] : d->snapshot->repairs) count += times;
    cut = d->snapshot->truncated;
  }
  if (count == 0 && !cut) return;
  const QString title = QString::fromStdString(d->title);
  QStringList sentences;
  if (cut) sentences << tr("It ends in the middle: what was whole is here.");
  if (count == 1) sentences << tr("1 thing in it was mended or passed over.");
  if (count > 1)
    sentences << tr("%1 things in it were mended or passed over.")
                     .arg(QString::fromStdString(format_grouped(static_cast<int64_t>(count))));
  log(title + ": " + sentences.join(" "));
  emit notice({tr("%1 is not as it should be").arg(title), sentences.join(" "), tr("Show what"),
               [this, id] {
                 select(Selection::of_document(id, "notice"));
                 ask("view.details");
               },
               [this, id] { return document(id) != nullptr; }, true});
}

/// Every view that shows documents follows the selection to its own.
void Workbench::show_document(int id) {
  if (id == shown_document_ || (id != Document::kProject && !document(id))) return;
  shown_document_ = id;
  for (const auto& m : models()) m->set_document(document(id));
  emit documents_changed();
  tell_filter();
}

void Workbench::close_document(int id) {
  if (!document(id)) return;
  bus.forget_document(id);
  filters_.forget(id);
  show_document(Document::kProject);
  const auto at = std::find_if(documents_.begin(), documents_.end(), [id](const Document& d) { return d.id == id; });
  auto closed = std::make_shared<Document>(std::move(*at));
  documents_.erase(at);
  emit documents_changed();
  emit state_changed();
  // Gigabytes take their time to be given back.
  jobs.start(
      QString("close %1").arg(id), tr("Close %1").arg(QString::fromStdString(closed->title)),
      [closed](const Jobs::Report&, const std::atomic<bool>&) { *closed = {}; }, [] {}, {}, true);
}

}  // namespace tenon::views
