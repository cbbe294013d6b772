// Sub-models and shared weights in the builder.
#include <algorithm>
#include <utility>

#include "engine/spec/own_values.h"
#include "engine/spec/submodel.h"
#include "views/builder/builder_ink.h"
#include "views/builder/builder_model.h"
#include "views/builder/submodel_edits.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

bool BuilderModel::make_submodel(const std::string& name) {
  ModelSpec next = spec_;
  std::string scope;
  if (const std::string fault = edits::make_submodel(next, selected_, name, scope); !fault.empty())
    return refuse(fault);
  if (!apply(tr("Make the sub-model {}", name), std::move(next))) return false;
  if (const int node = layout_.node_of(scope); node >= 0) choose_group(node, false);
  return true;
}

bool BuilderModel::rename_submodel(const std::string& from, const std::string& to) {
  if (from == to) return false;
  ModelSpec next = spec_;
  if (const std::string fault = edits::rename_submodel(next, from, to); !fault.empty()) return refuse(fault);
  return apply(tr("Rename the sub-model {} to {}", from, to), std::move(next));
}

bool BuilderModel::insert_submodel(const std::string& name) {
  if (!find_submodel(spec_, name)) return refuse(tr("There is no sub-model {}", name));
  // Within an instance it would be a part of the sub-model: it comes behind the outermost one instead.
  const auto outermost = [&](const std::string& layer) {
    std::string out;
    for (const SubModelSpec& s : spec_.submodels)
      for (const std::string& i : s.instances)
        if (in_scope(layer, i) && (out.empty() || i.size() < out.size())) out = i;
    return out;
  };
  if (selected_wire_ >= 0) {
    const WireSpec& w = spec_.wires[static_cast<size_t>(selected_wire_)];
    if (const std::string i = outermost(w.from); !i.empty() && i == outermost(w.to))
      return refuse(tr("The wire lies within {}: no instance can stand in another by itself", i));
  }
  std::vector<std::string> added;
  std::string scope, said = tr("Add {}", name);
  ModelSpec next = edits::with_instance(spec_, name, added, scope);
  const ScopePorts ports = ports_of(spec_, find_submodel(spec_, name)->instances.front());
  const auto feed = [&](const std::string& from, int port) {
    if (ports.inputs.empty()) return;
    for (const ScopePort& p : ports.inputs.front()) next.wires.push_back({from, port, scope + "." + p.layer, p.port});
  };
  const auto feeds = [&](auto&& which) {
    if (ports.outputs.empty() || ports.inputs.empty()) return;
    for (WireSpec& w : next.wires)
      if (which(w)) w.from = scope + "." + ports.outputs.front().layer, w.from_port = ports.outputs.front().port;
  };
  if (std::exchange(loose_, false) && index_of(wire_from_) >= 0) {
    feed(wire_from_, wire_port_);
    said = tr("Add {} behind {}", name, wire_from_);
  } else if (selected_wire_ >= 0) {
    const WireSpec wire = spec_.wires[static_cast<size_t>(selected_wire_)];
    feeds([&](const WireSpec& w) { return w == wire; });
    feed(wire.from, wire.from_port);
    said = tr("Insert {} between {} and {}", name, wire.from, wire.to);
  } else if (const LayerSpec* after = anchor()) {
    std::string behind = after->name;
    if (const std::string around = outermost(behind); !around.empty())
      if (const auto outputs = ports_of(spec_, around).outputs; !outputs.empty())
        behind = around + "." + outputs.back().layer;
    feeds([&](const WireSpec& w) { return w.from == behind && w.from_port == 0 && !in_scope(w.to, scope); });
    feed(behind, 0);
    said = tr("Insert {} after {}", name, behind);
  }
  if (!apply(said, std::move(next))) return false;
  reveal(added.front());
  if (const int node = layout_.node_of(scope); node >= 0) {
    layout_.set_open(node, false);
    choose_group(node, false);
  }
  return true;
}

std::string BuilderModel::chosen_instance() const {
  if (!group_.empty()) return instance_filling(spec_, group_);
  return primary_.empty() ? std::string() : instance_around(spec_, primary_);
}

bool BuilderModel::dissolve_chosen() {
  const std::string scope = chosen_instance();
  if (scope.empty()) return refuse(tr("No instance of a sub-model is selected"));
  ModelSpec next = spec_;
  std::set<std::string> now;
  edits::dissolve(next, scope, now);
  if (!apply(tr("Dissolve {}", scope), std::move(next))) return false;
  select_names(std::move(now), "");
  return true;
}

