#include "views/checks/checks_table.h"

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

Table checks_table(const std::vector<projects::CheckResult>& results, bool all, const Subject* subject) {
  Table t;
  t.columns = {{tr("What")}, {tr("Seen")}, {tr("Try")}, {tr("About")}};
  auto cell = [](std::string text, Ink mark = Ink::none) { return Table::Cell{std::move(text), 0, {}, mark}; };
  for (const projects::CheckResult& r : results)
    for (const projects::Complaint& c : r.complaints)
      t.rows.push_back({{cell(r.title, Ink::warning), cell(c.seen), cell(c.remedy), cell(c.about)},
                        subject            ? selection_of(c.sight, *subject)
                        : c.module.empty() ? Selection()
                                           : Selection::module(c.module, "checks")});
  for (const projects::CheckResult& r : results)
    if (all && r.complaints.empty())
      t.rows.push_back(
          {{cell(r.title, r.skipped.empty() ? Ink::good : Ink::secondary),
            cell(r.skipped.empty() ? tr("not found") : tr("not checked: {}", r.skipped)), cell(""), cell("")},
           {}});
  return t;
}

std::string checks_text(const std::vector<projects::CheckResult>& results) {
  int64_t found = 0, skipped = 0;
  for (const projects::CheckResult& r : results) {
    found += static_cast<int64_t>(r.complaints.size());
    skipped += !r.skipped.empty();
  }
  const std::string made = format_grouped(static_cast<int64_t>(results.size()) - skipped);
  std::string text = found == 0   ? tr("Nothing found in {} checks", made)
                     : found == 1 ? tr("1 thing found in {} checks", made)
                                  : tr("{} things found in {} checks", format_grouped(found), made);
  if (skipped == 1) text += tr("; 1 could not be made");
  if (skipped > 1) text += tr("; {} could not be made", format_grouped(skipped));
  return text;
}

}  // namespace tenon::views
