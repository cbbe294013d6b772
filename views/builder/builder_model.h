#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/model/examine.h"
#include "engine/spec/model_spec.h"
#include "views/builder/builder_heat.h"
#include "views/builder/model_edits.h"
#include "views/builder/model_layout.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// Edits a ModelSpec as a graph. After each edit the model is tried on tensors without memory, so that shapes, counts
/// and errors on the nodes are always those of what is seen. Every edit can be undone.
class BuilderModel : public StepModel {
 public:
  /// Ids of targets: of layers and wires their index, of ports `port_id`, of groups their node in the tree of scopes.
  enum HitKind { none, layer = 1, input_port, output_port, wire, group, opened_group, minimap };

  /// Another model: forgets the history of edits.
  void set_spec(const ModelSpec& spec, int64_t batch);
  void set_batch(int64_t batch);
  /// What the next run does not train: init.freeze of its recipe.
  void set_frozen(const std::string& patterns);
  /// How much of a layer's parameters is frozen: "frozen", "partly frozen", or nothing.
  std::string frozen_text(const LayerReport& report) const;
  const ModelSpec& spec() const { return spec_; }
  const ModelLayout& layout() const { return layout_; }
  int64_t revision() const { return revision_; }  ///< another one after every edit, undo and redo
  int64_t batch() const { return batch_; }
  const LayerReport* report(const std::string& layer) const;
  /// Of the layer at an index of the spec; null where none was made.
  const LayerReport* report_of(int index) const { return report_at_[static_cast<size_t>(index)]; }
  /// What layers and groups are coloured by.
  void set_heat(Heat h);
  const HeatMap& heat() const { return heat_; }
  /// Of each layer what it holds at the highest moment of a step, for Heat::memory; worked out by who knows the recipe.
  void set_layer_memory(std::map<std::string, int64_t> bytes);
  int64_t parameters() const { return totals_.parameters; }
  double flops() const { return totals_.flops; }
  int64_t output_bytes() const { return totals_.output_bytes; }
  const std::vector<std::string>& errors() const { return errors_; }  ///< "conv1: ..." in the order of the layers

  // Edits. Each returns false (and changes nothing) where it makes no sense; why() says why.
  bool add_layer(const std::string& type, double x, double y);
  /// A layer on the selected wire, or behind the selected layer (or behind the last one before the output), wired in.
  bool insert_layer(const std::string& type);
  /// Another type for the selected layers; their wires stay.
  bool replace_selected(const std::string& type);
  bool remove_selected();
  bool connect(const std::string& from, int from_port, const std::string& to, int to_port);
  bool disconnect(const std::string& to, int to_port);
  bool set_attr(const std::string& layer, const std::string& attr, const AttrValue& value);
  /// Of all selected layers that have it.
  bool set_attr_of_selected(const std::string& attr, const AttrValue& value);
  bool set_comment(const std::string& layer, const std::string& text);
  /// The selected layers are left out of the model (their input goes on in their place), or are there again.
  bool switch_selected();
  bool rename(const std::string& layer, const std::string& name);

  // Sub-models and shared weights: builder_submodels.cpp.
  /// Of the selected layers: a group that has them all, or a new one, is its first instance.
  bool make_submodel(const std::string& name);
  bool rename_submodel(const std::string& from, const std::string& to);
  /// One more instance, where insert_layer() would put a layer.
  bool insert_submodel(const std::string& name);
  /// The selected instance, or the one around the chosen layer; empty where there is none.
  std::string chosen_instance() const;
  bool dissolve_chosen();
  /// Each instance of the sub-model has a value of its own for an attribute of the layer; with an empty name all have
  /// the layer's.
  bool set_own_value(const std::string& layer, const std::string& attr, const std::string& submodel);
  /// Whose weights the selected instance or layer has; empty: its own.
  std::string weights_owner() const;
  const std::vector<std::string>& weight_owners() const;
  bool share_weights_with(const std::string& owner);

  bool rename_group(const std::string& path, const std::string& to);
  bool group_selected(const std::string& name);
  /// The layers of the selected group without the last part of its name.
  bool ungroup_selected();
  bool move_selected(double dx, double dy);
  bool align_selected(edits::Line line);
  bool spread_selected();
  /// Gives up the places of all layers: the model is laid out by itself from now on.
  void auto_layout();
  /// Another model in the place of this one, as one edit.
  bool replace(const std::string& text, const ModelSpec& spec);
  const std::string& why() const { return why_; }
  /// What the last edit did beside what was asked; empty: nothing.
  const std::string& said() const { return said_; }

  /// The selected layers as text for a clipboard; empty where none is.
  std::string copied() const;
  bool paste(const std::string& text);
  bool duplicate_selected();

