#include "views/frame/filter_bar.h"

#include <QHBoxLayout>
#include <QToolButton>
#include <utility>

#include "tracing/record/step_record.h"
#include "views/frame/widgets.h"

namespace tenon::views {

FilterBar::FilterBar(Bench& bench, Shows shows, QWidget* parent)
    : QWidget(parent), bench_(bench), shows_(shows), row_(new QHBoxLayout(this)) {
  setObjectName("filter");
  setAccessibleName(tr("What is looked at"));
  row_->setContentsMargins(0, 0, 0, 0);
  row_->setSpacing(4);
  connect(&bench, &Bench::filter_changed, this, &FilterBar::refresh);
  connect(&bench, &Bench::step_changed, this, &FilterBar::refresh);
  refresh();
}

void FilterBar::refresh() {
  while (QLayoutItem* item = row_->takeAt(0)) {
    discard(item->widget());
    delete item;
  }
  const auto trace = bench_.shown_trace();
  for (const FilterPart& part : parts_of(bench_.filter(), trace.get())) {
    const bool of_name = part.without.name != bench_.filter().name;
    if (of_name != (shows_ == Shows::name)) continue;
    auto* chip = new QToolButton(this);
    chip->setText(QString::fromStdString(part.text) + "  ✕");
    chip->setToolTip(tr("Only this is looked at; a click takes the condition away"));
    chip->setAccessibleName(tr("Take away the condition %1").arg(QString::fromStdString(part.text)));
    set_style(chip, "chip", "true");
    connect(chip, &QToolButton::clicked, this, [this, without = part.without] { bench_.set_filter(without); });
    row_->addWidget(chip);
  }
  setVisible(row_->count() > 0);
}

namespace {
/// The filter with the selection's stretch of time: a range, or as long as an event or op lasts.
Filter within(const Bench& bench, const Selection& s, bool& there) {
  Filter f = bench.filter();
  const auto trace = bench.shown_trace();
  there = false;
  if (!trace || s.document != (bench.shown_document() ? bench.shown_document()->id : Document::kProject)) return f;
  auto set = [&](double from, double to) { f.from = from, f.to = to, there = to > from; };
  if (s.kind == Selection::Kind::range) {
    set(s.from, s.to);
  } else if (s.kind == Selection::Kind::event && s.id >= 0 && s.id < static_cast<int64_t>(trace->size())) {
    const auto e = static_cast<traces::EventId>(s.id);
    set(static_cast<double>(trace->start(e) - trace->begin()), static_cast<double>(trace->end(e) - trace->begin()));
  } else if (const uint32_t seq = bench.shown_document() ? 0 : bench.links().op_of(s)) {
    const auto& op = bench.links().record()->ops[seq - 1];
    set(static_cast<double>(op.start_ns), static_cast<double>(op.start_ns + op.duration_ns));
  }
  return f;
}

/// The event of what is selected; kNone where it has none.
traces::EventId event_of(const Bench& bench, const Selection& s) {
  const auto trace = bench.shown_trace();
  if (!trace) return traces::kNone;
  if (bench.shown_document())
    return s.kind == Selection::Kind::event && s.document == bench.shown_document()->id && s.id >= 0 &&
                   s.id < static_cast<int64_t>(trace->size())
               ? static_cast<traces::EventId>(s.id)
               : traces::kNone;
  const uint32_t seq = bench.links().op_of(s);
  for (traces::EventId e = 0; seq && e < trace->size(); ++e)
    if (bench.links().record()->timeline.op(e).seq == seq) return e;
  return traces::kNone;
}

std::string module_of(const Bench& bench) {
  return bench.shown_document() ? std::string() : bench.links().module_of(bench.bus.current());
}
}  // namespace

std::vector<Command> filter_commands(Bench& bench) {
  Bench* b = &bench;
  auto time = [b](bool& there) { return within(*b, b->bus.current(), there); };
  return {{.id = "filter.time",
           .title = tr_later("Only the selected time"),
           .menu = "Filter",
           .run =
               [b, time] {
                 bool there = false;
                 const Filter f = time(there);
                 if (there) b->set_filter(f);
               },
           .enabled =
               [time] {
                 bool there = false;
                 time(there);
                 return there;
               }},
          {.id = "filter.row",
           .title = tr_later("Only this thread or stream"),
           .menu = "Filter",
           .run =
               [b] {
                 Filter f = b->filter();
                 if (const traces::EventId e = event_of(*b, b->bus.current()); e != traces::kNone) {
                   f.row = b->shown_trace()->row_of(e);
                   b->set_filter(f);
                 }
               },
           .enabled = [b] { return event_of(*b, b->bus.current()) != traces::kNone; }},
          {.id = "filter.module",
           .title = tr_later("Only this module"),
           .menu = "Filter",
           .run =
               [b] {
                 Filter f = b->filter();
                 f.module = module_of(*b);
                 b->set_filter(f);
               },
           .enabled = [b] { return !module_of(*b).empty(); }},
          {.id = "filter.back",
           .title = tr_later("Filter before"),
           .menu = "Filter",
           .keys = "Ctrl+Alt+Z",
           .run = [b] { b->undo_filter(); },
           .enabled = [b] { return b->can_undo_filter(); }},
          {.id = "filter.forward",
           .title = tr_later("Filter after"),
           .menu = "Filter",
           .keys = "Ctrl+Alt+Y",
           .run = [b] { b->redo_filter(); },
           .enabled = [b] { return b->can_redo_filter(); }},
          {.id = "filter.none",
           .title = tr_later("No filter"),
           .menu = "Filter",
           .run = [b] { b->set_filter({}); },
           .enabled = [b] { return static_cast<bool>(b->filter()); }}};
}

}  // namespace tenon::views
