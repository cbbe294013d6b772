#include "views/frame/bench.h"

#include <string>
#include <utility>

#include "core/error.h"
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

const Document* Bench::document(int id) const {
  for (const Document& d : documents_)
    if (d.id == id) return &d;
  return nullptr;
}

QStringList Bench::reading() const {
  QStringList titles;
  for (const auto& job : jobs.list())
    if (job->tag.startsWith(kReading) && !job->cancelled) titles << job->title;
  return titles;
}

void Bench::cancel_reading() {
  for (const auto& job : jobs.list())
    if (job->tag.startsWith(kReading)) jobs.cancel(job->id);
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
