#include "views/shared/shrink_table.h"

#include <algorithm>

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
  const bool factored = std::any_of(small.rows.begin(), small.rows.end(), [](const auto& r) { return r.rank > 0; });
  if (factored) {
    t.columns[2] = {tr("Rank"), true, tr("Of its weights as a matrix, before and as two layers")};
    t.columns.insert(t.columns.begin() + 3,
                     {tr("Lost"), true, tr("Norm of what its weights lose, over that of the weights")});
  }
  for (const ShrinkRow& r : small.rows) {
    Table::Row row;
    const auto pair = [](int64_t before, int64_t after) {
      return before ? before_and_after(static_cast<double>(before), static_cast<double>(after), format_grouped(before),
                                       format_grouped(after))
                    : Table::Cell{};
    };
    row.cells = {{r.layer},
                 {r.type},
                 factored ? pair(r.full_rank, r.rank) : pair(r.channels, r.channels_after),
                 before_and_after(static_cast<double>(r.parameters), static_cast<double>(r.parameters_after),
                                  format_grouped(r.parameters), format_grouped(r.parameters_after)),
                 before_and_after(r.flops, r.flops_after, format_flops(r.flops), format_flops(r.flops_after)),
                 {r.kept}};
    if (factored)
      row.cells.insert(row.cells.begin() + 3,
                       r.rank ? Table::Cell::number(r.error, format_percent(r.error)) : Table::Cell{});
    row.selection = Selection::module(r.layer, "prune");
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
