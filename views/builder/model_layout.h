#pragma once
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/spec/model_spec.h"
#include "views/graph/group_layout.h"

namespace tenon::views {

class WireRouter;

struct LayerPlace {
  double x = 0, y = 0;
};
using LayerPlaces = std::vector<LayerPlace>;  ///< of a model's layers

/// Where a model's layers, groups and wires are on the builder's canvas, at zoom 1. Groups are the scopes of the
/// layers' names ("layer3.1" holds "layer3.1.conv1").
///
/// Note [Places] A model whose layers are all at the origin has no places of its own: it is laid out anew after every
/// edit and whenever a group is opened or folded. Once a person moves a layer every layer gets the place where it is
/// seen, and from then on it stays there, until the places are given up again.
class ModelLayout {
 public:
  static constexpr float kNodeW = 280, kNodeH = 48, kCommentLine = 20;

  /// The model after an edit; `anew`: another model, folded so that as much of it is seen as reads well.
  void show(const ModelSpec& spec, bool anew);
  /// The same model, whose layers stand elsewhere now.
  void show_places(const ModelSpec& spec);
  /// The same while they change with the pointer: only wires of what moved are led anew.
  void show_moved(const LayerPlaces& places);
  bool by_hand() const { return by_hand_; }
  static bool has_places(const ModelSpec& spec);

  /// Of what a person placed the pieces of wires have no points here before they are asked for: see way().
  const GroupLayout& picture() const { return picture_; }
  /// Where a piece of a wire runs. Of what a person placed it is led once it is asked for: of thousands few are seen.
  const std::vector<Point>& way(size_t piece) const;
  /// Whether any of a piece may be in a part of the picture, without leading it; and whether its ends are so far from
  /// each other.
  bool may_be_seen(size_t piece, const Box& part, float least) const;
  const ScopeTree& tree() const { return tree_; }
  int cell_of_layer(int layer) const { return picture_.cell_of(tree_, tree_.leaf_of(layer)); }
  /// Of a leaf's cell; -1: it is a group.
  int layer_of(const GroupLayout::Cell& c) const { return tree_.at(c.node).item; }
  /// The layers below a node of the tree, in the order of the model.
  std::vector<int> layers_below(int node) const;
  int node_of(const std::string& path) const;  ///< the group of that path; -1: there is none
  /// The instance of a sub-model that a node of the tree is; empty: of none.
  std::string instance_at(int node) const;
  /// "layer3.1", and of a row of groups built alike "blocks.0 … 3".
  std::string title(int node) const;
  /// A layer's name without what the frame round it says already.
  std::string short_name(const GroupLayout::Cell& c) const;
  std::string short_title(const GroupLayout::Frame& f) const { return within(title(f.node), f.around); }

  bool is_open(int node) const { return !folded_.contains(key(node)); }
  void set_open(int node, bool open);
  void set_all_open(bool open);
  /// Opens what a layer stands in.
  bool reveal(int layer);
  bool any_groups() const;
  bool any_folded() const;

  /// A place for each layer, as it is seen, of a model without places as it was before show_moved(). What is folded
  /// away stands where its group does, or, `inside`, as it would be seen opened.
  LayerPlaces places(bool inside) const;
  /// The model with these, `inside`.
  ModelSpec placed(const ModelSpec& spec) const;
  /// Begins to work out, beside everything, what places(true) needs of a model that is folded.
  void foresee_opened() const;
  /// The model with room for a group that is about to be opened, where that has none.
  ModelSpec with_room(const ModelSpec& spec, int node) const;
  /// Near (x, y), where a layer lies on no other.
  Point free_place(double x, double y) const;

 private:
  static constexpr float kAspect = 1.6f;  ///< of the canvas that a picture is made for

  std::string key(int node) const;
  std::string within(const std::string& name, int frame) const;
  std::set<int> open_nodes() const;
  void fold_at_first();
  void lay_out();
  // layout_by_hand.cpp
  void lay_out_by_hand();
  Box box_by_hand(int node) const;   ///< what a node of the tree covers
  Box cell_by_hand(int node) const;  ///< a folded group stands where the first of what it holds does
  void fit_frames();
  void begin_wires();
  void forget_ways(const std::vector<Box>& before);
  struct End {
    int cell, port, ports;
    auto operator<=>(const End&) const = default;
  };
  /// The boxes that a wire is seen to run between; none where it runs within one, or ends nowhere.
  std::optional<std::pair<End, End>> ends_of(const GroupedGraph::Wire& wire) const;
  /// From where to where a wire between two boxes runs.
  std::pair<Point, Point> from_and_to(const std::pair<End, End>& ends) const;
  void find_ports(const std::unordered_map<std::string, int>& layers);
  End end_at(int cell, const GroupedGraph::Wire& wire, bool into) const;

  ModelSpec spec_;
  ScopeTree tree_;
  GroupedGraph graph_;
  mutable GroupLayout picture_;                       ///< as far as its wires were led
  mutable std::shared_ptr<const WireRouter> router_;  ///< between the boxes that a person placed; null: not made yet
  std::optional<GroupLayout> lifted_;                 ///< as it was laid out, while the pointer moves parts of it
  /// The model laid out with every group open.
  mutable std::shared_future<std::shared_ptr<const GroupLayout>> opened_;
  std::set<std::string> folded_;
  bool by_hand_ = false;
};

/// The size of a layer's box.
Size layer_size(const LayerSpec& layer);

}  // namespace tenon::views
