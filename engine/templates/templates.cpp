#include "engine/templates/templates.h"

#include <algorithm>

#include "core/error.h"
#include "engine/spec/wiring.h"
#include "engine/train/model_fit.h"
#include "engine/train/open_data.h"
#include "engine/train/own_data.h"

namespace tenon {

void set_keys(Recipe& recipe, std::initializer_list<std::pair<const char*, const char*>> keys) {
  for (const auto& [key, text] : keys) recipe.set(key, text);
}
namespace {

struct Maker {
  std::string name;
  Template (*make)();
};
Registry<Maker>& makers() {
  static auto& all = *new Registry<Maker>("template");
  return all;
}

}  // namespace

bool register_template(const std::string& name, Template (*make)(), Place place) {
  return makers().add({name, make}, place);
}

const std::vector<Template>& templates() {
  static auto& cache = *new MadeOfRegistries<std::vector<Template>>([] {
    std::vector<Template> list;
    for (const Maker& m : makers()) {
      list.push_back(m.make());
      list.back().name = m.name;
    }
    return list;
  });
  return cache.get();
}

Recipe trained_as(const Template& t, const Recipe& now) {
  Recipe made = t.recipe;
  for (const AttrDef& key : now.used_keys())
    if (key.name.starts_with("data.") || key.name.starts_with("init.")) {
      if (now.at(key.name) == now.fallback(key.name))
        made.reset(key.name);
      else
        made.set_value(key.name, now.at(key.name));
    }
  return made;
}

const Template& find_template(const std::string& name) {
  makers().at(name);
  for (const Template& t : templates())
    if (t.name == name) return t;
  throw Error("the template \"" + name + "\" was taken back meanwhile");
}

namespace {
bool is_made_for(const Template& t, const std::string& kind) {
  return t.recipe.text("data.dataset") == kind || std::find(t.kinds.begin(), t.kinds.end(), kind) != t.kinds.end();
}
int input_axes(const ModelSpec& model) {
  for (const LayerSpec& l : model.layers)
    if (l.type == "Input") return input_meta(l).shape.n;
  return 0;
}
}  // namespace

Beginning begin_with(const Template& t, const Recipe& recipe, const data::Split& raw) {
  Beginning b;
  b.recipe = trained_as(t, recipe);
  if (is_made_for(t, recipe.text("data.dataset")))
    for (const char* key : {"data.transforms", "data.batch_size"})
      if (recipe.at(key) == recipe.fallback(key)) b.recipe.set_value(key, t.recipe.at(key));
  const auto train = transformed_as(b.recipe, raw).train;
  suit_to_data(b.recipe, *train);
  if (input_axes(t.model) != train->input().shape.n)
    throw Error(t.name + " takes samples of " + std::to_string(input_axes(t.model)) + " axes; these have shape " +
                to_string(train->input().shape));
  b.model = t.fit ? t.fit(b.recipe, *train) : fit_model(t.model, b.recipe, *train).mended;
  return b;
}

std::vector<std::string> templates_for(const Recipe& recipe, const data::Split& raw) {
  const std::string& kind = recipe.text("data.dataset");
  std::vector<std::pair<bool, std::string>> found;  // whether it is made for other kinds
  for (const Template& t : templates()) {
    try {
      const Beginning b = begin_with(t, recipe, raw);
      if (fit_model(b.model, b.recipe, *transformed_as(b.recipe, raw).train).problem.empty())
        found.emplace_back(!is_made_for(t, kind), t.name);
    } catch (const Error&) {  // it is for samples of another kind
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [other, name] : found) names.push_back(std::move(name));
  return names;
}

SuitedBeginning begin_for(const std::string& data, const std::vector<std::pair<std::string, std::string>>& settings) {
  auto raw_settings = settings;
  std::erase_if(raw_settings, [](const auto& s) { return s.first == "data.transforms"; });
  const OwnData own = with_own_data(begin_empty().recipe, data, raw_settings);
  SuitedBeginning found{{}, templates_for(own.recipe, own.split)};
  if (found.templates.empty())
    throw Error("no template can learn from " + data + ", read as " + own.recipe.text("data.dataset"),
                "make an empty project (`tenon new`), take the data (`tenon data --take`) and build the model");
  found.beginning = begin_with(find_template(found.templates.front()), own.recipe, own.split);
  for (const auto& [key, text] : settings) found.beginning.recipe.set(key, text);
  for (const auto& [key, text] : settings) found.beginning.recipe.check_used(key);
  found.beginning.remarks = own.split.remarks;
  return found;
}

Beginning begin_empty() {
  Beginning b;
  b.model.name = "model";
  b.model.layers = {{"input", "Input", {{"shape", std::vector<int64_t>{1, 28, 28}}}}};
  return b;
}

Beginning begin(const Template& t, const std::string& data, const std::string& project,
                const std::vector<std::pair<std::string, std::string>>& settings) {
  Beginning b{t.model, t.recipe, {}, {}};
  for (const auto& [key, text] : settings) b.recipe.set(key, text);
  if (t.prepare) {
    b.note = t.prepare(b.recipe, data, project);
  } else if (!data.empty()) {
    if (!data::dataset_defs().at(b.recipe.text("data.dataset")).files)
      throw Error::usage(t.name + " needs no data files: leave --data out");
    b.recipe.set("data.dir", data);
  }
  for (const auto& [key, text] : settings) b.recipe.check_used(key);
  data::Split split = open_data(b.recipe);
  for (const Attr& a : split.found) b.recipe.set("data." + a.name, attr_text(a.value));
  b.remarks = std::move(split.remarks);
  if (t.fit) b.model = t.fit(b.recipe, *split.train);
  return b;
}

}  // namespace tenon