  bool can_undo() const { return done_ > 0; }
  /// The model as it was before the last edit; null where there was none.
  const ModelSpec* before_last_edit() const { return can_undo() ? &edits_[done_ - 1].before : nullptr; }
  bool can_redo() const { return done_ < edits_.size(); }
  std::string undo_text() const { return can_undo() ? edits_[done_ - 1].text : ""; }
  std::string redo_text() const { return can_redo() ? edits_[done_].text : ""; }
  void undo();
  void redo();

  const std::set<std::string>& selected() const { return selected_; }
  std::string primary() const { return primary_; }  ///< the layer that the inspector shows
  /// The group that is selected as a whole; empty where none is.
  const std::string& selected_group() const { return group_; }
  bool wire_selected() const { return selected_wire_ >= 0; }
  void choose(const std::string& layer);
  void choose_wire(int wire);
  /// All layers of a group, as one.
  void choose_group(int node, bool add);
  /// The step whose ops, tensors and blocks a selection may name.
  void set_step(const Links& links) override { links_ = links; }
  void set_selection(const Selection& s) override;
  void select_all();
  void clear_selection();

  // Groups, by their node in the tree of scopes.
  void toggle_group(int node);
  void open_groups(bool open);
  bool toggle_selected_group();

  /// Layers by words of their names and types, attributes and comments; the number found.
  int search(const std::string& words);
  int found() const { return static_cast<int>(found_.size()); }
  /// The next of them becomes the chosen one, in sight.
  bool next_found(int direction);

  void fit();
  void zoom_by(float factor);
  float zoom() const { return zoom_; }
  /// Brings a layer into sight, opening what it stands in.
  void reveal(const std::string& layer);
  /// The id of the target that a port is: the layer and the port's number in one.
  static int64_t port_id(int64_t layer, int64_t port) { return layer * kMostPorts + port; }
  Box box_of(const LayerSpec& l) const;  ///< on the canvas, logical pixels; of a folded layer its group's
  Point port(const LayerSpec& l, bool output, int index) const;
  Point to_canvas(Point p) const { return {p.x * zoom_ + pan_x_, p.y * zoom_ + pan_y_}; }
  Box to_canvas(Box b) const { return {b.x * zoom_ + pan_x_, b.y * zoom_ + pan_y_, b.w * zoom_, b.h * zoom_}; }
  Point from_canvas(Point p) const { return {(p.x - pan_x_) / zoom_, (p.y - pan_y_) / zoom_}; }
  /// What a menu at a point of the canvas would be about: selected first, where it is not yet.
  Hit hit_for_menu(float x, float y);

  /// One row a layer.
  Table table() const;

  /// Called after every edit, undo and redo.
  std::function<void()> on_edit;
  /// Called when other layers are selected.
  std::function<void()> on_selected;
  /// Set by the view: the attributes of the chosen layer are to be typed.
  std::function<void()> on_inspect;
  /// Asked to open the list of layers at a place of the canvas, with what was typed.
  std::function<void(float x, float y, const std::string& typed)> on_palette;

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  struct Edit {
    std::string text;
    ModelSpec before, after;
  };
  void forget_missing(const ModelSpec& next);
  bool apply(const std::string& text, ModelSpec next);
  ModelSpec take(ModelSpec next, bool anew);
  bool refuse(const std::string& why);
  void examine_now();
  void sum_up();
  int index_of(const std::string& layer) const;
  bool reaches(const std::string& from, const std::string& to) const;
  void select_names(std::set<std::string> names, const std::string& primary);
  void tell_selected();
  bool put_in(const std::string& text, ModelSpec next, const std::string& name);
  /// What a new layer comes behind; null where it stands alone.
  const LayerSpec* anchor() const;
  /// The instance that is drawn folded and has the layer inside; empty: the layer is drawn itself, or in a group.
  std::string folded_instance(const std::string& layer) const;
  /// All places that a wire to a port arrives at: of a folded instance those of the input that the port is of.
  std::vector<WireSpec> ends_at(const std::string& layer, int port) const;
  bool connect_ends(const std::string& from, int from_port, const std::vector<WireSpec>& ends);
  void insert_at(ModelSpec& next, LayerSpec& l, const LayerSpec& after) const;

