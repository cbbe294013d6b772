#pragma once
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "engine/data/dataset.h"
#include "engine/spec/model_spec.h"
#include "engine/train/recipe.h"

namespace tenon {

/// Several keys of a recipe at once, as they are typed.
void set_keys(Recipe& recipe, std::initializer_list<std::pair<const char*, const char*>> keys);

/// A model with the recipe it is trained by: what a new project starts from.
struct Template {
  std::string name = {};  ///< "fashion-cnn": as it is registered
  std::string title;      ///< one line for people
  ModelSpec model = {};   ///< for the data that is used where none is named
  Recipe recipe = {};
  std::vector<std::string> kinds = {};  ///< of data set it is made for, beside its recipe's
  /// What somebody may name as data of their own.
  struct OwnData {
    enum class Place { none, file, folder };
    Place place = Place::none;
    std::string what = {};  ///< "a table (CSV)"
  } own_data = {};
  /// The model for other data of the recipe's kind; null where the model is the same for all.
  ModelSpec (*fit)(const Recipe& recipe, const data::Dataset& train) = nullptr;
  /// Settles where a new project's data comes from: `data` is what the user named (a file or folder, or empty),
  /// `project` the project file's path. May set keys and write files. Returns what the user should be told, a line or
  /// nothing. Null: `data` is the recipe's data.dir.
  std::string (*prepare)(Recipe& recipe, const std::string& data, const std::string& project) = nullptr;
};
/// Sorted by name.
const std::vector<Template>& templates();
/// Throws Error (usage) that lists the near names.
const Template& find_template(const std::string& name);
/// How a template trains, for data and weights to begin with that stay as they are: a recipe as a preset.
Recipe trained_as(const Template& t, const Recipe& now);
/// A project's beginning: what a template gives for the data named. Settings come as typed and hold over the
/// template's. Opens the data, so missing or damaged files are told now, not when training starts.
struct Beginning {
  ModelSpec model;
  Recipe recipe;
  std::string note;  ///< for the user; may be empty
  /// What was taken for granted of the data, and what looks wrong in them. Of what was taken for granted, the recipe
  /// says it from now on.
  std::vector<data::Remark> remarks;
};
Beginning begin(const Template& t, const std::string& data, const std::string& project,
                const std::vector<std::pair<std::string, std::string>>& settings = {});
/// Templates whose model can learn from the data of a recipe, those that are made for its kind first. `raw`: the data,
/// before any transform.
std::vector<std::string> templates_for(const Recipe& recipe, const data::Split& raw);
/// A template's model for data that are open, and its recipe with these data; transforms and batch size are the
/// template's where it is made for their kind and the recipe says none.
Beginning begin_with(const Template& t, const Recipe& recipe, const data::Split& raw);
/// The beginning that suits a file or folder of somebody's own best, and every template that would do. Throws Error
/// where the data cannot be read, and where no template can learn from them.
struct SuitedBeginning {
  Beginning beginning;
  std::vector<std::string> templates;  ///< the first is the one that was taken
};
SuitedBeginning begin_for(const std::string& data, const std::vector<std::pair<std::string, std::string>>& settings);
/// A model with only an input, of the default recipe's data: to be built from there.
Beginning begin_empty();
/// `make` runs when templates are asked for: every layer and data set it names is registered by then.
bool register_template(const std::string& name, Template (*make)(), Place place = Place::current());

}  // namespace tenon
