#include "engine/templates/templates.h"

#include <algorithm>

#include "core/error.h"
#include "engine/data/dataset.h"

namespace tenon {
namespace {

std::vector<Template (*)()>& makers() {
  static std::vector<Template (*)()> list;
  return list;
}

}  // namespace

bool register_template(Template (*make)()) {
  makers().push_back(make);
  return true;
}

const std::vector<Template>& templates() {
  static const std::vector<Template> all = [] {
    std::vector<Template> list;
    for (auto make : makers()) list.push_back(make());
    std::sort(list.begin(), list.end(), [](const Template& a, const Template& b) { return a.name < b.name; });
    return list;
  }();
  return all;
}

const Template& find_template(const std::string& name) { return find_named(templates(), name, "template"); }

Beginning begin(const Template& t, const std::string& data, const std::string& project,
                const std::vector<std::pair<std::string, std::string>>& settings) {
  Beginning b{t.model, t.recipe, {}};
  for (const auto& [key, text] : settings) b.recipe.set(key, text);
  if (t.prepare) {
    b.note = t.prepare(b.recipe, data, project);
  } else if (!data.empty()) {
    if (!data::find_dataset_kind(b.recipe.text("data.dataset")).files)
      throw Error::usage(t.name + " needs no data files: leave --data out");
    b.recipe.set("data.dir", data);
  }
  for (const auto& [key, text] : settings) b.recipe.check_used(key);
  data::Options options;
  options.dir = b.recipe.text("data.dir");
  options.seed = static_cast<uint64_t>(b.recipe.integer("seed"));
  options.attrs = b.recipe.attrs("data");
  options.transforms = b.recipe.text("data.transforms");
  data::Split split = data::open_dataset(b.recipe.text("data.dataset"), options);
  if (t.fit) b.model = t.fit(b.recipe, *split.train);
  return b;
}

}  // namespace tenon
