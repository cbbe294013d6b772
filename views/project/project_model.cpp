#include "views/project/project_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "views/shared/format.h"

namespace tenon::views {

using projects::CheckpointInfo;
using projects::RunInfo;
using projects::RunStatus;

bool ProjectModel::Node::same_line(const Node& o) const {
  return icon == o.icon && text == o.text && note == o.note && tip == o.tip && mark == o.mark &&
         selection.same(o.selection);
}
bool ProjectModel::Node::operator==(const Node& o) const { return same_line(o) && children == o.children; }

ProjectModel::Contents ProjectModel::read(projects::Project& project) {
  Contents c;
  c.model = project.model();
  c.runs = project.runs();
  for (const RunInfo& r : c.runs) c.checkpoints.push_back(project.checkpoints(r.id));
  c.artifacts = project.artifacts();
  return c;
}

void ProjectModel::set(Contents contents) { contents_ = std::move(contents); }

void ProjectModel::set_status(const RunStatus& status) {
  status_ = status;
  live_ = true;
}

const RunInfo* ProjectModel::run(int64_t id) const {
  for (const RunInfo& r : contents_.runs)
    if (r.id == id) return &r;
  return nullptr;
}
const CheckpointInfo* ProjectModel::checkpoint(int64_t id) const {
  for (const auto& list : contents_.checkpoints)
    for (const CheckpointInfo& c : list)
      if (c.id == id) return &c;
  return nullptr;
}

static Ink mark_of(const std::string& status) {
  if (status == "running") return Ink::accent;
  if (status == "paused") return Ink::warning;
  if (status == "failed") return Ink::bad;
  return status == "finished" ? Ink::good : Ink::secondary;
}

std::vector<ProjectModel::Node> ProjectModel::tree() const {
  std::vector<Node> out;
  Node model{"model",
             "Model",
             contents_.model.name,
             fmt::format("{} layers, {} wires", contents_.model.layers.size(), contents_.model.wires.size()),
             Ink::none,
             {},
             {}};
  for (const LayerSpec& l : contents_.model.layers)
    model.children.push_back({"layer", l.name, l.type, {}, Ink::none, Selection::module(l.name, "project"), {}});
  out.push_back(std::move(model));

  Node runs{"runs", "Runs", std::to_string(contents_.runs.size()), {}, Ink::none, {}, {}};
  for (size_t i = contents_.runs.size(); i-- > 0;) {  // the newest first
    RunInfo r = contents_.runs[i];
    if (live_ && status_.run == r.id) {
      static constexpr const char* kStates[] = {"running", "running", "paused", "finished", "stopped", "failed"};
      r.status = kStates[static_cast<int>(status_.state)];
      r.steps = status_.step;
      r.total_steps = status_.total_steps;
    }
    Node node{"run", r.name, r.status, {}, mark_of(r.status), Selection::run(r.id, "project"), {}};
    node.note =
        r.status == "running" || r.status == "paused"
            ? fmt::format("{}{}", r.status == "paused" ? "paused " : "",
                          r.total_steps
                              ? format_percent(static_cast<double>(r.steps) / static_cast<double>(r.total_steps))
                              : "")
            : r.status;
    if (r.status != "running" && r.status != "paused" && r.best.is_object() && r.best.contains("value") &&
        r.best["value"].is_number())
      node.note = (r.status == "finished" ? "" : r.status + "  ") +
                  format_metric(r.best.value("metric", std::string()), r.best["value"].get<double>());
    node.tip = fmt::format("{}: {}, step {} of {}, {} of training", r.name, r.status, format_grouped(r.steps),
                           format_grouped(r.total_steps), format_seconds(r.seconds));
    if (!r.error.empty()) node.tip += "\n" + r.error;
    for (size_t k = i < contents_.checkpoints.size() ? contents_.checkpoints[i].size() : 0; k-- > 0;) {
      const CheckpointInfo& c = contents_.checkpoints[i][k];
      node.children.push_back(
          {c.best ? "best" : "checkpoint",
           fmt::format("step {}", format_grouped(c.step)),
           c.best ? "best  " + format_bytes(static_cast<double>(c.bytes)) : format_bytes(static_cast<double>(c.bytes)),
           fmt::format("{} of tensors, {} added to the file, {}", format_bytes(static_cast<double>(c.bytes)),
                       format_bytes(static_cast<double>(c.stored_bytes)), c.created),
           Ink::none,
           Selection::checkpoint(c.id, "project"),
           {}});
    }
    runs.children.push_back(std::move(node));
  }
  out.push_back(std::move(runs));

  for (auto [kind, title, icon] : {std::tuple{"trace", "Traces", "timeline"}, std::tuple{"memory", "Memory", "memory"},
                                   std::tuple{"anomaly", "Anomalies", "nan"}, std::tuple{"export", "Exports", "export"},
                                   std::tuple{"note", "Notes", "log"}}) {
    Node group{icon, title, {}, {}, Ink::none, {}, {}};
    for (const auto& a : contents_.artifacts)
      if (a.kind == kind) {
        Selection s = a.step > 0 ? Selection::step(a.step, "project") : Selection{};
        group.children.push_back({icon,
                                  a.name,
                                  format_bytes(static_cast<double>(a.bytes)),
                                  fmt::format("step {}, {}", format_grouped(a.step), a.created),
                                  Ink::none,
                                  s,
                                  {}});
      }
    group.note = std::to_string(group.children.size());
    if (!group.children.empty()) out.push_back(std::move(group));
  }
  return out;
}

}  // namespace tenon::views
