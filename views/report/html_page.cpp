#include "views/report/html_page.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "views/shared/format.h"
#include "views/shared/scene_svg.h"
#include "views/shared/tokens.h"

namespace tenon::views {

namespace {
std::string variables(ThemeName theme) {
  std::string out;
  for (const Token& t : kTokens) {
    if (t.ink == Ink::none) continue;
    const Rgb c = color(t.ink, theme);
    out += fmt::format("--{}:#{:02x}{:02x}{:02x};", t.name, c.r, c.g, c.b);
  }
  return out;
}

constexpr const char* kLook = R"(
*{box-sizing:border-box}
body{margin:0;background:var(--base);color:var(--text);font:14px/1.5 system-ui,"DejaVu Sans",sans-serif}
main{max-width:1000px;margin:0 auto;padding:24px 20px 64px}
h1{font-size:24px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:17px;margin:40px 0 12px;padding-bottom:4px;border-bottom:1px solid var(--line)}
h3{font-size:14px;margin:20px 0 8px}
p{margin:0 0 12px;overflow-wrap:anywhere}
.lead,figcaption,.quiet{color:var(--secondary)}
nav{margin:0 0 16px}nav a{margin-right:16px;white-space:nowrap}
a{color:var(--accent)}
.scroll{overflow-x:auto;margin:0 0 12px}
table{border-collapse:collapse;font-size:13px;background:var(--panel);border:1px solid var(--line)}
th,td{text-align:left;padding:3px 10px;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}
th{font-weight:600;color:var(--secondary);white-space:nowrap}
td{overflow-wrap:anywhere;max-width:420px}
td.n,th.n{text-align:right;white-space:nowrap}
td.n,.mono,code,pre{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-variant-numeric:tabular-nums}
td.n{font-size:12px}
tr.loud td{background:var(--raised);font-weight:600}
.dot{display:inline-block;width:8px;height:8px;border-radius:4px;margin-right:6px}
figure{margin:0 0 16px}figcaption{font-size:12px;margin-top:4px}
figure>svg{display:block;max-width:100%;height:auto;border:1px solid var(--line)}
svg text{font-family:system-ui,"DejaVu Sans",sans-serif}
svg text.mono{font-family:ui-monospace,"DejaVu Sans Mono",monospace}
summary{cursor:pointer;margin:0 0 8px;color:var(--accent)}
pre{background:var(--panel);border:1px solid var(--line);padding:10px 12px;margin:0 0 12px;font-size:12px;
white-space:pre-wrap;overflow-wrap:anywhere}
.samples{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px}
.samples figure{background:var(--panel);border:1px solid var(--line);padding:8px;margin:0}
.samples img{image-rendering:pixelated;width:64px;height:64px;object-fit:contain;margin-right:4px;background:#000}
.samples.wide{grid-template-columns:repeat(auto-fill,minmax(232px,1fr))}
mark{background:var(--bad);color:var(--light-on-fill);padding:0 2px}
.said{font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere}
@media print{body{background:#fff}h2{break-after:avoid}figure,tr{break-inside:avoid}nav{display:none}}
)";

const char* number_class(bool number) { return number ? " class=\"n\"" : ""; }
}  // namespace

HtmlPage::HtmlPage(const std::string& title) : title_(title) {}

void HtmlPage::lead(const std::string& text) { lead_ = text; }

void HtmlPage::section(const std::string& id, const std::string& title) {
  sections_.emplace_back(id, title);
  body_ += fmt::format("<h2 id=\"{}\">{}</h2>\n", xml_escaped(id), xml_escaped(title));
}

void HtmlPage::heading(const std::string& title) { body_ += "<h3>" + xml_escaped(title) + "</h3>\n"; }
void HtmlPage::text(const std::string& text) { body_ += "<p>" + xml_escaped(text) + "</p>\n"; }

void HtmlPage::facts(const std::vector<std::pair<std::string, std::string>>& all) {
  body_ += "<div class=\"scroll\"><table>\n";
  for (const auto& [name, value] : all)
    body_ += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", xml_escaped(name), xml_escaped(value));
  body_ += "</table></div>\n";
}

void HtmlPage::table(const Table& t, const std::vector<bool>& loud) {
  body_ += "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const Table::Column& c : t.columns)
    body_ += fmt::format("<th scope=\"col\"{}{}>{}</th>", number_class(c.number),
                         c.tip.empty() ? "" : " title=\"" + xml_escaped(c.tip) + "\"", xml_escaped(c.title));
  body_ += "</tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < t.rows.size(); ++i) {
    body_ += i < loud.size() && loud[i] ? "<tr class=\"loud\">" : "<tr>";
    for (size_t k = 0; k < t.rows[i].cells.size(); ++k) {
      const Table::Cell& c = t.rows[i].cells[k];
      body_ += fmt::format("<td{}{}>", number_class(k < t.columns.size() && t.columns[k].number),
                           c.tip.empty() ? "" : " title=\"" + xml_escaped(c.tip.str()) + "\"");
      if (c.mark != Ink::none)
        body_ += fmt::format("<span class=\"dot\" style=\"background:var(--{})\"></span>", name(c.mark));
      body_ += xml_escaped(c.text) + "</td>";
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

void HtmlPage::folded(const std::string& title, const Table& t) {
  body_ += "<details><summary>" + xml_escaped(title) + "</summary>\n";
  table(t);
  body_ += "</details>\n";
}

void HtmlPage::figure(const std::string& svg_html, const std::string& caption) {
  body_ += "<figure>\n" + svg_html + "<figcaption>" + xml_escaped(caption) + "</figcaption></figure>\n";
}

void HtmlPage::commands(const std::vector<std::string>& lines) {
  body_ += "<pre>";
  for (size_t i = 0; i < lines.size(); ++i) body_ += (i ? "\n" : "") + xml_escaped(lines[i]);
  body_ += "</pre>\n";
}

std::string HtmlPage::finish() const {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
      xml_escaped(title_) + "</title>\n<style>\n";
  out += ":root{" + variables(ThemeName::light) + "}\n";
  out += "@media screen and (prefers-color-scheme:dark){:root{" + variables(ThemeName::dark) + "}}\n";
  out += "@media screen and (prefers-contrast:more){:root{" + variables(ThemeName::contrast) + "}}\n";
  out += kLook + 1;
  out += "</style>\n</head>\n<body>\n<main>\n<h1>" + xml_escaped(title_) + "</h1>\n<p class=\"lead\">" +
         xml_escaped(lead_) + "</p>\n<nav>";
  for (const auto& [id, title] : sections_)
    out += fmt::format("<a href=\"#{}\">{}</a>", xml_escaped(id), xml_escaped(title));
  return out + "</nav>\n" + body_ + "</main>\n</body>\n</html>\n";
}

void check_page_name(const std::string& path) {
  const std::string end = lower(std::filesystem::path(path).extension().string());
  if (end != ".html" && end != ".htm")
    throw Error::usage(path + ": the end of the name is not that of a report", "End it in .html.");
}

std::string data_uri(const data::Image& image) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string bytes = data::png_bytes(image);
  std::string out = "data:image/png;base64,";
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[word >> (18 - 6 * k) & 63];
  }
  return out;
}

}  // namespace tenon::views
