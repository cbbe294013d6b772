#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "views/model_file/graph_pane.h"
#include "views/model_file/scope_list.h"
#include "views/model_file/tensor_pane.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// The model file that is shown: its tensors as a tree with the chosen one beside it, and its graph; the pages with its
/// code and that run it draw themselves. What takes time (the outline of the file, values, layouts) is made elsewhere
/// and handed in; it is kept for every open file.
class ModelFileModel : public StepModel {
 public:
  enum class Page : uint8_t { tensors, graph, code, run };
  /// The source of what that page selects: the graph shows it once one goes there.
  static constexpr const char* kRunSource = "model_file run";
  using File = std::shared_ptr<const formats::ModelFile>;

  void set_document(const Document* document) override;
  void set_selection(const Selection& s) override;
  /// Forgets the files that are not among these documents.
  void keep(const std::set<int>& documents);

  const File& file() const { return file_; }
  int document() const { return document_; }
  /// The file is there and its outline is not.
  bool wants_outline() const { return file_ && !state(); }
  void set_outline(std::shared_ptr<const FileOutline> outline);
  bool ready() const { return state() != nullptr; }

  Page page() const { return page_; }
  bool has_graph() const { return ready() && state()->graph.any(); }
  bool has_code() const { return ready() && !file_->sources.empty(); }
  void show_page(Page page);
  void search(const std::string& words);
  const std::string& words() const { return words_; }
  /// "12 of 300 tensors"; nothing while nothing is searched for.
  std::string found_text() const;
  void next_found(int direction);
  void open_all(bool open);

  /// Ready alone.
  const std::shared_ptr<const FileOutline>& outline() const { return state()->graph.outline(); }
  const ScopeList& list() const { return state()->list; }
  TensorPane& pane() { return state()->pane; }
  GraphPane& graph() { return state()->graph; }
  /// Of the tensor that is chosen, once it was read.
  void set_slice(const File& file, int tensor, ValueSlice slice);
  void set_stats(const File& file, int tensor, const TensorStats& stats);
  /// Its values cannot be read, or are not any more.
  void stop(const File& file, int tensor, const std::string& why);
  void set_progress(double share);
  void set_layout(const File& file, GraphLayout layout, std::set<int> open);
  /// The name of what is chosen, a tensor or a node; empty: nothing is.
  std::string chosen_name() const;

  /// Another tensor or slice is to be read, or is not any more.
  std::function<void()> on_choose;
  std::function<void()> on_cancel;
  std::function<void()> on_page;
  std::function<void(const File&, std::set<int> open)> on_need_layout;

  /// The tensors of the file, or the nodes of its graph.
  Table table() const;

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  struct State {
    File file;
    ScopeList list;
    TensorPane pane;
    GraphPane graph;
    std::map<int, TensorStats> stats;  ///< by tensor
  };
  State* state();
  const State* state() const;
  void choose(int tensor);
  void choose_in_graph(int node);
  void follow_focus();
  bool click(const Hit& hit, Mods mods, bool twice);
  bool list_key(const KeyEvent& e);
  bool graph_key(const KeyEvent& e);
  float draw_head(Scene& scene, Box box) const;

  File file_;
  int document_ = 0;
  std::map<int, State> states_;  ///< by document
  Page page_ = Page::tensors;
  std::string words_;
  Selection selection_;
  Box list_box_, pane_box_, graph_box_;
  bool dragging_ = false, moved_ = false;
  Point pressed_, at_;
};

}  // namespace tenon::views
