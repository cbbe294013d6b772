#include "engine/templates/templates.h"

#include <algorithm>

#include "core/error.h"
#include "engine/train/open_data.h"

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
