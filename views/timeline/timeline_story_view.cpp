// What the timeline has worked out for whoever sees it: the story of a trace, the memory beside it, its sums by name.
#include <QToolButton>
#include <utility>
#include <vector>

#include "core/give_way.h"
#include "tracing/analyses/memory_beside.h"
#include "tracing/analyses/trace_story.h"
#include "views/frame/table_list.h"
#include "views/timeline/timeline_view.h"

namespace tenon::views {

namespace {
constexpr const char *kStoryJob = "trace story", *kBesideJob = "memory beside";
}

bool TimelineView::wants_story() const {
  const Document* d = bench_.shown_document();
  return d && d->trace && model_.shows_document() && !model_.shows_beginning() &&
         (path_->isChecked() || gaps_->isChecked());
}

/// Of documents that are closed. That of a gigabyte takes its time to be given back.
void TimelineView::forget_stories() {
  std::vector<std::shared_ptr<const tracing::TraceStory>> closed;
  std::erase_if(stories_, [&](auto& s) {
    if (bench_.document(s.first.first)) return false;
    closed.push_back(std::move(s.second));
    return true;
  });
  if (closed.empty()) return;
  bench_.jobs.start(
      "close trace story", tr("Close the critical path"),
      [closed = std::move(closed)](const Jobs::Report&, const std::atomic<bool>&) mutable { closed.clear(); }, [] {},
      {}, true);
}

void TimelineView::refresh_story() {
  const Document* d = bench_.shown_document();
  model_.show_path(path_->isChecked());
  model_.show_gaps(gaps_->isChecked());
  const bool wanted = wants_story();
  const Part part = d ? Part(d->id, d->rank) : Part();
  if (bench_.jobs.has(kStoryJob) && (!wanted || asked_ != part)) bench_.jobs.cancel_tag(kStoryJob);
  if (!wanted) return;
  if (const auto known = stories_.find(part); known != stories_.end()) {
    if (model_.story() != known->second) model_.set_story(known->second, d->rank_title());
    return;
  }
  model_.set_story(nullptr);  // of another rank
  look();
}

void TimelineView::ask_story() {
  if (!wants_story() || bench_.jobs.has(kStoryJob)) return;
  const Document* d = bench_.shown_document();
  const Part part(d->id, d->rank);
  if (stories_.contains(part)) return;
  asked_ = part;
  bench_.jobs.start(
      kStoryJob, tr("Critical path of %1").arg(QString::fromStdString(d->part_title())),
      [of = d->part()](const Jobs::Report& report, const std::atomic<bool>&) {
        tracing::TraceStory story = giving_way([&] { return tracing::trace_story(*of.trace, report); });
        story.move(of.first_event, of.shift);
        return std::make_shared<const tracing::TraceStory>(std::move(story));
      },
      [this, part](std::shared_ptr<const tracing::TraceStory> story) {
        if (!bench_.document(part.first)) return;
        stories_[part] = std::move(story);
        refresh_story();
      });
}

void TimelineView::refresh_beside() {
  if (!in_sight()) return;
  const Document* d = shown();
  std::pair<int, std::vector<int>> now{d && d->trace ? d->id : Document::kProject, {}};
  std::vector<Document> snapshots;
  for (const Document& s : bench_.documents())
    if (s.snapshot && now.first > 0) now.second.push_back(s.id), snapshots.push_back(s);
  if (now == beside_) return;
  beside_ = now;
  if (bench_.jobs.has(kBesideJob)) bench_.jobs.cancel_tag(kBesideJob);
  if (now.first <= 0) return;
  if (snapshots.empty()) return model_.set_beside(*d, {});
  bench_.jobs.start(
      kBesideJob, tr("The memory beside %1").arg(QString::fromStdString(d->title)),
      [trace = d->trace, snapshots](const Jobs::Report&, const std::atomic<bool>&) {
        std::vector<traces::CounterCurve> curves;
        for (const Document& s : snapshots)
          for (size_t i = 0; i < s.timelines.size(); ++i) {
            const int64_t device = s.snapshot->traces[i].device;
            std::string name = device == snapshot::kHost ? views::tr("memory of the host, pinned")
                                                         : views::tr("memory of device {}", device);
            if (snapshots.size() > 1) name += " · " + s.title;
            if (auto c = tracing::memory_beside(*trace, *s.snapshot, *s.timelines[i], i, name))
              curves.push_back(std::move(*c));
          }
        return curves;
      },
      [this, now](const std::vector<traces::CounterCurve>& curves) {
        const Document* of = bench_.document(now.first);
        if (now == beside_ && of) model_.set_beside(*of, curves);
      },
      {}, true);
}

/// The newest question replaces those before it; until its answer the rows of the last one stay.
void TimelineView::refresh_names() {
  if (!in_sight()) return;
  bench_.jobs.start(
      "timeline names", tr("Add up by name"),
      [asked = std::make_shared<const LaneNames>(model_.names_asked())](const Jobs::Report&, const std::atomic<bool>&) {
        return std::pair(asked->trace.get(), asked->sums());
      },
      [this](const std::pair<const traces::Trace*, std::vector<NameSum>>& of) {
        if (of.first != model_.trace()) return;  // another one is shown by now
        names_->set_table(model_.names_table(of.second));
        names_->mark(bench_.bus.current());
      },
      {}, true);
}

}  // namespace tenon::views
