#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/train/recipe.h"
#include "views/shared/step_model.h"

namespace tenon::views {

/// The recipe of the next run as a form: its keys in sections, beside what the last run was told; the way back of
/// edits; and, as its picture, the learning rate over the run.
class RecipeModel : public StepModel {
 public:
  struct Key {
    AttrDef def;  ///< as the chosen definition has it; its name is the whole key
    AttrValue value;
    bool set = false;               ///< not the default
    std::optional<AttrValue> last;  ///< what the last run had, where that is something else
    std::string label() const;      ///< "batch size"
  };
  struct Section {
    std::string title;
    std::vector<Key> keys;
  };

  /// Another recipe, edited here or read from the file; null forgets the way back, too.
  void set_recipe(const Recipe& recipe);
  void forget();
  const Recipe& recipe() const { return recipe_; }
  /// The run that is compared with, of so many steps; without one nothing is.
  void set_last(std::optional<Recipe> last, int64_t total_steps);
  bool has_last() const { return last_.has_value(); }
  const std::optional<Recipe>& last() const { return last_; }

  /// Those whose name or help holds every word of `search`; sections without any are left out.
  std::vector<Section> sections(const std::string& search = {}) const;
  /// How many keys differ from the last run's.
  int differing() const;

  /// The recipe with one key changed. Throws Error (usage) for a value that does not fit.
  Recipe with(const std::string& key, const AttrValue& value) const;
  Recipe without(const std::string& key) const;
  /// What is to be gone back to after the edit that follows.
  void remember();
  bool can_undo() const { return !done_.empty(); }
  bool can_redo() const { return !undone_.empty(); }
  /// The recipe before the last edit (after the one that was taken back).
  Recipe undo();
  Recipe redo();

  /// A place on the curve, by arrows or the pointer: what the rate is there.
  bool key(const KeyEvent& e) override;
  bool pointer(const PointerEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  /// Steps of a run of this recipe; `known`: the last one, or the recipe itself, tells.
  int64_t steps(bool& known) const;
  Recipe recipe_;
  std::optional<Recipe> last_;
  int64_t last_steps_ = 0;
  double at_ = -1;  ///< the place, as a share of the run; below 0: none
  std::string read_out_;
  Box area_;  ///< of the plot in the last frame
  std::vector<Recipe> done_, undone_;
};

}  // namespace tenon::views
