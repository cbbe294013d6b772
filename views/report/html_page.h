#pragma once
#include <string>
#include <vector>

#include "engine/data/image.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A page of HTML that needs nothing from elsewhere and runs no script: its colours are the window's, light, dark or of
/// high contrast as the reader's system is. Every text is escaped; what is `_html` is not.
class HtmlPage {
 public:
  explicit HtmlPage(const std::string& title);
  /// What it is about, under the title: a line of figures.
  void lead(const std::string& text);
  void section(const std::string& id, const std::string& title);
  void heading(const std::string& title);
  void text(const std::string& text);
  /// Names and values.
  void facts(const std::vector<std::pair<std::string, std::string>>& all);
  /// Rows for which `loud` says so stand out.
  void table(const Table& t, const std::vector<bool>& loud = {});
  /// One that is opened by a press.
  void folded(const std::string& title, const Table& t);
  void figure(const std::string& svg_html, const std::string& caption);
  /// Command lines, as they are typed.
  void commands(const std::vector<std::string>& lines);
  void raw(const std::string& html) { body_ += html; }
  std::string finish() const;

 private:
  std::string title_, lead_, body_;
  std::vector<std::pair<std::string, std::string>> sections_;  ///< id and title
};

/// Throws Error where a file's name does not end in .html or .htm.
void check_page_name(const std::string& path);

/// An image as the source of an <img>: "data:image/png;base64,..."
std::string data_uri(const data::Image& image);

}  // namespace tenon::views