bool BuilderModel::set_own_value(const std::string& layer, const std::string& attr, const std::string& submodel) {
  ModelSpec next = spec_;
  set_own(next, layer, attr, submodel);
  return apply(submodel.empty() ? tr("Every instance has the {} of {}", attr, layer)
                                : tr("Each {} has its own {}", submodel, attr),
               std::move(next));
}

std::string BuilderModel::weights_owner() const {
  if (!group_.empty()) return shared_instance(spec_, chosen_instance());
  const LayerSpec* l = selected_.size() == 1 ? spec_.find(primary_) : nullptr;
  return l ? l->shares : std::string();
}

const std::vector<std::string>& BuilderModel::weight_owners() const {
  const std::string of = !group_.empty() ? group_ : selected_.size() == 1 ? primary_ : std::string();
  if (!weight_owners_ || weight_owners_->first != of)
    weight_owners_ = {of, of.empty() ? std::vector<std::string>()
                                     : edits::weight_owners(spec_, of, [this](const auto& l) { return report(l); })};
  return weight_owners_->second;
}

bool BuilderModel::share_weights_with(const std::string& owner) {
  const std::string of = group_.empty() ? primary_ : chosen_instance();
  ModelSpec next = spec_;
  edits::share_weights(next, of, owner, [this](const std::string& l) { return report(l); });
  return apply(owner.empty() ? tr("Give {} weights of its own", of) : tr("Share the weights of {} with {}", owner, of),
               std::move(next));
}

std::string BuilderModel::folded_instance(const std::string& layer) const {
  const int cell = layout_.cell_of_layer(index_of(layer));
  if (cell < 0) return {};
  const GroupLayout::Cell& c = layout_.picture().cells[static_cast<size_t>(cell)];
  return layout_.instance_at(c.node);
}

std::vector<WireSpec> BuilderModel::ends_at(const std::string& layer, int port) const {
  const std::string scope = folded_instance(layer);
  if (!scope.empty())
    for (const auto& input : ports_of(spec_, scope).inputs) {
      std::vector<WireSpec> ends;
      bool of = false;
      for (const ScopePort& p : input) {
        ends.push_back({"", 0, scope + "." + p.layer, p.port});
        of = of || (ends.back().to == layer && p.port == port);
      }
      if (of) return ends;
    }
  return {{"", 0, layer, port}};
}

/// Whose weights a layer has, with the mark that stands for it; empty: its own.
std::string BuilderModel::shared_text(const LayerSpec& l) const {
  return l.shares.empty() ? std::string() : "⇄ " + l.shares;
}

/// An instance that is folded has ports, as a layer has.
void BuilderModel::draw_instance_ports(Scene& scene, const std::string& scope, Box b) const {
  const ScopePorts ports = ports_of(spec_, scope);
  const float radius = std::clamp(5.6f * zoom_, 1.5f, 4.f);
  const auto dot = [&](bool output, const ScopePort& p, size_t i, size_t count) {
    const int index = index_of(scope + "." + p.layer);
    if (index < 0) return;
    const Point at{b.x + port_at(b.w, static_cast<int>(i), static_cast<int>(count)), output ? b.bottom() : b.y};
    const bool used = (output ? used_out_ : used_in_).contains({index, p.port});
    const Box round{at.x - radius, at.y - radius, 2 * radius, 2 * radius};
    scene.rect(round, Ink::panel, 1, radius);
    scene.outline(round, used ? Ink::secondary : Ink::accent, 1.5f, radius);
    const float out = std::min(9.f, 7 * zoom_), in = std::min(9.f, b.h / 3);
    const std::string name = p.layer + (p.port ? " " + std::to_string(p.port) : "");
    scene.target({at.x - 9, output ? at.y - in : at.y - out, 18, in + out},
                 {output ? output_port : input_port, port_id(index, p.port)}, Cursor::cross,
                 output ? tr("output {}", name) : tr("input {}", name));
  };
  for (size_t i = 0; i < ports.inputs.size(); ++i) dot(false, ports.inputs[i].front(), i, ports.inputs.size());
  for (size_t i = 0; i < ports.outputs.size(); ++i) dot(true, ports.outputs[i], i, ports.outputs.size());
}

}  // namespace tenon::views
