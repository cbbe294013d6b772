// What is wrong with the data before anything is trained on them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/train/class_balance.h"
#include "engine/train/model_fit.h"
#include "engine/train/open_data.h"
#include "projects/checks/check.h"

namespace tenon::projects {
namespace {

/// What the survey said under an id, with its places.
std::vector<Complaint> remarked(Checked& c, const char* id, const std::string& remedy) {
  std::vector<Complaint> all;
  for (const data::Remark& r : c.survey().remarks)
    if (r.id == id) all.push_back({"", r.line(), remedy});
  return all;
}

bool by_class(Checked& c) { return c.split().train->classes() > 1; }

std::vector<Complaint> imbalance(Checked& c) {
  const Recipe& r = c.recipe();
  // Of pixels and tokens some are always rare.
  const std::string task = c.split().train->task();
  if (r.text("data.sampling") == "balanced" || (task != "classification" && task != "binary")) return {};
  for (const AttrDef& def : r.used_keys())
    for (const char* key : {"loss.weight", "loss.pos_weight"})
      if (def.name == key && !attr_text(r.at(key)).empty()) return {};
  const std::vector<ClassCount> classes = count_classes(c.split());
  if (classes.size() < 2) return {};
  const auto less = [](const ClassCount& a, const ClassCount& b) { return a.train < b.train; };
  const auto [rare, usual] = std::minmax_element(classes.begin(), classes.end(), less);
  if (rare->train == 0 || usual->train < 10 * rare->train) return {};
  return {{"class " + rare->name,
           fmt::format("{} samples are {}, {} are {}: a model that never says {} is right nearly as often", rare->train,
                       rare->name, usual->train, usual->name, rare->name),
           "loss.weight = balanced or data.sampling = balanced, and judge by recall of each class, not by accuracy"}};
}

std::vector<Complaint> absent_classes(Checked& c) {
  std::vector<Complaint> all;
  if (!by_class(c) || c.split().train->task() == "language") return all;
  for (const ClassCount& one : count_classes(c.split())) {
    if (one.train == 0 && one.test > 0)
      all.push_back(
          {"class " + one.name,
           fmt::format("{} of the test split's targets are {}, and none of the training set's", one.test, one.name),
           "draw the split anew (data.test_share), or bring samples of it into the training set"});
    if (one.test == 0 && one.train > 0)
      all.push_back({"class " + one.name,
                     fmt::format("no target of the test split is {}: nobody knows how well it is told", one.name),
                     "draw the split anew (data.test_share)"});
  }
  return all;
}

std::vector<Complaint> scale(Checked& c) {
  if (c.split().train->input().dtype != DType::f32) return {};
  const data::Survey::Part& p = c.survey().train;
  const double largest = std::max(std::abs(p.min), std::abs(p.max));
  if (p.values == 0 || (p.deviation <= 20 && std::abs(p.mean) <= 20)) return {};
  // A model that begins with a norm scales by itself.
  for (const LayerSpec& l : c.model().layers)
    if (l.type.find("Norm") != l.type.npos) return {};
  return {
      {"",
       fmt::format("values of the inputs reach {:.4g}, with a mean of {:.4g} and a deviation of {:.4g}; layers begin "
                   "with weights made for about 0 and 1",
                   largest, p.mean, p.deviation),
       fmt::format("data.transforms = normalise mean={:.4g} std={:.4g}", p.mean, std::max(p.deviation, 1e-12))}};
}

/// A label beyond the outputs, samples of another size, words that an Embedding does not have.
std::vector<Complaint> data_and_model(Checked& c) {
  const data::Split as_trained = open_data(c.recipe());  // with its transforms: they may give another shape
  const ModelFit fit = fit_model(c.model(), c.recipe(), *as_trained.train);
  // More outputs than classes train all the same.
  const auto fewer_outputs = [](const ModelFit::Change& change) {
    return change.attr.starts_with("out_") && std::atoll(change.from.c_str()) > std::atoll(change.to.c_str());
  };
  if (fit.problem.empty() ||
      (!fit.changes.empty() && std::all_of(fit.changes.begin(), fit.changes.end(), fewer_outputs)))
    return {};
  const std::string change = fit.changes_text();
  return {{"", fit.problem,
           change.empty() ? fit.hint : fmt::format("{}: `tenon data {} --fit`", change, c.project().path())}};
}

const bool registered_data_checks[] = {
    register_check({"data.model", "Model and data do not fit", false, data_and_model}),
    register_check({"data.leak", "Samples of the test split are in the training set too", false,
                    [](Checked& c) {
                      return remarked(c, "leaks",
                                      "take them out of one of the two, or split by what such samples share");
                    }}),
    register_check(
        {"data.conflicts", "Equal samples have other targets", false,
         [](Checked& c) { return remarked(c, "conflicts", "look at these samples: one of the two is wrong"); }}),
    register_check({"data.not_finite", "Values are NaN or infinite", false,
                    [](Checked& c) { return remarked(c, "not_finite", "mend these places in the files"); }}),
    register_check({"data.one_class", "There is nothing to tell apart", false,
                    [](Checked& c) { return remarked(c, "one_class", "bring samples of another class"); }}),
    register_check({"data.unreadable", "Files are passed over", false,
                    [](Checked& c) {
                      auto all = remarked(c, "unreadable", "mend or remove these files");
                      for (Complaint& one : remarked(c, "not_read", "convert them, or remove them from the folder"))
                        all.push_back(std::move(one));
                      return all;
                    }}),
    register_check({"data.imbalance", "Some classes are rare, and nothing is done about it", false, imbalance}),
    register_check({"data.absent_class", "A class is missing in one of the splits", false, absent_classes}),
    register_check({"data.scale", "Inputs are far from 0 and 1", false, scale}),
};

}  // namespace
}  // namespace tenon::projects
