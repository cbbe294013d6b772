#include "views/shared/filter.h"

#include "tracing/trace/trace_store.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

std::vector<FilterPart> parts_of(const Filter& f, const traces::Trace* trace) {
  std::vector<FilterPart> parts;
  auto add = [&](bool has, std::string text, auto clear) {
    if (!has) return;
    parts.push_back({std::move(text), f});
    clear(parts.back().without);
  };
  add(!f.name.empty(), tr("“{}”", f.name), [](Filter& w) { w.name.clear(); });
  add(!f.module.empty(), f.module, [](Filter& w) { w.module.clear(); });
  const bool known = trace && f.row >= 0 && f.row < static_cast<int64_t>(trace->rows().size());
  add(f.row >= 0, known ? trace->rows()[static_cast<size_t>(f.row)].label() : tr("row {}", f.row),
      [](Filter& w) { w.row = -1; });
  add(f.has_range(), tr("{} to {}", format_ns(f.from), format_ns(f.to)), [](Filter& w) { w.from = w.to = 0; });
  return parts;
}

const Filters::Way* Filters::way(int document) const {
  const auto at = ways_.find(document);
  return at == ways_.end() ? nullptr : &at->second;
}

const Filter& Filters::of(int document) const {
  static const Filter none;
  const Way* w = way(document);
  return w ? w->all[w->at] : none;
}

void Filters::set(int document, const Filter& f, bool typed) {
  Way& w = ways_[document];
  if (w.all[w.at] == f) return;
  w.all.resize(w.at + 1);  // what was undone is forgotten
  if (typed && w.typing && w.at > 0)
    w.all[w.at] = f;
  else
    w.all.push_back(f), ++w.at;
  w.typing = typed;
  if (w.at > 0 && w.all[w.at] == w.all[w.at - 1]) w.all.pop_back(), --w.at, w.typing = false;  // typed and taken away
}

bool Filters::can_undo(int document) const {
  const Way* w = way(document);
  return w && w->at > 0;
}

bool Filters::can_redo(int document) const {
  const Way* w = way(document);
  return w && w->at + 1 < w->all.size();
}

void Filters::undo(int document) {
  if (!can_undo(document)) return;
  Way& w = ways_[document];
  --w.at;
  w.typing = false;
}

void Filters::redo(int document) {
  if (!can_redo(document)) return;
  Way& w = ways_[document];
  ++w.at;
  w.typing = false;
}

}  // namespace tenon::views
