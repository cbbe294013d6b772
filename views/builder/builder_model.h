#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/model/examine.h"
#include "engine/spec/model_spec.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// Edits a ModelSpec as a graph. After each edit the model is tried on tensors without memory, so that shapes, counts
/// and errors on the nodes are always those of what is seen. Every edit can be undone.
class BuilderModel : public StepModel {
 public:
  enum HitKind { none, layer = 1, input_port, output_port, wire };

  /// Another model: forgets the history of edits.
  void set_spec(const ModelSpec& spec, int64_t batch);
  void set_batch(int64_t batch);
  /// What the next run does not train: init.freeze of its recipe.
  void set_frozen(const std::string& patterns);
  /// How much of a layer's parameters is frozen: "frozen", "partly frozen", or nothing.
  std::string frozen_text(const LayerReport& report) const;
  const ModelSpec& spec() const { return spec_; }
  int64_t batch() const { return batch_; }
  const LayerReport* report(const std::string& layer) const;
  int64_t parameters() const;
  double flops() const;
  int64_t output_bytes() const;
  std::vector<std::string> errors() const;  ///< "conv1: ..." in the order of the layers

  // Edits. Each returns false (and changes nothing) where it makes no sense; why() says why.
  bool add_layer(const std::string& type, double x, double y);
  /// A layer behind the selected one (or behind the last one before the output), wired in.
  bool insert_layer(const std::string& type);
  bool remove_selected();
  bool connect(const std::string& from, int from_port, const std::string& to, int to_port);
  bool disconnect(const std::string& to, int to_port);
  bool set_attr(const std::string& layer, const std::string& attr, const AttrValue& value);
  bool rename(const std::string& layer, const std::string& name);
  bool move_selected(double dx, double dy);
  void auto_layout();
  /// Another model in the place of this one, as one edit.
  bool replace(const std::string& text, const ModelSpec& spec);
  const std::string& why() const { return why_; }

  bool can_undo() const { return done_ > 0; }
  bool can_redo() const { return done_ < edits_.size(); }
  std::string undo_text() const { return can_undo() ? edits_[done_ - 1].text : ""; }
  std::string redo_text() const { return can_redo() ? edits_[done_].text : ""; }
  void undo();
  void redo();

  const std::set<std::string>& selected() const { return selected_; }
  std::string primary() const { return primary_; }  ///< the layer that the inspector shows
  void choose(const std::string& layer);
  /// The step whose ops, tensors and blocks a selection may name.
  void set_step(const Links& links) override { links_ = links; }
  void set_selection(const Selection& s) override;
  void select_all();
  void fit();
  void zoom_by(float factor);
  /// The id of the target that a port is: the layer and the port's number in one.
  static int64_t port_id(int64_t layer, int64_t port) { return layer * kMostPorts + port; }
  Box box_of(const LayerSpec& l) const;  ///< on the canvas, logical pixels
  Point port(const LayerSpec& l, bool output, int index) const;

  /// One row a layer.
  Table table() const;

  /// Called after every edit, undo and redo.
  std::function<void()> on_edit;
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
    std::string text, merge;
    ModelSpec before, after;
  };
  void forget_missing(const ModelSpec& next);
  bool apply(const std::string& text, ModelSpec next, const std::string& merge = {});
  bool refuse(const std::string& why);
  void examine_now();
  std::string free_name(const std::string& type) const;
  void place(ModelSpec& spec) const;
  bool reaches(const std::string& from, const std::string& to) const;
  void draw_wire(Scene& scene, Point a, Point b, Ink ink, float width, int64_t id);
  void draw_layer(Scene& scene, const LayerSpec& l, int64_t id);
  static constexpr int64_t kMostPorts = 4096;  ///< of one layer
  Point to_canvas(double x, double y) const;
  float least_zoom() const;

  ModelSpec spec_;
  ModelSpec examined_;  ///< what the reports are of, with every layer at the origin
  int64_t examined_batch_ = 0;
  Links links_;
  int64_t batch_ = 1;
  std::map<std::string, LayerReport> reports_;
  std::string frozen_;  ///< patterns of names
  std::vector<Edit> edits_;
  size_t done_ = 0;
  std::string why_, primary_;
  std::set<std::string> selected_;
  int selected_wire_ = -1;
  float fitting_ = 1;  ///< the zoom that shows the whole model
  float zoom_ = 1, pan_x_ = 0, pan_y_ = 0;
  Size size_{};
  bool fit_next_ = true, own_view_ = false;  ///< own_view_: a person zoomed or panned; else the model is kept in sight

  enum class Drag { none, pan, move, wire };
  Drag drag_ = Drag::none;
  bool moved_ = false;
  float press_x_ = 0, press_y_ = 0, pointer_x_ = 0, pointer_y_ = 0, start_x_ = 0, start_y_ = 0;
  double moved_dx_ = 0, moved_dy_ = 0;
  std::string wire_from_;
  int wire_port_ = 0;
  int drag_serial_ = 0;
};

}  // namespace tenon::views
