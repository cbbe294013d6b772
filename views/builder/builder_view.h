#pragma once
#include "views/builder/builder_model.h"
#include "views/frame/picker.h"
#include "views/frame/view.h"

class QComboBox;
class QLineEdit;
class QMenu;
class QToolButton;

namespace tenon::views {

class BuilderView : public View {
  Q_OBJECT
 public:
  BuilderView(const ViewDef& def, Bench& bench, QWidget* parent);
  /// Opens the list of layers, of which one is added; an empty position: under the button.
  void open_palette(const QString& typed = {}, QPoint at = {-1, -1});
  /// The same list, of which one takes the place of the selected layers.
  void open_replacements();
  Picker* picker() const { return picker_; }
  ~BuilderView() override;
  std::vector<Command> commands() override;

 protected:
  void contextMenuEvent(QContextMenuEvent* e) override;

 private:
  void make_bar();
  void refresh();
  void refresh_search();
  void choose_heat();
  /// What each layer holds at the highest moment of a step of the next run, told beforehand.
  void foretell_memory();
  void refresh_give();
  void pick_layer(const QString& hint, const QString& typed, QPoint at, std::function<void(const std::string&)> use,
                  std::function<void(const std::string&)> use_submodel = {});
  void copy();
  void paste();
  void ask_group();
  void ask_comment();
  // builder_submodels_view.cpp
  void ask_submodel();
  /// A list of what the selected layer or instance could share weights with.
  void ask_weights();
  std::vector<Picker::Item> submodel_items(const QString& text, const std::function<void(const std::string&)>& use);
  std::vector<Command> submodel_commands();
  void find_layer();
  std::vector<Command> edit_commands();
  std::vector<Command> model_commands();
  std::vector<Command> group_commands();
  std::vector<Command> place_commands();
  void add_to(QMenu* menu, const QString& id);

  BuilderModel& model_;
  Picker* picker_;
  QWidget* page_;
  ViewBar* bar_ = nullptr;
  QComboBox* heat_ = nullptr;
  int64_t foretold_ = -1;  ///< the revision of the model whose memory is known or on its way
  QLineEdit* search_ = nullptr;
  QToolButton* give_ = nullptr;
  ElidedLabel* found_ = nullptr;
};

}  // namespace tenon::views
