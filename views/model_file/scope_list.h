#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "views/model_file/file_outline.h"
#include "views/shared/scene.h"

namespace tenon::views {

/// The tensors of a model file, a row each, under the modules that their names lead through; what is not open is one
/// row with its sums. Columns stand there as far as there is room for them.
class ScopeList {
 public:
  enum HitKind { row = 1, fold };

  void show(std::shared_ptr<const FileOutline> outline);
  /// Words that a name has to hold, all of them; empty: every tensor.
  void search(const std::string& words);
  bool searches() const { return !words_.empty(); }
  int found() const { return found_; }

  void toggle(int node);
  void open_all(bool open);
  bool is_open(int node) const { return searches() || open_.contains(node); }
  const std::vector<int>& rows() const { return rows_; }  ///< nodes of the tree
  int focus() const { return focus_; }                    ///< a node; -1: none
  /// The tensor of the row in focus; -1: it is a scope.
  int tensor() const;
  int scope_of(int node) const { return outline_->tensors.at(node).parent; }
  /// "layer1, 12 tensors, folded": what a screen reader says of a row.
  std::string row_text(int node) const;
  void set_focus(int node);
  /// It was found, or nothing is searched for.
  bool shows(int tensor) const { return found_in_[static_cast<size_t>(tensor)]; }
  /// Opens what a tensor stands in, and scrolls to it.
  void reveal(int tensor);
  /// From row to row; false where there is none.
  bool move(int by);
  void scroll(float by) { scroll_ += by; }
  float page() const { return height_; }

  void draw(Scene& scene, Box box);

 private:
  void fill();
  void into_sight();
  void draw_row(Scene& scene, int node, Box box, float name_w) const;

  std::shared_ptr<const FileOutline> outline_;
  std::set<int> open_;
  std::string words_;
  std::vector<bool> found_in_;  ///< by tensor
  std::vector<int> rows_;
  int found_ = 0, focus_ = -1;
  float scroll_ = 0, height_ = 0;
};

}  // namespace tenon::views
