#include "views/shared/surgery_table.h"

#include "core/layout.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

std::string size_text(const SurgeryRow& r) {
  if (!r.before) return to_string(*r.after);
  if (!r.after || *r.before == *r.after) return to_string(*r.before);
  return to_string(*r.before) + " → " + to_string(*r.after);
}

/// What happens to it, in the language of the window.
std::string deed_text(SurgeryRow::Deed deed) {
  using Deed = SurgeryRow::Deed;
  switch (deed) {
    case Deed::kept:
      return tr("kept");
    case Deed::widened:
      return tr("widened");
    case Deed::narrowed:
      return tr("narrowed");
    case Deed::resized:
      return tr("resized");
    case Deed::identity:
      return tr("identity");
    case Deed::silent:
      return tr("silent");
    case Deed::begun:
      return tr("new");
    case Deed::gone:
      return tr("gone");
  }
  return {};
}

Ink deed_ink(SurgeryRow::Deed deed) {
  using Deed = SurgeryRow::Deed;
  return deed == Deed::begun || deed == Deed::gone ? Ink::warning : deed == Deed::kept ? Ink::none : Ink::accent;
}

}  // namespace

Table surgery_table(const std::vector<SurgeryRow>& rows, bool all) {
  Table t;
  t.columns = {{tr("Tensor")}, {tr("What happens")}, {tr("Size"), false, tr("Before and after")}, {tr("How")}};
  for (const SurgeryRow& r : rows) {
    if (!all && r.deed == SurgeryRow::Deed::kept) continue;
    Table::Row row;
    row.cells = {{r.tensor}, {deed_text(r.deed)}, {size_text(r)}, {r.how}};
    row.cells[1].mark = deed_ink(r.deed);
    row.selection = Selection::module(r.tensor.substr(0, r.tensor.rfind('.')), "surgery");
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
