#include "views/tensor/history_table.h"

#include <cmath>
#include <set>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

/// "adam_step #120", the last ones where there are many.
std::string writers_text(const projects::ElementStep& s) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < s.writes.size() && i < kShown; ++i)
    text += (text.empty() ? "" : ", ") + s.writes[i].op + " #" + std::to_string(s.writes[i].seq);
  if (s.writes.size() > kShown) text += tr(" and {} more", s.writes.size() - kShown);
  return text.empty() ? "–" : text;
}

std::string writes_tip(const projects::ElementStep& s) {
  std::string text;
  for (const projects::ElementWrite& w : s.writes) {
    text += (text.empty() ? "" : "\n") + w.op + " #" + std::to_string(w.seq) + ": ";
    text += std::isnan(w.before) ? format_exact(w.after) : format_exact(w.before) + " → " + format_exact(w.after);
  }
  return text;
}

}  // namespace

Table history_table(const projects::ElementHistory& h) {
  Table t;
  t.columns = {{tr("Step"), true}, {tr("Before"), true}, {tr("After"), true}, {tr("Change"), true}, {tr("Written by")}};
  for (auto s = h.steps.rbegin(); s != h.steps.rend(); ++s) {
    Table::Row row;
    row.selection = Selection::step(s->step, "history");
    const auto number = [](double v, bool there) {
      return there ? Table::Cell{format_value(v), v, format_exact(v), std::isfinite(v) ? Ink::none : Ink::bad}
                   : Table::Cell{"–", -HUGE_VAL, {}, Ink::none};
    };
    const bool there = s->missing.empty();
    row.cells = {Table::Cell::number(static_cast<double>(s->step), format_grouped(s->step)),
                 number(s->before, there && s->had), number(s->after, there),
                 number(s->after - s->before, there && s->had),
                 there ? Table::Cell{writers_text(*s), 0, writes_tip(*s), Ink::none}
                       : Table::Cell{s->missing, 0, {}, Ink::warning}};
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string history_text(const projects::ElementHistory& h) {
  if (h.steps.empty()) return {};
  std::set<std::string> ops;
  for (const projects::ElementStep& s : h.steps)
    for (const projects::ElementWrite& w : s.writes) ops.insert(w.op);
  std::string by;
  for (const std::string& op : ops) by += (by.empty() ? "" : ", ") + op;
  const std::string what = h.tensor + to_string(h.element), first = format_grouped(h.steps.front().step),
                    last = format_grouped(h.steps.back().step);
  return by.empty() ? tr("{} of {}, steps {} to {}: no op wrote it", what, h.run, first, last)
                    : tr("{} of {}, steps {} to {}: written by {}", what, h.run, first, last, by);
}

}  // namespace tenon::views
