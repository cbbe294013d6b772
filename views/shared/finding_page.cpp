#include "views/shared/finding_page.h"

#include <algorithm>
#include <cctype>

#include "tracing/record/step_record.h"
#include "views/shared/document.h"

namespace tenon::views {

using tracing::Unit;

namespace {
/// "SELF CPU" to "Self CPU", "GFLOP/S" to "GFLOP/s": what is capitals on a terminal reads as a sentence here, but for
/// what is an abbreviation or a unit.
std::string head_of(const std::string& head) {
  std::string text;
  bool first = true;
  for (size_t i = 0; i < head.size();) {
    const size_t end = std::min(head.find(' ', i), head.size());
    std::string word = head.substr(i, end - i);
    const bool rate = word == "GB/S" || word == "GFLOP/S";
    const bool keeps = rate || word == "CPU" || word == "GPU" || word == "A" || word == "B" || word == "FLOP";
    if (rate) word.back() = 's';
    for (size_t k = 0; k < word.size() && !keeps; ++k)
      if (k > 0 || !first) word[k] = static_cast<char>(std::tolower(static_cast<unsigned char>(word[k])));
    text += (first ? "" : " ") + word;
    first = false;
    i = end + 1;
  }
  return text;
}

double sort_key(const tracing::Cell& cell) {
  if (const auto* n = std::get_if<int64_t>(&cell)) return static_cast<double>(*n);
  if (const auto* x = std::get_if<double>(&cell)) return *x;
  return 0;
}

}  // namespace

Subject subject_of(const Document& d, size_t rank, const char* source) {
  Subject subject{.document = d.id, .source = source};
  if (!d.trace) return subject;
  const traces::TracePart part = d.part_of(rank);
  subject.origin = d.trace->begin() - part.shift;
  subject.first_event = part.first_event;
  for (const traces::TracePart& r : d.ranks) subject.first_events.push_back(r.first_event);
  return subject;
}

Selection selection_of(const tracing::Sight& s, const Subject& of) {
  if (s.event >= 0 && of.step) {
    const uint32_t seq = of.step->timeline.op(static_cast<uint32_t>(s.event)).seq;
    return seq ? Selection::op(seq, of.source) : Selection();
  }
  if (s.event >= 0) {
    const auto trace = static_cast<size_t>(s.trace);  // -1: behind all
    const int64_t first = trace < of.first_events.size() ? of.first_events[trace] : of.first_event;
    return Selection::event(of.document, s.event + first, of.source);
  }
  if (!s.place.empty()) return Selection::place(of.document, s.place, of.source);
  if (!s.tensor.empty()) {
    if (of.document != Document::kProject) return Selection::file_tensor(of.document, s.tensor, of.source);
    const size_t dot = s.tensor.rfind('.');
    return Selection::module(dot == std::string::npos ? s.tensor : s.tensor.substr(0, dot), of.source);
  }
  if (s.node >= 0) return Selection::file_node(of.document, s.node, of.source);
  if (s.to <= s.from) return {};
  Selection range =
      Selection::range(static_cast<double>(s.from - of.origin), static_cast<double>(s.to - of.origin), of.source);
  range.document = of.document;
  return range;
}

std::string FindingPage::Part::words(const Table::Row& row) const {
  std::string text;
  for (size_t c : sentences)
    if (c < row.cells.size() && !row.cells[c].text.empty())
      text += (text.empty() ? "" : "\n") + table.columns[c].title + ": " + row.cells[c].text;
  return text;
}

FindingPage make_page(const tracing::Finding& finding, const Subject& subject) {
  FindingPage page;
  page.ok = finding.ok;
  page.sentence = finding.sentence;
  for (const tracing::Fact& f : finding.facts) page.figures.emplace_back(f.head, cell_text(f.value, f.unit));
  for (const tracing::Table& from : finding.tables) {
    FindingPage::Part part{from.title(), {}};
    for (const tracing::Column& c : from.columns) {
      part.table.columns.push_back({head_of(c.head), c.unit != Unit::text});
      part.tells_first |= c.wide;
    }
    for (size_t r = 0; r < from.rows.size(); ++r) {
      Table::Row row;
      if (r < from.sights.size()) row.selection = selection_of(from.sights[r], subject);
      for (size_t c = 0; c < from.rows[r].size() && c < from.columns.size(); ++c) {
        const tracing::Cell& cell = from.rows[r][c];
        row.cells.push_back({cell_text(cell, from.columns[c].unit), sort_key(cell), {}, Ink::none});
      }
      part.table.rows.push_back(std::move(row));
    }
    constexpr size_t kSentence = 48;  // letters: a name is shorter
    for (size_t c = 0; c < from.columns.size(); ++c)
      if (const auto& rows = part.table.rows;
          from.columns[c].unit == Unit::text &&
          (from.columns[c].wide || std::any_of(rows.begin(), rows.end(), [c](const Table::Row& r) {
             return c < r.cells.size() && r.cells[c].text.size() > kSentence;
           })))
        part.sentences.push_back(c);
    page.tables.push_back(std::move(part));
  }
  return page;
}

FindingPage make_page(const tracing::Finding& finding, const Subject& a, const Subject& b) {
  FindingPage page = make_page(finding, a);
  for (size_t t = 0; t < page.tables.size(); ++t) {
    FindingPage::Part& part = page.tables[t];
    const auto& others = finding.tables[t].others;
    part.others.resize(part.table.rows.size());
    for (size_t r = 0; r < part.table.rows.size() && r < others.size(); ++r) {
      const Selection in_b = selection_of(others[r], b);
      Selection& shown = part.table.rows[r].selection;
      if (!shown)
        shown = in_b;
      else if (!in_b.same(shown))
        part.others[r] = in_b;
    }
  }
  return page;
}

}  // namespace tenon::views
