#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "views/model_file/file_outline.h"
#include "views/shared/canvas_model.h"

namespace tenon::views {

/// The graph of a model file from the top down. What is not in sight is not drawn; far away, boxes lose their words and
/// then their wires. It is laid out elsewhere: `on_need_layout` is asked with the scopes that are to be open.
class GraphPane {
 public:
  enum HitKind { cell = 40 };  ///< id: a node of the graph's tree

  void show(std::shared_ptr<const FileOutline> outline);
  bool any() const { return outline_ && outline_->graph; }
  const std::shared_ptr<const FileOutline>& outline() const { return outline_; }
  const OpGraph& graph() const { return *outline_->graph; }
  const GraphLayout& layout() const { return layout_; }
  std::function<void(std::set<int> open)> on_need_layout;
  void set_layout(GraphLayout layout, std::set<int> open);

  /// Unfolds a scope; of what stands in one that is unfolded, folds that.
  void toggle(int node);
  void fold(int node);
  void open_all(bool open);
  const std::set<int>& open() const { return open_; }

  /// Words as the tensors are searched by, among names and operators.
  void search(const std::string& words);
  int found() const { return static_cast<int>(matches_.size()); }
  /// The next item that was found, from the one in focus; -1: none was.
  int next_found(int direction);

  int focus() const { return focus_; }  ///< a node of the tree; -1: none
  /// The item in focus; -1: it is a scope.
  int item() const;
  void set_focus(int node);
  /// Brings an item into the middle of the next frame, once what it stands in is unfolded.
  void reveal(int item);
  bool move(const std::string& key);
  void fit();
  void zoom(float factor, Point at);
  void pan(float dx, float dy);
  float zoom() const { return zoom_; }

  void draw(Scene& scene, Box box);
  std::string summary() const;

 private:
  void count_found();
  float whole_zoom() const;  ///< at which all of it is seen
  void show_cell(int cell);
  void center(int cell);
  Point to_picture(float x, float y) const { return {pan_x_ + x * zoom_, pan_y_ + y * zoom_}; }
  void draw_wires(Scene& scene, int focused) const;
  void draw_cell(Scene& scene, int cell, bool focused) const;
  void draw_far(Scene& scene) const;
  std::string title_of(int node) const;
  std::string below_of(int node) const;

  std::shared_ptr<const FileOutline> outline_;
  GraphLayout layout_;
  std::set<int> open_;
  std::string words_;
  std::vector<int> matches_;   ///< items, in order
  std::vector<int> found_in_;  ///< by cell: how many of them
  int focus_ = -1, anchor_ = -1;
  float zoom_ = 1, pan_x_ = 0, pan_y_ = 0;
  Point anchor_at_;
  Box box_;
  bool fit_next_ = true, reveal_next_ = false;
  /// What is to be seen of the layout that was asked for: frames may be drawn before it is there.
  enum class Then { as_it_was, all, focus } then_ = Then::as_it_was;
};

}  // namespace tenon::views
