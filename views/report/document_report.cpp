#include "views/report/document_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/file.h"
#include "core/version.h"
#include "views/shared/finding_page.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/text_widths.h"

namespace tenon::views {

void go_on(const PageProgress& progress, size_t done, size_t total) {
  if (progress && !progress(static_cast<int64_t>(done), static_cast<int64_t>(total))) throw Error("cancelled");
}

namespace {
/// What an analysis found: its sentence and figures, its tables to be opened.
void tell_finding(HtmlPage& page, std::string name, tracing::Finding finding) {
  // Whether it was read from a saved store is true of this reading, not of the file.
  std::erase_if(finding.facts, [](const tracing::Fact& f) { return f.name == "from_cache"; });
  const FindingPage found = make_page(finding, {});
  std::replace(name.begin(), name.end(), '-', ' ');
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  page.heading(name);
  page.text(found.sentence);
  if (!found.figures.empty()) page.facts(found.figures);
  for (const FindingPage::Part& part : found.tables)
    if (!part.table.rows.empty())
      page.folded(fmt::format("{} ({} {})", part.title, format_grouped(static_cast<int64_t>(part.table.rows.size())),
                              part.table.rows.size() == 1 ? "row" : "rows"),
                  part.table);
}

}  // namespace

void tell_findings(HtmlPage& page, const std::vector<NamedFinding>& all, const PageProgress& progress) {
  page.section("findings", "Findings");
  std::vector<std::pair<std::string, std::string>> missing;
  for (size_t i = 0; i < all.size(); ++i) {
    go_on(progress, i + 1, all.size() + 1);
    tracing::Finding found = all[i].find();
    if (found.ok)
      tell_finding(page, all[i].name, std::move(found));
    else
      missing.emplace_back(all[i].name, found.sentence);
  }
  if (missing.empty()) return;
  page.heading("What the file does not hold");
  page.facts(missing);
}

std::string document_report_html(const Document& d, const PageProgress& progress) {
  const AverageTextWidths average;
  const EnglishTexts english;
  HtmlPage page(d.title);
  const DocumentNote note = note_of(d);
  page.lead(fmt::format("{} · {}, {}", name(d.kind), format_bytes(note.bytes), note.holds));
  if (d.trace) tell_trace(page, d, progress);
  if (d.snapshot) tell_snapshot(page, d, progress);
  if (d.model) tell_model_file(page, d);
  page.section("again", "To get it again");
  page.facts({{"Tenon", TENON_VERSION}, {"File", d.title}});
  page.commands({"tenon report FILE -o report.html"});
  return page.finish();
}

std::string write_document_report(const Document& d, const std::string& path, const PageProgress& progress) {
  check_page_name(path);
  const std::string html = document_report_html(d, progress);
  write_file(path, html);
  return fmt::format("{}: the report of {}, {}", path, d.title, format_bytes(static_cast<double>(html.size())));
}

}  // namespace tenon::views
