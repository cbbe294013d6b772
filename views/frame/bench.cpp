#include "views/frame/bench.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "tracing/record/step_record.h"
#include "views/frame/view_def.h"

namespace tenon::views {

Bench::Bench(QObject* parent) : QObject(parent) {
  qRegisterMetaType<Selection>("tenon::views::Selection");
  for (const ViewDef& def : view_defs())
    if (def.make_model) {
      models_.push_back(def.make_model());
      models_.back()->on_select = [this](const Selection& s) { bus.select(s); };
    }
}

Bench::~Bench() = default;

int64_t Bench::shown_steps() const {
  if (training() && status_.run == shown_run_) return status_.step;
  const auto* r = shown();
  return r ? r->steps : 0;
}

int64_t Bench::shown_total_steps() const {
  const auto* r = shown();
  return std::max(r ? r->total_steps : 0, shown_steps());
}

const Document* Bench::document(int id) const {
  for (const Document& d : documents_)
    if (d.id == id) return &d;
  return nullptr;
}

std::shared_ptr<const traces::Trace> Bench::shown_trace() const {
  if (const Document* d = shown_document()) return d->trace;
  return links_ ? links_.record()->timeline.store : nullptr;
}

traces::TracePart Bench::shown_part() const {
  if (const Document* d = shown_document()) return d->part();
  return {shown_trace()};
}

void Bench::choose_rank(int document, size_t rank) {
  for (Document& d : documents_) {
    if (d.id != document || rank >= d.ranks.size() || rank == d.rank) continue;
    d.rank = rank;
    emit documents_changed();
    emit state_changed();
  }
}

void Bench::tell_filter() {
  for (const auto& m : models_) m->set_filter(filter());
  emit filter_changed();
  emit state_changed();
}

void Bench::set_filter(const Filter& f, bool typed) {
  if (f == filter()) return;
  filters_.set(shown_document_, f, typed);
  tell_filter();
}

void Bench::undo_filter() {
  filters_.undo(shown_document_);
  tell_filter();
}

void Bench::redo_filter() {
  filters_.redo(shown_document_);
  tell_filter();
}

QStringList Bench::reading() const {
  QStringList titles;
  for (const auto& job : jobs.list())
    if (reads_document(*job) && !job->cancelled) titles << job->title;
  return titles;
}

bool Bench::opens_file() const { return files.has_any(kOpening) || jobs.has_any(kReading); }

void Bench::set_baseline(int64_t run) {
  if (run == baseline_) return;
  baseline_ = run;
  emit baseline_changed();
}

void Bench::pick(std::vector<int64_t> runs) {
  if (runs == picked_) return;
  picked_ = std::move(runs);
  emit picked_changed();
  emit state_changed();
}

void Bench::no_model(const char* name) {
  throw Error(std::string("no view registers a model of the class ") + name,
              "Name the class in the view's registration, register_view<View, Model>().");
}

}  // namespace tenon::views
