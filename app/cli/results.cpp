#include "app/cli/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/cli/output.h"
#include "app/cli/remarks.h"
#include "core/error.h"
#include "views/results/results_model.h"

namespace tenon::app {

using projects::Prediction;
using projects::Results;

namespace {
void tell_classes(const Args& args, const Results& r, const views::ResultsModel& model) {
  if (!args.json()) return print_table(model.table());
  const auto all = r.per_class();
  for (size_t c = 0; c < all.size(); ++c)
    print_json({{"class", r.classes[c]},
                {"samples", all[c].samples},
                {"guessed", all[c].guessed},
                {"right", all[c].right},
                {"precision", all[c].precision()},
                {"recall", all[c].recall()},
                {"f1", all[c].f1()}});
}

void tell_ranking(const Args& args, const Results& r, const views::ResultsModel& model) {
  if (const std::string why = r.why_unranked(); !why.empty()) throw Error::usage(why);
  if (r.unranked)
    std::fputs(fmt::format("{} targets were left out: their scores are no numbers\n", count_text(r.unranked)).c_str(),
               stderr);
  if (!args.json()) return print_table(model.ranking());
  for (size_t c : model.ranked_classes()) {
    const Ranking& k = r.rankings[c];
    nlohmann::json points = nlohmann::json::array();
    for (const auto& p : k.points)
      points.push_back({p.threshold, k.true_positive_rate(p), k.false_positive_rate(p), p.precision()});
    print_json({{"class", r.classes[c]},
                {"auroc", k.auroc},
                {"average_precision", k.average_precision},
                {"samples", k.positives},
                {"others", k.negatives},
                {"columns", {"threshold", "true_positive_rate", "false_positive_rate", "precision"}},
                {"points", points}});
  }
}

void tell_embedding(const Args& args, const Results& r, views::ResultsModel& model) {
  if (const std::string why = r.why_unembedded(); !why.empty()) throw Error::usage(why);
  const projects::Embedding& e = r.embedding;
  const projects::Placement* by = nullptr;
  for (const projects::Placement& p : projects::placements())
    if (args.has(std::string("--") + p.name)) by = &p;
  if (by) {
    Bar bar("placing");
    model.set_places(model.results(), by->name,
                     std::make_shared<const views::ResultsModel::Places>(by->place(e, bar.progress())));
    model.place_by(by->name);
    bar.clear();
  }
  const std::string how = by ? fmt::format("placed by {}: {}", by->title, by->reads)
                             : fmt::format("along the two directions with {:.0f} % and {:.0f} % of their variance",
                                           100 * e.plane.share[0], 100 * e.plane.share[1]);
  if (!args.json()) {
    print(fmt::format("\nwhat {} reads: {} numbers a sample, {}\n", e.module, count_text(e.width), how));
    return print_table(model.embedding());
  }
  nlohmann::json head = {{"module", e.module}, {"numbers", e.width}, {"method", by ? by->name : "pca"}};
  if (!by) head["variance"] = {e.plane.share[0], e.plane.share[1]};
  print_json(head);
  const views::ResultsModel::Places& at = model.places();
  for (size_t i = 0; i < std::min(at.size(), r.predictions.size()); ++i)
    print_json({{"sample", r.predictions[i].row},
                {"truth", r.predictions[i].truth},
                {"guess", r.predictions[i].guess},
                {"at", {at[i][0], at[i][1]}}});
}

void tell_confusion(const Args& args, const Results& r) {
  if (r.classes.empty())
    throw Error::usage(fmt::format("there is no confusion of classes: the task is {}", r.task),
                       "--worst lists the samples with the largest loss.");
  std::vector<std::vector<std::string>> rows = {{"TRUTH \\ GUESS"}};
  for (const std::string& name : r.classes) rows[0].push_back(name);
  for (size_t t = 0; t < r.classes.size(); ++t) {
    rows.push_back({r.classes[t]});
    nlohmann::json line = nlohmann::json::array();
    for (size_t g = 0; g < r.classes.size(); ++g) {
      rows.back().push_back(std::to_string(r.count(t, g)));
      line.push_back(r.count(t, g));
    }
    if (args.json()) print_json({{"truth", r.classes[t]}, {"guessed", line}});
  }
  std::vector<bool> right(rows[0].size(), true);
  right[0] = false;
  if (!args.json()) print("\n" + table(rows, right));
}

void tell_worst(const Args& args, const Results& r, const views::ResultsModel& model) {
  const auto n = static_cast<size_t>(args.integer("--worst", 20, 1));
  if (!args.json()) {
    views::Table t = model.samples();
    if (t.rows.size() > n) t.rows.resize(n);
    return print_table(t);
  }
  std::vector<size_t> order = r.worst_first();
  order.resize(std::min(order.size(), n));
  for (size_t i : order) {
    const Prediction& p = r.predictions[i];
    nlohmann::json j = {{"sample", p.row}, {"loss", p.loss}};
    if (r.data) j["source"] = source_json(r.data->source(p.row));
    if (p.truth >= 0) j.update({{"truth", p.truth}, {"guess", p.guess}, {"sure", p.confidence}});
    print_json(j);
  }
}
}  // namespace

void tell_results(const Args& args, const Results& results) {
  views::ResultsModel model;
  model.set_results(std::make_shared<const Results>(results));
  if (args.has("--classes")) tell_classes(args, results, model);
  if (args.has("--roc")) tell_ranking(args, results, model);
  if (args.has("--embedding") || args.has("--tsne") || args.has("--umap")) tell_embedding(args, results, model);
  if (args.has("--confusion")) tell_confusion(args, results);
  if (args.has("--worst")) tell_worst(args, results, model);
}

}  // namespace tenon::app
