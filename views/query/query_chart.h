#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "projects/query/query_base.h"
#include "views/shared/canvas_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A result as a picture. With a column of texts and one of numbers every row is a bar, with two of numbers a point of
/// a line: numbers that have a unit are taken before those that count, and those before what only names a thing.
class QueryChart : public CanvasModel {
 public:
  enum HitKind { none, row = 1 };  ///< of a row of the result: its number

  /// `shown` has what each row leads to. Null: there is no result.
  void set_result(std::shared_ptr<const projects::QueryResult> result, const Table& shown);
  /// The window's selection: the first row that leads there is marked.
  void set_selection(const Selection& s);
  bool bars() const { return bars_; }
  size_t marks() const { return marks_.size(); }

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  /// Arrows go from row to row, Home and End to the ends; Enter selects what the row leads to.
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  struct Mark {
    size_t row = 0;
    double x = 0, y = 0;  ///< of a bar: y alone
    std::string label;    ///< of a bar
  };
  void draw_bars(Scene& scene) const;
  void draw_line(Scene& scene) const;
  void draw_axes(Scene& scene, Box area) const;
  std::string text_of(size_t column, double v) const;
  std::string said_of(const Mark& m) const;
  void go_to(size_t mark);
  void choose(size_t mark);
  std::string why_none() const;

  std::shared_ptr<const projects::QueryResult> result_;
  std::vector<Selection> leads_;  ///< by row
  std::vector<Mark> marks_;       ///< bars in the order of the rows, points along x
  bool bars_ = true;
  size_t along_ = 0, up_ = 0;  ///< columns
  double low_x_ = 0, high_x_ = 1, low_y_ = 0, high_y_ = 1;
  std::optional<size_t> at_;  ///< the mark that keys are on
  size_t first_ = 0;          ///< of the bars that are seen
  mutable size_t seen_ = 1;   ///< bars that had room in the last picture
};

}  // namespace tenon::views
