#include "views/project/project_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "projects/finish.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using projects::CheckpointInfo;
using projects::RunInfo;

bool ProjectModel::Node::same_line(const Node& o) const {
  return icon == o.icon && text == o.text && note == o.note && brief == o.brief && tip == o.tip && mark == o.mark &&
         selection.same(o.selection);
}
bool ProjectModel::Node::operator==(const Node& o) const { return same_line(o) && children == o.children; }

static std::string state_text(const RunInfo& r) { return state_word(projects::status_text(r)); }

std::vector<ProjectModel::Node> ProjectModel::tree(const ProjectContents& contents) {
  std::vector<Node> out;
  Node model{"model",
             tr("Model"),
             contents.model.name,
             tr("{} layers, {} wires", contents.model.layers.size(), contents.model.wires.size()),
             Ink::none,
             {},
             {}};
  for (const LayerSpec& l : contents.model.layers)
    model.children.push_back({"layer", l.name, l.type, {}, Ink::none, Selection::module(l.name, "project"), {}});
  out.push_back(std::move(model));

  Node runs{"runs", tr("Runs"), std::to_string(contents.runs.size()), {}, Ink::none, {}, {}};
  for (size_t i = contents.runs.size(); i-- > 0;) {  // the newest first
    const RunInfo& r = contents.runs[i];
    const bool paused = r.status == "paused", active = paused || r.status == "running";
    Node node{paused ? "pause" : "run",        r.name, state_text(r), {}, ink_of_state(r.status),
              Selection::run(r.id, "project"), {}};
    if (active && r.total_steps)
      node.brief = format_percent(static_cast<double>(r.steps) / static_cast<double>(r.total_steps));
    else if (!active && r.best.is_object() && r.best.contains("value") && r.best["value"].is_number())
      node.brief = format_metric(r.best.value("metric", std::string()), r.best["value"].get<double>());
    if (!node.brief.empty())
      node.note = r.status == "running" || projects::status_text(r) == "finished" ? node.brief
                                                                                  : state_text(r) + "  " + node.brief;
    node.tip = tr("{}: {}, step {} of {}, {} of training", r.name, state_text(r), format_grouped(r.steps),
                  format_grouped(r.total_steps), format_seconds(r.seconds));
    if (!r.error.empty()) node.tip += "\n" + r.error;
    for (size_t k = i < contents.checkpoints.size() ? contents.checkpoints[i].size() : 0; k-- > 0;) {
      const CheckpointInfo& c = contents.checkpoints[i][k];
      const std::string bytes = format_bytes(static_cast<double>(c.bytes)),
                        stored = format_bytes(static_cast<double>(c.stored_bytes));
      node.children.push_back(
          {c.best ? "best" : "checkpoint",
           tr("step {}", format_grouped(c.step)),
           bytes,
           c.best ? tr("The best of its run: {} of tensors, {} added to the file, {}", bytes, stored, c.created)
                  : tr("{} of tensors, {} added to the file, {}", bytes, stored, c.created),
           Ink::none,
           Selection::checkpoint(c.id, "project"),
           {}});
    }
    runs.children.push_back(std::move(node));
  }
  out.push_back(std::move(runs));

  for (auto [kind, title, icon] :
       {std::tuple{"trace", tr_later("Traces"), "timeline"}, std::tuple{"memory", tr_later("Memory"), "memory"},
        std::tuple{"anomaly", tr_later("Anomalies"), "nan"}, std::tuple{"export", tr_later("Exports"), "export"},
        std::tuple{"note", tr_later("Notes"), "log"}}) {
    Node group{icon, tr(title), {}, {}, Ink::none, {}, {}};
    for (const auto& a : contents.artifacts)
      if (a.kind == kind) {
        Selection s = a.step > 0 ? Selection::step(a.step, "project") : Selection{};
        group.children.push_back({icon,
                                  a.name,
                                  format_bytes(static_cast<double>(a.bytes)),
                                  tr("step {}, {}", format_grouped(a.step), a.created),
                                  Ink::none,
                                  s,
                                  {}});
      }
    group.note = std::to_string(group.children.size());
    if (!group.children.empty()) out.push_back(std::move(group));
  }
  return out;
}

ProjectModel::Node ProjectModel::opened(const std::vector<Document>& documents) {
  Node group{"project", tr("Opened"), std::to_string(documents.size()), {}, Ink::none, {}, {}};
  for (const Document& d : documents) {
    const DocumentNote note = note_of(d);
    group.children.push_back({note.icon,
                              d.title,
                              format_bytes(note.bytes),
                              d.path + "\n" + note.holds,
                              Ink::none,
                              Selection::of_document(d.id, "project"),
                              {}});
  }
  return group;
}

}  // namespace tenon::views