  // Drawing: builder_draw.cpp, builder_far.cpp.
  void fit_now();
  bool seen(Box b) const;
  bool is_chosen(int layer) const { return layer >= 0 && chosen_[static_cast<size_t>(layer)]; }
  void draw_ground(Scene& scene) const;
  void draw_frames(Scene& scene) const;
  void draw_titles(Scene& scene) const;
  void draw_wires(Scene& scene) const;
  void draw_piece(Scene& scene, size_t piece, Ink ink, float width) const;
  void draw_cell(Scene& scene, const GroupLayout::Cell& c) const;
  void draw_layer(Scene& scene, int index, const GroupLayout::Cell& c, Box b) const;
  void draw_layer_words(Scene& scene, int index, const GroupLayout::Cell& c, Box b) const;
  void draw_ports(Scene& scene, int index, Box b) const;
  void draw_instance_ports(Scene& scene, const std::string& scope, Box b) const;
  std::string shared_text(const LayerSpec& l) const;
  void draw_group(Scene& scene, const GroupLayout::Cell& c, Box b) const;
  void draw_speck(Scene& scene, const GroupLayout::Cell& c, Box b) const;
  void draw_far_names(Scene& scene) const;
  void draw_minimap(Scene& scene);
  void draw_gesture(Scene& scene) const;
  void draw_status(Scene& scene) const;
  std::string tip_of(int index) const;
  // builder_heat.cpp
  void warm_up();
  void find_hottest();
  double heat_of(const GroupLayout::Cell& c) const;
  void draw_heat(Scene& scene, const GroupLayout::Cell& c, Box b) const;
  void draw_heat_legend(Scene& scene) const;
  Ink rim(const GroupLayout::Cell& c) const;

  // Pointer and keys: builder_input.cpp.
  bool press(const PointerEvent& e);
  bool drag(const PointerEvent& e);
  bool release(const PointerEvent& e);
  bool press_port(Hit hit);
  bool press_layer(const std::string& name, Mods mods);
  void lift_selected();
  void drop_wire(float x, float y);
  void select_band();
  void move_by_minimap(float x, float y);
  bool walk(const std::string& key);
  static constexpr int64_t kMostPorts = 4096;  ///< of one layer
  float least_zoom() const;
  void zoom_at(float factor, float x, float y);

  ModelSpec spec_;
  ModelLayout layout_;
  HeatMap heat_;
  std::map<std::string, int64_t> memory_;
  std::unordered_map<std::string, int> index_;        ///< layers by name
  std::vector<std::pair<int, int>> ends_;             ///< by wire: the layers; -1: there is none of that name
  std::set<std::pair<int, int>> used_out_, used_in_;  ///< ports with a wire: layer and port
  ModelSpec examined_;                                ///< what the reports are of, with every layer at the origin
  Examiner examiner_;
  int64_t examined_batch_ = 0, revision_ = 0;
  Links links_;
  int64_t batch_ = 1;
  std::map<std::string, LayerReport> reports_;
  // Of the reports, which are asked for in every frame and by every command.
  struct Totals {
    int64_t parameters = 0, output_bytes = 0;
    double flops = 0;
  };
  Totals totals_;
  std::vector<std::string> errors_;
  std::vector<char> bad_;  ///< by layer: it has an error
  struct Below {
    int errors = 0;
    int64_t parameters = 0;
    double flops = 0;
  };
  std::vector<Below> below_;                   ///< by node of the tree of scopes
  std::vector<const LayerReport*> report_at_;  ///< by layer
  /// Of what is chosen: every command and the inspector ask for it whenever anything changes.
  mutable std::optional<std::pair<std::string, std::vector<std::string>>> weight_owners_;
  std::string frozen_;  ///< patterns of names
  std::vector<Edit> edits_;
  size_t done_ = 0;
  std::string why_, primary_, group_;
  std::string said_;  ///< what the last edit did beside what was asked
  std::set<std::string> selected_;
  std::vector<char> chosen_;  ///< the same by layer, as it is drawn
  int selected_wire_ = -1;
  std::vector<int> found_;
  std::string words_;
  float fitting_ = 1;  ///< the zoom that shows the whole model
  float zoom_ = 1, pan_x_ = 0, pan_y_ = 0;
  Size size_{};
  bool fit_next_ = true, own_view_ = false;  ///< own_view_: a person zoomed or panned; else the model is kept in sight
  std::string reveal_next_;
  Box map_;    ///< the minimap on the canvas; empty where there is none
  Box whole_;  ///< all that is drawn, at zoom 1
  float map_zoom_ = 1;

  enum class Drag { none, pan, move, wire, band, map };
  Drag drag_ = Drag::none;
  bool moved_ = false, add_ = false;  ///< add_: to what is selected
  float press_x_ = 0, press_y_ = 0, pointer_x_ = 0, pointer_y_ = 0, start_x_ = 0, start_y_ = 0;
  double moved_dx_ = 0, moved_dy_ = 0;
  LayerPlaces dragged_;  ///< of the layers when a drag began
  std::string wire_from_;
  int wire_port_ = 0;
  bool used_wheel_ = false;  ///< what the wheel does need not be told any longer
  bool loose_ = false;       ///< the wire was dropped on the ground: the next layer that is typed is put to its end
};

}  // namespace tenon::views
