#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tracing/analyses/finding.h"
#include "views/report/html_page.h"
#include "views/shared/document.h"

namespace tenon::views {

/// How many parts of a page are made; false: stop.
using PageProgress = std::function<bool(int64_t done, int64_t total)>;

/// A trace, a memory snapshot or a model file on one page that needs nothing from elsewhere: pictures, what every
/// analysis says, and the tables behind it. The same bytes for the same file, whoever asks. Takes as long as all
/// analyses together. Throws Error "cancelled" where the progress says so.
std::string document_report_html(const Document& document, const PageProgress& progress = {});
/// The same into a file whose name ends in .html or .htm. Returns what was done, in words. Throws Error naming the
/// file.
std::string write_document_report(const Document& document, const std::string& path, const PageProgress& progress = {});

// A kind of document each, in files of their own.
void tell_trace(HtmlPage& page, const Document& document, const PageProgress& progress);
void tell_snapshot(HtmlPage& page, const Document& document, const PageProgress& progress);
void tell_model_file(HtmlPage& page, const Document& document);

/// One analysis of a file.
struct NamedFinding {
  std::string name;
  std::function<tracing::Finding()> find;
};
/// The section of findings: what every analysis says, with its tables to be opened, and last those for which the file
/// has nothing, and why. One part of the page was made before.
void tell_findings(HtmlPage& page, const std::vector<NamedFinding>& all, const PageProgress& progress);
/// Throws Error "cancelled" where the progress says so.
void go_on(const PageProgress& progress, size_t done, size_t total);

}  // namespace tenon::views
