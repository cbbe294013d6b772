// The page of a report.
#include "views/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/version.h"
#include "engine/data/dataset.h"
#include "engine/formats/versions.h"
#include "engine/train/metric.h"
#include "projects/finish.h"
#include "projects/versions.h"
#include "views/report/html_page.h"
#include "views/results/results_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/scene_svg.h"
#include "views/shared/text_widths.h"
#include "views/training/training_model.h"

namespace tenon::views {

using projects::Results;

namespace {
constexpr float kPageWidth = 920;
constexpr size_t kManyClasses = 40;

Table::Cell words_cell(std::string text, Ink mark = Ink::none) { return {std::move(text), 0, {}, mark}; }
Table::Cell count_cell(int64_t n) { return Table::Cell::number(static_cast<double>(n), format_grouped(n)); }

void tell_summary(HtmlPage& page, const RunReport& r) {
  const Evaluation& e = r.results.evaluation;
  const std::string total = format_grouped(r.run.total_steps);
  page.lead(fmt::format("{} · step {} of {} · {}", r.project, format_grouped(r.step), total, r.run.status));
  std::vector<std::pair<std::string, std::string>> facts = {{"Model", r.run.model.name}, {"Begun", r.run.created}};
  facts.emplace_back("Trained",
                     fmt::format("{} steps in {}", format_grouped(r.run.steps), format_seconds(r.run.seconds)));
  facts.emplace_back("Test loss", format_value(e.loss));
  for (const Judgement& j : e.judgements) {
    std::string title = metric_words("test_" + j.name);
    title[0] = 'T';
    facts.emplace_back(title, format_metric(j.name, j.value));
  }
  if (const double area = r.results.auroc(); !std::isnan(area)) {
    facts.emplace_back("AUROC", format_area(area));
    facts.emplace_back("Average precision", format_area(r.results.average_precision()));
  }
  if (const double error = r.results.calibration_error(); !std::isnan(error))
    facts.emplace_back("Calibration error", fmt::format("{:.2f} %", 100 * error));
  if (r.run.best.is_object() && r.run.best.contains("step"))
    facts.emplace_back("Best step", fmt::format("{}, by {}", format_grouped(r.run.best.at("step").get<int64_t>()),
                                                r.run.best.value("metric", std::string("its evaluation"))));
  if (!r.run.error.empty()) facts.emplace_back("Ended", r.run.error);
  if (!r.run.tags.empty()) {
    std::string tags;
    for (const std::string& t : r.run.tags) tags += (tags.empty() ? "" : ", ") + t;
    facts.emplace_back("Tags", tags);
  }
  if (!r.run.note.empty()) facts.emplace_back("Note", r.run.note);
  page.facts(facts);
}

void tell_model(HtmlPage& page, const RunReport& r) {
  page.section("model", "Model");
  Table t;
  t.columns = {{"Layer"},
               {"Type"},
               {"Settings"},
               {"Output", false, "at the recipe's batch"},
               {"Parameters", true},
               {"FLOP", true, "of one forward pass at the recipe's batch"}};
  int64_t parameters = 0;
  double flops = 0;
  for (const LayerReport& l : r.layers) {
    const LayerSpec* spec = r.run.model.find(l.layer);
    std::string settings;
    if (spec)
      for (const Attr& a : spec->attrs) settings += (settings.empty() ? "" : ", ") + a.name + " " + attr_text(a.value);
    std::string outputs;
    for (const std::string& o : l.outputs) outputs += (outputs.empty() ? "" : ", ") + o;
    t.rows.push_back(
        {{words_cell(l.layer), words_cell(spec ? spec->type : ""), words_cell(settings),
          words_cell(l.error.empty() ? outputs : l.error, l.error.empty() ? Ink::none : Ink::bad),
          count_cell(l.parameters), Table::Cell::number(l.flops, l.flops > 0 ? format_flops(l.flops) : "–")},
         {}});
    parameters += l.parameters;
    flops += l.flops;
  }
  t.rows.push_back(
      {{words_cell("All"), {}, {}, {}, count_cell(parameters), Table::Cell::number(flops, format_flops(flops))}, {}});
  std::vector<bool> loud(t.rows.size());
  loud.back() = true;
  page.text(fmt::format("{}: {} layers, {} parameters, at a batch of {}.", r.run.model.name, r.layers.size(),
                        format_grouped(parameters), format_grouped(r.batch)));
  page.table(t, loud);
}

void tell_recipe(HtmlPage& page, const RunReport& r) {
  page.section("recipe", "Recipe");
  Table set, rest;
  set.columns = {{"Key"}, {"Value"}, {"Default"}, {"What"}};
  rest.columns = {{"Key"}, {"Value"}, {"What"}};
  for (const AttrDef& k : r.recipe.used_keys()) {
    const AttrValue &value = r.recipe.at(k.name), &usual = r.recipe.fallback(k.name);
    if (value == usual)
      rest.rows.push_back({{words_cell(k.name), words_cell(attr_text(value)), words_cell(k.help)}, {}});
    else
      set.rows.push_back(
          {{words_cell(k.name), words_cell(attr_text(value)), words_cell(attr_text(usual)), words_cell(k.help)}, {}});
  }
  page.text(set.rows.empty()       ? "Every key has its default."
            : set.rows.size() == 1 ? "One key differs from its default:"
                                   : fmt::format("{} keys differ from their defaults:", set.rows.size()));
  if (!set.rows.empty()) page.table(set);
  page.folded(fmt::format("The {} keys that have their defaults", rest.rows.size()), rest);
  if (r.run.changes.empty() && r.surgery.empty()) return;
  page.heading("Changed while it trained");
  Table changes;
  changes.columns = {{"After step", true}, {"What"}};
  for (const TrainingModel::Change& c : TrainingModel::changes_of(r.run, r.surgery))
    changes.rows.push_back({{count_cell(c.step), words_cell(c.text)}, {}});
  page.table(changes);
}

void tell_data(HtmlPage& page, const RunReport& r) {
  page.section("data", "Data");
  std::vector<std::pair<std::string, std::string>> facts = {
      {"Data set", r.recipe.text("data.dataset")},
      {"Task", r.results.task},
      {"Training samples", format_grouped(r.train_samples)},
      {"Test samples", format_grouped(r.results.evaluation.samples)},
      {"Input", r.input},
      {"Target", r.target}};
  if (r.targets > 1) facts.emplace_back("Targets of a sample", format_grouped(r.targets));
  if (r.classes > 0) facts.emplace_back("Classes", format_grouped(r.classes));
  if (!r.results.classes.empty() && r.results.classes.size() <= kManyClasses) {
    std::string names;
    for (const std::string& c : r.results.classes) names += (names.empty() ? "" : ", ") + c;
    facts.emplace_back("Their names", names);
  }
  page.facts(facts);
}

void tell_curves(HtmlPage& page, const RunReport& r) {
  page.section("curves", "Curves");
  if (r.metrics.empty()) return page.text("Nothing was recorded.");
  TrainingModel m;
  m.set_run(r.run.name, r.run.total_steps);
  m.set_still(true);
  m.set_series(r.metrics);
  m.set_changes(TrainingModel::changes_of(r.run, r.surgery));
  m.set_marks(TrainingModel::marks_of(r.watch_hits));
  m.fit();
  const size_t plots = m.groups().size(), rows = plots > 2 ? (plots - 1 + 1) / 2 : plots;
  const float height = plots > 2 ? 240 + 170 * static_cast<float>(rows) : 260;
  page.figure(to_inline_svg(m.frame({kPageWidth, height}), "Curves of " + r.run.name, "curves-"),
              "Every metric over the steps; the smoothed line lies over the raw one. Red marks on an axis are values "
              "that are not finite.");
  page.table(m.table());
  if (m.marks().empty()) return;
  page.heading("Marked by watches");
  Table marks;
  marks.columns = {{"Step", true}, {"What was seen"}};
  for (const TrainingModel::Mark& mark : m.marks())
    marks.rows.push_back({{count_cell(mark.step), words_cell(mark.text)}, {}});
  page.table(marks);
}

std::string images_html(const SampleSight& s) {
  std::string out;
  auto add = [&](const data::Image& image, const char* what) {
    if (!image.pixels.empty())
      out += fmt::format("<img src=\"{}\" alt=\"{}\" title=\"{}\">", data_uri(image), what, what);
  };
  add(s.input, "input");
  add(s.target, "truth");
  add(s.answer, "answer");
  return out;
}

void tell_worst(HtmlPage& page, const RunReport& r, const Table& listed) {
  page.heading("The samples with the largest loss");
  bool seen = false, wide = false;
  for (const auto& w : r.worst) {
    seen |= !w.sight.input.pixels.empty() || !w.sight.at.empty();
    wide |= !w.sight.target.pixels.empty() || !w.sight.answer.pixels.empty() || !w.sight.at.empty();
  }
  if (!seen) return page.table(listed);
  page.raw(wide ? "<div class=\"samples wide\">\n" : "<div class=\"samples\">\n");
  for (const auto& w : r.worst) {
    std::string html = images_html(w.sight);
    if (!w.sight.at.empty())
      html += fmt::format("<div class=\"said mono\">{}<mark>{}</mark>{}</div>", xml_escaped(w.sight.before),
                          xml_escaped(w.sight.at), xml_escaped(w.sight.after));
    std::string outcome = outcome_text(r.results, w.prediction);
    if (!w.sight.at.empty()) outcome = "guess: " + w.sight.guess;
    if (!w.sight.target.pixels.empty()) outcome = "input, truth, answer";
    if (w.sight.target.pixels.empty() && !w.sight.answer.pixels.empty()) outcome = "input, answer";
    page.raw(fmt::format("<figure>{}<figcaption>{}<br>sample {}<br>loss {}</figcaption></figure>\n", html,
                         xml_escaped(outcome), format_grouped(w.prediction.row), format_value(w.prediction.loss)));
  }
  page.raw("</div>\n");
}

/// Of many classes the table is opened by a press.
void tell_classes(HtmlPage& page, const Table& t) {
  if (t.rows.size() > kManyClasses) return page.folded(fmt::format("All {} rows", t.rows.size()), t);
  page.table(t);
}

void tell_results(HtmlPage& page, const RunReport& r) {
  page.section("results", "Results");
  ResultsModel m;
  m.set_results(std::make_shared<const Results>(r.results));
  page.text(projects::evaluation_text(r.run, r.step, r.results.evaluation));
  const bool classes = !r.results.classes.empty();
  page.figure(to_inline_svg(m.frame({kPageWidth, classes ? 520.f : 240.f}), "Where it errs", "errors-"),
              !classes ? "How many samples have which loss."
              : std::isnan(r.results.calibration_error())
                  ? "Rows are what the targets are, columns what they were taken for; how many samples have which loss."
                  : "Rows are what the targets are, columns what they were taken for; how often it was right over how "
                    "sure it was; how many samples have which loss.");
  tell_classes(page, m.table());
  if (!r.results.rankings.empty()) {
    page.heading("ROC and precision–recall");
    m.set_page(ResultsModel::Page::curves);
    page.figure(
        to_inline_svg(m.frame({kPageWidth, 400}), "ROC and precision–recall curves", "ranking-"),
        "Each class against the rest, over every threshold; the thick curve is that of the class named over it.");
    tell_classes(page, m.ranking());
  }
  Table listed = m.samples();
  if (listed.rows.size() > r.worst.size()) listed.rows.resize(r.worst.size());
  tell_worst(page, r, listed);
}

void tell_checkpoints(HtmlPage& page, const RunReport& r) {
  page.section("checkpoints", "Checkpoints");
  if (r.checkpoints.empty()) return page.text("The run has none.");
  Table t;
  t.columns = {{"Step", true}, {"Written"}, {"Tensors", true}, {"Added to the file", true}, {""}};
  for (const projects::CheckpointInfo& c : r.checkpoints)
    t.rows.push_back(
        {{count_cell(c.step), words_cell(c.created),
          Table::Cell::number(static_cast<double>(c.bytes), format_bytes(static_cast<double>(c.bytes))),
          Table::Cell::number(static_cast<double>(c.stored_bytes), format_bytes(static_cast<double>(c.stored_bytes))),
          words_cell(c.best ? "the best" : "")},
         {}});
  page.table(t);
}

/// As a shell takes it.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string("-_./=:,+@%").find(static_cast<char>(c)) != std::string::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void tell_reproduction(HtmlPage& page, const RunReport& r) {
  page.section("again", "To get it again");
  std::vector<std::pair<std::string, std::string>> facts = {{"Tenon", TENON_VERSION}};
  for (const auto& [name, version] : formats::library_versions()) facts.emplace_back(name, version);
  for (const auto& [name, version] : projects::library_versions()) facts.emplace_back(name, version);
  facts.emplace_back("Device", Recipe::from_json(r.run.recipe).text("device"));
  facts.emplace_back("Threads", fmt::format("{}; their number changes no bit", r.threads));
  facts.emplace_back("State after the step", "SHA-256 " + r.state_digest);
  facts.emplace_back("Model", "SHA-256 " + r.model_digest);
  facts.emplace_back("Recipe", "SHA-256 " + r.recipe_digest);
  page.facts(facts);
  const std::string run = quoted(r.project) + " " + quoted(r.run.name), step = std::to_string(r.step);
  page.text("The state, its figures and this page, from the project file:");
  page.commands({"tenon digest " + run + " --step " + step,
                 "tenon eval " + run + " --checkpoint " + step +
                     (r.results.classes.empty() ? "" : " --classes --confusion") +
                     (r.results.rankings.empty() ? "" : " --roc"),
                 "tenon report " + run + " --checkpoint " + step + " -o report.html"});
  if (r.model_changed)
    return page.text(
        "The project's model is another by now than the one this run was begun with, so a new run of the "
        "project would be another run.");
  std::string train = "tenon train " + quoted(r.project);
  if (r.run.branch) train += " --from " + quoted(fmt::format("{}@{}", r.run.branch.name, r.run.branch.step));
  if (!r.surgery.empty()) train += " --project-model";
  train += " --run " + quoted(r.run.name + "-again");
  for (const KeyDifference& d : r.from_project)
    if (!d.to.empty()) train += " --set " + quoted(d.key + "=" + d.to);
  page.text(r.run.changes.empty()
                ? "The same training anew, step by step to the same bits:"
                : "The same training anew, step by step to the same bits up to the first change of its recipe:");
  page.commands({train});
}
}  // namespace

std::string report_html(const RunReport& r) {
  const AverageTextWidths average;
  const EnglishTexts english;
  HtmlPage page(r.run.name);
  tell_summary(page, r);
  tell_model(page, r);
  tell_recipe(page, r);
  tell_data(page, r);
  tell_curves(page, r);
  tell_results(page, r);
  tell_checkpoints(page, r);
  tell_reproduction(page, r);
  return page.finish();
}

}  // namespace tenon::views
