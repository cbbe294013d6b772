#pragma once
#include <QWidget>

#include "views/builder/builder_model.h"
#include "views/frame/bench.h"

class QFormLayout;

namespace tenon::views {

/// A form over the attributes of the builder's chosen layer, or over those that several chosen layers have in common;
/// each change is an edit of the model that can be undone.
class InspectorView : public QWidget {
  Q_OBJECT
 public:
  explicit InspectorView(Bench& bench, QWidget* parent = nullptr);
  /// Shows the layer, and what it has in common with the others where several are chosen; empty where there is none of
  /// that name.
  void show_layer(const std::string& layer);
  const std::string& layer() const { return layer_; }

 private:
  void rebuild();
  void refresh_values();
  void add_name(const LayerSpec& l);
  /// What the layer lacks, with the edits that mend it.
  void add_mends();
  std::string fault_text() const;
  void add_group(const std::string& path);
  void add_attr(const AttrDef& def, const AttrValue& value);
  void add_row(const QString& name, const QString& words, QWidget* editor);
  /// Of a layer in an instance: whether all instances have that value, or each its own.
  QWidget* own_button(const std::string& attr);
  /// What the chosen instance has values of its own for.
  void add_own_values(const std::string& scope);
  std::string own_text() const;
  void add_notes(const LayerSpec& l);
  void add_submodel(const std::string& path);
  /// Whose weights it has, where there is a choice.
  void add_weights();
  std::set<std::string> wanted() const;
  std::string weights_text() const;
  std::vector<const LayerSpec*> shown_layers() const;
  std::vector<AttrDef> common_attrs(const std::vector<const LayerSpec*>& layers) const;
  QWidget* label(const QString& text);

  BuilderModel& builder_;
  QFormLayout* form_;
  std::string layer_, type_;
  std::set<std::string> all_;  ///< more than one where several layers are shown together
  std::string weights_;        ///< what the list of owners was made of
  std::string own_;            ///< what the rows of an instance's own values were made of
  std::string fault_;          ///< what the buttons that mend it were made of
  bool filling_ = false;
  int64_t revision_ = 0;  ///< of the model that is shown
};

}  // namespace tenon::views
