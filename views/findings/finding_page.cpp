#include "views/findings/finding_page.h"

#include <algorithm>
#include <cctype>

#include "tracing/record/step_record.h"

namespace tenon::views {

using tracing::Unit;

namespace {
/// "critical-path" to "Critical path"
std::string title_of(std::string name) {
  for (char& c : name)
    if (c == '-' || c == '_') c = ' ';
  if (!name.empty()) name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

/// "SELF CPU" to "Self CPU": what is capitals on a terminal reads as a sentence here, but for what is an abbreviation.
std::string head_of(const std::string& head) {
  std::string text;
  bool first = true;
  for (size_t i = 0; i < head.size();) {
    const size_t end = std::min(head.find(' ', i), head.size());
    std::string word = head.substr(i, end - i);
    const bool keeps = word == "CPU" || word == "GPU" || word == "A" || word == "B";
    for (size_t k = 0; k < word.size() && !keeps; ++k)
      if (k > 0 || !first) word[k] = static_cast<char>(std::tolower(static_cast<unsigned char>(word[k])));
    text += (first ? "" : " ") + word;
    first = false;
    i = end + 1;
  }
  return text;
}

double key_of(const tracing::Cell& cell) {
  if (const auto* n = std::get_if<int64_t>(&cell)) return static_cast<double>(*n);
  if (const auto* x = std::get_if<double>(&cell)) return *x;
  return 0;
}

Selection selection_of(const tracing::Sight& s, const Subject& of) {
  if (s.event >= 0 && of.step) {
    const uint32_t seq = of.step->timeline.op(static_cast<uint32_t>(s.event)).seq;
    return seq ? Selection::op(seq, "findings") : Selection();
  }
  if (s.event >= 0) return Selection::event(of.document, s.event, "findings");
  if (s.to <= s.from) return {};
  Selection range =
      Selection::range(static_cast<double>(s.from - of.origin), static_cast<double>(s.to - of.origin), "findings");
  range.document = of.document;
  return range;
}
}  // namespace

FindingPage make_page(const tracing::Finding& finding, const Subject& subject) {
  FindingPage page;
  page.ok = finding.ok;
  page.sentence = finding.sentence;
  for (const tracing::Fact& f : finding.facts) page.figures.emplace_back(f.head, cell_text(f.value, f.unit));
  for (const tracing::Table& from : finding.tables) {
    FindingPage::Part part{title_of(from.name), {}};
    for (const tracing::Column& c : from.columns) {
      const bool text = c.unit == Unit::text;
      part.table.columns.push_back({head_of(c.head), !text});
      part.table.wide |= c.wide;  // sentences
    }
    for (size_t r = 0; r < from.rows.size(); ++r) {
      Table::Row row;
      if (r < from.sights.size()) row.selection = selection_of(from.sights[r], subject);
      for (size_t c = 0; c < from.rows[r].size() && c < from.columns.size(); ++c) {
        const tracing::Cell& cell = from.rows[r][c];
        row.cells.push_back({cell_text(cell, from.columns[c].unit), key_of(cell), {}, Ink::none});
      }
      part.table.rows.push_back(std::move(row));
    }
    page.tables.push_back(std::move(part));
  }
  return page;
}

}  // namespace tenon::views
