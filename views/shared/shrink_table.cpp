#include "views/shared/shrink_table.h"

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

/// "32 → 16"; one number where nothing changes.
Table::Cell before_and_after(double before, double after, const std::string& from, const std::string& to) {
  return Table::Cell::number(after, before == after ? to : from + " → " + to);
}

}  // namespace

Table shrink_table(const Shrunk& small) {
  Table t;
  t.columns = {{tr("Layer")},
               {tr("Type")},
               {tr("Channels"), true, tr("That the layer makes, before and after")},
               {tr("Parameters"), true},
               {tr("FLOPs"), true, tr("Of a forward pass of one sample")},
               {tr("Kept because")}};
  for (const ShrinkRow& r : small.rows) {
    Table::Row row;
    row.cells = {{r.layer},
                 {r.type},
                 r.channels ? before_and_after(static_cast<double>(r.channels), static_cast<double>(r.channels_after),
                                               format_grouped(r.channels), format_grouped(r.channels_after))
                            : Table::Cell{},
                 before_and_after(static_cast<double>(r.parameters), static_cast<double>(r.parameters_after),
                                  format_grouped(r.parameters), format_grouped(r.parameters_after)),
                 before_and_after(r.flops, r.flops_after, format_flops(r.flops), format_flops(r.flops_after)),
                 {r.kept}};
    row.selection = Selection::module(r.layer, "prune");
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
