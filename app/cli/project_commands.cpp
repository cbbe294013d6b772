// tenon templates, new, copy, runs, metrics: what a project holds.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "app/cli/remarks.h"
#include "core/error.h"
#include "core/file.h"
#include "engine/formats/onnx/feed.h"
#include "engine/formats/python/reader.h"
#include "engine/templates/templates.h"
#include "engine/train/metric.h"
#include "engine/train/recipe.h"
#include "projects/copy.h"
#include "projects/model_import.h"
#include "projects/project.h"
#include "views/runs/run_groups.h"
#include "views/runs/runs_model.h"
#include "views/training/curve_axis.h"

namespace tenon::app {
namespace {

int copy(const Args& args) {
  catch_interrupts();
  Bar bar("copying");
  const int64_t bytes = projects::copy_project(args.word(0), args.word(1), false, bar.progress());
  bar.clear();
  if (args.json())
    print_json({{"project", args.word(0)}, {"copy", args.word(1)}, {"bytes", bytes}});
  else
    print(fmt::format("{}: a copy of {}, {}\n", args.word(1), args.word(0), bytes_text(bytes)));
  return 0;
}

int list_templates(const Args& args) {
  std::vector<std::vector<std::string>> rows = {{"TEMPLATE", "WHAT", "--data"}};
  for (const Template& t : templates()) {
    const auto& own = t.own_data;
    using Place = Template::OwnData::Place;
    const std::string place = own.place == Place::none ? "" : own.place == Place::file ? "FILE" : "DIR";
    if (args.json())
      print_json({{"name", t.name},
                  {"title", t.title},
                  {"data", place.empty() ? nlohmann::json() : nlohmann::json{{"place", place}, {"what", own.what}}},
                  {"model", t.model.to_json()},
                  {"recipe", t.recipe.to_json()}});
    rows.push_back({t.name, t.title, place.empty() ? "" : place + ": " + own.what});
  }
  if (!args.json()) print(table(rows));
  return 0;
}

/// Of a model that can be run.
int new_from_onnx(const Args& args, const std::vector<std::pair<std::string, std::string>>& settings) {
  for (const char* other : {"--template", "--data"})
    if (args.has(other)) throw Error::usage(std::string(other) + " goes without --from");
  const std::string file = args.text("--from");
  const std::vector<int64_t> sample = formats::parse_sizes(args.has("--shape") ? args.text("--shape") : "");
  catch_interrupts();
  Bar bar("importing");
  const projects::ModelImport made = projects::project_from_onnx(args.word(0), file, sample, settings, bar.progress());
  bar.clear();
  if (args.json()) {
    print_json({{"project", args.word(0)},
                {"model", file},
                {"weights", made.weights},
                {"nodes", made.nodes},
                {"layers", made.layers},
                {"op_layers", made.op_layers},
                {"difference", made.difference},
                {"notes", made.notes}});
    return 0;
  }
  print(fmt::format("{}: a project made from {}: {}\n", args.word(0), file, made.text()));
  for (const std::string& note : made.notes) print(note + "\n");
  print(
      fmt::format("Its weights are in {}; every run begins with them (init.from)\nChoose data and train it: tenon "
                  "train {} --set data.dataset=... --set data.dir=...\n",
                  made.weights, args.word(0)));
  return 0;
}

/// Of a model as PyTorch source.
int new_from_source(const Args& args, const std::vector<std::pair<std::string, std::string>>& settings) {
  for (const char* other : {"--template", "--data", "--shape"})
    if (args.has(other)) throw Error::usage(std::string(other) + " goes without a source in --from");
  const std::string file = args.text("--from");
  Beginning b = begin_empty();
  std::vector<std::string> notes;
  try {
    python::ReadModel read = python::read_model(read_file(file));
    b.model = std::move(read.model);
    notes = std::move(read.remarks);
  } catch (const Error& e) {
    throw e.in(file);
  }
  for (const auto& [key, text] : settings) b.recipe.set(key, text);
  for (const auto& [key, text] : settings) b.recipe.check_used(key);
  projects::Project::create(args.word(0), b.model, b.recipe.to_json());
  if (args.json()) {
    print_json({{"project", args.word(0)}, {"model", file}, {"layers", b.model.layers.size()}, {"notes", notes}});
    return 0;
  }
  print(fmt::format("{}: a project with the model of {}: {} layers\n", args.word(0), file, b.model.layers.size()));
  for (const std::string& note : notes) print(note + "\n");
  return 0;
}

int new_project(const Args& args) {
  const auto settings = pairs_of(args, "--set");
  if (args.text("--from").ends_with(".py")) return new_from_source(args, settings);
  if (args.has("--from")) return new_from_onnx(args, settings);
  if (args.has("--shape")) throw Error::usage("--shape goes with --from");
  if (!args.has("--template") && !args.has("--data")) {
    Beginning b = begin_empty();
    for (const auto& [key, text] : settings) b.recipe.set(key, text);
    for (const auto& [key, text] : settings) b.recipe.check_used(key);
    projects::Project::create(args.word(0), b.model, b.recipe.to_json());
    if (args.json())
      print_json({{"project", args.word(0)}, {"dataset", b.recipe.text("data.dataset")}});
    else
      print(args.word(0) + ": a project whose model has only an input\nBuild it: tenon " + args.word(0) + "\n");
    return 0;
  }
  const std::string data = args.has("--data") ? std::filesystem::absolute(args.text("--data")).string() : "";
  SuitedBeginning suited;
  if (args.has("--template")) {
    const Template& t = find_template(args.text("--template"));
    suited = {begin(t, data, args.word(0), settings), {t.name}};
  } else {
    suited = begin_for(data, settings);
  }
  const Beginning& b = suited.beginning;
  projects::Project::create(args.word(0), b.model, b.recipe.to_json());
  const std::string& name = suited.templates.front();
  if (args.json()) {
    nlohmann::json j = {{"project", args.word(0)}, {"template", name}, {"dataset", b.recipe.text("data.dataset")}};
    if (!b.note.empty()) j["note"] = b.note;
    if (!b.remarks.empty()) j["remarks"] = remarks_json(b.remarks);
    if (!args.has("--template")) j["begin_with"] = suited.templates;
    print_json(j);
    return 0;
  }
  if (!b.note.empty()) print(b.note + "\n");
  print(remarks_text(b.remarks));
  std::string others;
  if (!args.has("--template"))
    others = suited.templates.size() == 1
                 ? ", which suits these data"
                 : fmt::format(", which suits these data (so would {})",
                               fmt::join(suited.templates.begin() + 1, suited.templates.end(), ", "));
  print(fmt::format("{}: a project made from the template {}{}\nTrain it: tenon train {}\n", args.word(0), name, others,
                    args.word(0)));
  return 0;
}

nlohmann::json finite_or_null(double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(); }

void print_groups(const views::RunRows& rows, const views::RunField& field) {
  for (const views::RunGroup& g : views::groups_of(rows, field)) {
    nlohmann::json names = nlohmann::json::array(), metrics = nlohmann::json::object();
    for (const views::RunRow* r : g.runs) names.push_back(r->info.name);
    for (const views::RunField& f : views::result_fields(rows)) {
      if (f.kind != views::RunField::Kind::best) continue;
      const views::Spread s = views::spread_of(g, f.key);
      if (!s.best) continue;
      metrics[f.key] = {{"runs", s.values.size()},
                        {"mean", finite_or_null(s.mean())},
                        {"deviation", finite_or_null(s.deviation())},
                        {"best", finite_or_null(s.best->metrics.find(f.key)->best)},
                        {"best_run", s.best->info.name}};
    }
    print_json({{"field", field.text()}, {"value", g.value}, {"runs", names}, {"metrics", metrics}});
  }
}

/// Of the runs that a filter lists.
void delete_or_restore(projects::Project& project, const Args& args, const views::RunsModel& model) {
  if (!args.has("--filter"))
    throw Error::usage(args.has("--delete") ? "delete which runs?" : "bring back which runs?",
                       "Say so by --filter \"best.accuracy < 0.5\"; one run: tenon run PROJECT RUN --delete.");
  std::vector<int64_t> ids;
  std::vector<std::string> names;
  for (const auto& row : model.shown()) {
    if (row->info.status == "running" || row->info.status == "paused")
      throw Error::usage(fmt::format("run {} is being trained", row->info.name),
                         "Stop it first, or leave it out: --filter \"status != running\".");
    ids.push_back(row->info.id);
    names.push_back(row->info.name);
  }
  const bool deletes = args.has("--delete");
  if (deletes)
    project.delete_runs(ids);
  else
    project.undelete_runs(ids);
  if (args.json())
    print_json({{deletes ? "deleted" : "undeleted", names}});
  else
    print(fmt::format("{} {} {}\n", names.size(), names.size() == 1 ? "run" : "runs",
                      deletes ? "deleted; --undelete with the same filter brings them back" : "brought back"));
}

int runs(const Args& args) {
  const bool edits = args.has("--delete") || args.has("--undelete");
  const auto project = edits ? projects::Project::open(args.word(0)) : open_to_read(args.word(0));
  views::RunsModel model;
  model.set_rows(views::read_runs(
      *project, args.has("--deleted") || args.has("--undelete") ? project->deleted_runs() : project->runs()));
  if (args.has("--filter"))
    views::RunFilter(args.text("--filter"), model.fields());  // throws where the words are wrong
  model.set_filter(args.text("--filter"));
  if (edits) {
    delete_or_restore(*project, args, model);
    return 0;
  }
  if (args.has("--group")) {
    try {
      model.set_group(views::field_named(model.fields(), args.text("--group")));
    } catch (const Error& e) {
      throw Error::usage("--group says " + e.message(), e.hint());
    }
  }
  const int64_t baseline = args.has("--baseline") ? project->run(args.text("--baseline")).id : 0;
  model.set_baseline(baseline);
  if (args.json() && model.group()) {
    print_groups(model.shown(), *model.group());
    return 0;
  }
  if (args.json()) {
    for (const auto& row : model.shown()) {
      const projects::RunInfo& r = row->info;
      nlohmann::json metrics = nlohmann::json::object();
      for (size_t m = 0; m < row->metrics.size(); ++m) {
        const std::string& name = row->metrics.keys()[m];
        const views::MetricEnd& end = row->metrics.value(m);
        metrics[name]["last"] = finite_or_null(end.last);
        if (better(name) == 0) continue;
        metrics[name]["best"] = finite_or_null(end.best);
        metrics[name]["best_step"] = end.best_step;
        if (baseline) metrics[name]["beside_baseline"] = finite_or_null(model.beside_baseline(name, *row));
      }
      print_json({{"id", r.id},
                  {"name", r.name},
                  {"status", r.status},
                  {"created", r.created},
                  {"steps", r.steps},
                  {"total_steps", r.total_steps},
                  {"seconds", r.seconds},
                  {"best", r.best},
                  {"metrics", metrics},
                  {"tags", r.tags},
                  {"note", r.note},
                  {"error", r.error},
                  {"recipe", r.recipe}});
    }
    return 0;
  }
  const views::Table shown = model.table();
  std::vector<bool> right;
  auto rows = rows_of(shown, right);
  for (size_t i = 0; i < shown.rows.size() && !model.group(); ++i) {
    const auto error = project->run(shown.rows[i].selection.id).error;
    if (error.empty()) continue;
    if (rows[0].size() == shown.columns.size()) rows[0].emplace_back("WHY");
    rows[i + 1].push_back(error.substr(0, error.find('\n')));
  }
  if (model.rows().empty() && args.has("--deleted"))
    print(fmt::format("no run of {} is deleted\n", args.word(0)));
  else if (model.rows().empty())
    print(fmt::format("{} has no runs yet. Start one: tenon train {}\n", args.word(0), args.word(0)));
  else if (shown.rows.empty())
    print(fmt::format("none of the {} runs of {} fits the filter\n", model.rows().size(), args.word(0)));
  else
    print(table(rows, right));
  return 0;
}

/// What the points of a run stand over.
views::CurveScale scale_of(const Args& args, const projects::RunInfo& run) {
  const std::string word = args.text("--over", "time");
  const auto over = views::parse_over(word);
  if (!over) throw Error::usage(fmt::format("--over {}: there is step, epoch, time and samples", word));
  const views::CurveScale scale{*over, epoch_of(run)};
  if (!scale.knows(std::max<int64_t>(run.steps, 1)))
    throw Error(fmt::format("run {} does not tell how its steps count up to {}: it was made before that was kept",
                            run.name, *over == views::Over::epoch ? "epochs" : "samples"),
                "Use --over step or --over time; a run that is resumed tells it from then on.");
  return scale;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

int metrics(const Args& args) {
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = project->run(args.word(1));
  const projects::EpochLength epoch = epoch_of(run);
  std::vector<std::string> names = project->metric_names(run.id);
  const bool one = args.words() > 2;
  if (one) {
    if (std::find(names.begin(), names.end(), args.word(2)) == names.end()) {
      const std::string near = near_names(args.word(2), names.data(), names.size());
      throw Error::usage(fmt::format("run {} has no metric \"{}\"", run.name, args.word(2)),
                         near.empty() ? fmt::format("It has: {}", fmt::join(names, ", ")) : near);
    }
    names = {args.word(2)};
  }
  const views::CurveScale scale = scale_of(args, run);
  const std::string place = scale.over == views::Over::time ? "seconds" : views::over_name(scale.over);
  const auto at = [&](const projects::MetricPoint& p) {
    return scale.over == views::Over::time ? p.wall : scale.of(p.step);
  };
  const std::string head = scale.over == views::Over::step ? "step,value\n" : "step," + place + ",value\n";
  if (args.has("--csv")) print(one ? head : "name," + head);
  std::vector<std::vector<std::string>> rows = {{"METRIC", "POINTS", "LAST", "MIN", "MAX", "NOT FINITE"}};
  if (one) rows = {{"STEP", upper(place), args.word(2)}};
  const bool steps = scale.over == views::Over::step;
  if (one && steps) rows = {{"STEP", args.word(2)}};
  for (const std::string& name : names) {
    const auto points = project->metric(run.id, name);
    double min = INFINITY, max = -INFINITY;
    int64_t bad = 0;
    std::string lines;
    for (const projects::MetricPoint& p : points) {
      if (args.has("--csv")) {
        lines +=
            fmt::format("{}{},{}{}\n", one ? "" : name + ",", p.step, steps ? "" : fmt::format("{},", at(p)), p.value);
      } else if (args.json()) {
        nlohmann::json j = {{"name", name}, {"step", p.step}, {"seconds", p.wall}, {"value", p.value}};
        if (const auto epochs = epoch.epochs_after(p.step)) j["epoch"] = *epochs;
        if (const auto samples = epoch.samples_after(p.step)) j["samples"] = *samples;
        print_json(j);
      } else if (one && steps) {
        rows.push_back({count_text(p.step), value_text(p.value)});
      } else if (one) {
        const bool whole = scale.over == views::Over::samples;
        rows.push_back({count_text(p.step), whole ? count_text(std::llround(at(p))) : fmt::format("{:.4f}", at(p)),
                        value_text(p.value)});
      }
      if (std::isfinite(p.value)) {
        min = std::min(min, p.value);
        max = std::max(max, p.value);
      } else {
        ++bad;
      }
    }
    if (args.has("--csv")) print(lines);
    if (!one && !points.empty())
      rows.push_back({name, count_text(static_cast<int64_t>(points.size())), value_text(points.back().value),
                      value_text(min), value_text(max), count_text(bad)});
  }
  if (!args.has("--csv") && !args.json()) print(table(rows, {one, true, true, true, true, true}));
  return 0;
}

const bool registered_project_commands[] = {
    register_command({"templates", "", 0, 0, {kJson}, "lists the model and recipe templates", list_templates}),
    register_command(
        {"new",
         "PROJECT [--template NAME | --data PATH | --from MODEL]",
         1,
         1,
         {{"--template", "NAME", "what to start from (a model with only an input); `tenon templates` lists them"},
          {"--from", "FILE",
           "an ONNX model, a program of torch.export (.pt2) or TorchScript (.pt): its layers, and its weights in a "
           "file beside the "
           "project; "
           "or a model as PyTorch source (.py)"},
          {"--shape", "3x224x224", "with --from: the sizes of one sample, where the file leaves them open"},
          {"--data", "PATH", "the data: a folder or a file; without a template the one that suits them best is taken"},
          {"--set", "KEY=VALUE", "a key of the recipe; may be repeated"},
          kJson},
         "makes a project, from a template, for data of your own, from a model of another program, or empty",
         new_project}),
    register_command({"copy",
                      "PROJECT COPY",
                      2,
                      2,
                      {kJson},
                      "copies a project as it is at this moment, also while it is trained",
                      copy}),
    register_command({"runs",
                      "PROJECT",
                      1,
                      1,
                      {{"--filter", "WORDS", "only runs that fit: \"lr > 0.001 and best.accuracy >= 0.9\""},
                       {"--group", "FIELD", "a row for all runs that have this in common: lr, status, seed"},
                       {"--baseline", "RUN", "stands first; every other run says by how much its best is another"},
                       {"--delete", "", "those that the filter lists: out of every list; their steps stay in the file"},
                       {"--undelete", "", "of the deleted ones, those that the filter lists are brought back"},
                       {"--deleted", "", "those that were deleted: tenon run PROJECT RUN --undelete brings one back"},
                       kJson},
                      "lists the runs of a project: what they were told where they differ, and their results",
                      runs}),
    register_command(
        {"metrics",
         "PROJECT RUN [NAME]",
         2,
         3,
         {{"--csv", "", "every point, comma-separated"},
          {"--over", "AXIS", "what stands beside each step: time (seconds), epoch, samples; step: nothing"},
          kJson},
         "shows the metrics of a run, every point",
         metrics}),
};

}  // namespace
}  // namespace tenon::app
