#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "views/shared/selection.h"
#include "views/shared/tokens.h"

namespace tenon::views {

/// Words that are seldom read and often copied: the copies share them.
class SharedText {
 public:
  SharedText() = default;
  SharedText(const char* words) : SharedText(std::string(words)) {}
  SharedText(std::string words)
      : words_(words.empty() ? nullptr : std::make_shared<const std::string>(std::move(words))) {}
  const std::string& str() const {
    static const std::string none;
    return words_ ? *words_ : none;
  }
  bool empty() const { return !words_; }

 private:
  std::shared_ptr<const std::string> words_;  ///< null: empty
};

/// Rows as text with the numbers they sort by: what a canvas shows, for those who read, sort, copy or cannot see it.
struct Table {
  struct Column {
    std::string title;
    bool number = false;  ///< right-aligned, monospaced, sorted by key
    std::string tip = {};
    bool whole = false;  ///< its words are not cut where there is little room: half a shape is another shape
  };
  struct Cell {
    std::string text;
    double key = 0;
    SharedText tip;        ///< the exact value
    Ink mark = Ink::none;  ///< a coloured dot before the text
    static Cell number(double key, std::string text) { return {std::move(text), key, {}, Ink::none}; }
  };
  struct Row {
    std::vector<Cell> cells;
    Selection selection;
    std::optional<bool> picked = {};  ///< a box before the row that can be ticked; nothing: it has none
  };
  /// In the order of their importance: where there is no room for all, words of the last ones are cut first.
  std::vector<Column> columns;
  bool wide = false;  ///< more columns than a view is wide: nothing is cut to fit, and the table scrolls
  std::vector<Row> rows;
  /// Comma-separated text with a header, cells quoted where needed.
  std::string csv() const;
  /// A table of Markdown, numbers to the right.
  std::string markdown() const;
  /// Cells between tabs, as spreadsheets take them from the clipboard.
  std::string tabbed() const;
};

}  // namespace tenon::views
