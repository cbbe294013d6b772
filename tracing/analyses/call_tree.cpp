#include "tracing/analyses/call_tree.h"

#include <algorithm>
#include <map>

#include "tracing/analyses/trace_analysis.h"

namespace tenon::tracing {

using traces::EventId;
using traces::EventKind;
using traces::kNone;
using traces::Trace;

uint32_t CallTree::name(std::string_view text) {
  auto [it, fresh] = index_.emplace(text, static_cast<uint32_t>(texts_.size()));
  if (fresh) texts_.push_back(&it->first);
  return it->second;
}

uint32_t CallTree::child(uint32_t parent, uint32_t name, bool op) {
  auto [it, fresh] = children_.emplace(uint64_t{parent} << 32 | name, static_cast<uint32_t>(nodes_.size()));
  if (fresh) nodes_.push_back({parent, name, nodes_[parent].depth + 1, op});
  return it->second;
}

uint32_t CallTree::context(uint32_t node) const {
  while (node && nodes_[node].op) node = nodes_[node].parent;
  return node;
}

std::string CallTree::path(uint32_t node) const {
  std::vector<uint32_t> chain;
  for (; node; node = nodes_[node].parent) chain.push_back(node);
  std::string path;
  for (size_t i = chain.size(); i-- > 0;) {
    if (!path.empty()) path += nodes_[chain[i]].op ? " > " : "/";
    path += text(nodes_[chain[i]].name);
  }
  return path;
}

namespace {

/// A module without "nn.Module: "; a frame of Python without its line, which moves when the file is edited, and without
/// the address of an object, which no two runs share.
std::string_view shown(std::string_view name, EventKind kind, std::string& buffer) {
  if (kind != EventKind::python) return name;
  if (name.starts_with(kModulePrefix)) return name.substr(kModulePrefix.size());
  if (size_t at = name.find(" object at 0x"); at != name.npos) {
    buffer.assign(name.substr(0, at)).append(" object>");
    return buffer;
  }
  size_t close = name.rfind("): "), open = close == name.npos ? close : name.rfind('(', close);
  if (open == name.npos) return name;
  buffer.assign(name.substr(0, open)).append(name.substr(close + 1));
  return buffer;
}

std::string without_numbers(std::string_view name) {
  std::string out;
  for (char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit)
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

}  // namespace

// "iteration 17" is the same in every step and in another recording, "layer 3" is not the same as "layer 4". Told by
// that: the first kind of name comes once in the whole trace, with as many others that differ only in their number as
// there are steps.
void CallPaths::number_free_names() {
  std::vector<uint32_t> count(trace_.names());
  uint32_t steps = 0;
  for (EventId e = 0; e < trace_.size(); ++e)
    if (trace_.kind(e) == EventKind::annotation) ++count[trace_.columns().name[e]], steps += names_.step(e);
  if (steps < 2) return;
  std::map<std::string, std::vector<uint32_t>> groups;
  for (uint32_t n = 0; n < trace_.names(); ++n)
    if (count[n] == 1)
      if (std::string name = without_numbers(trace_.text(n)); name.find('#') != name.npos) groups[name].push_back(n);
  for (const auto& [name, members] : groups)
    if (members.size() >= steps && members.size() <= steps + 2)
      for (uint32_t n : members) name_[n] = tree_.name(name);
}

CallPaths::CallPaths(const Trace& t, const EventNames& names, CallTree& tree, const std::vector<EventId>& parent)
    : trace_(t), names_(names), tree_(tree), parent_(parent), within_(t.size()), name_(t.names(), kNone) {
  number_free_names();
  // Lanes follow from the outside in, so whatever is around an event was placed before it.
  for (EventId e = 0; e < t.size(); ++e) place(e, within(parent[e]));
  // Ours have a span around backward, and of a gradient's ops the first alone is linked.
  if (t.forward_backward().empty() || recorded_by_tenon(t)) return;
  std::vector<traces::Link> links(t.forward_backward().begin(), t.forward_backward().end());
  std::sort(links.begin(), links.end(),
            [](const auto& a, const auto& b) { return std::pair(a.to, a.from) < std::pair(b.to, b.from); });
  const uint32_t backward = tree.name("backward");
  std::vector<bool> linked(t.rows().size());
  for (const auto& l : links) linked[t.row_of(l.to)] = true;
  auto link = links.begin();
  for (const traces::Lane& lane : t.lanes())
    for (EventId e = lane.begin; linked[lane.row] && e < lane.end; ++e) {
      while (link != links.end() && link->to < e) ++link;
      // The link ends at the node's function, or at what the engine wraps it in.
      if (link != links.end() && link->to == e)
        place(e, tree.child(tree.context(within_[link->from]), backward, false));
      else if (parent[e] != kNone)
        place(e, within(parent[e]));
    }
}

CallPaths::Part CallPaths::part(EventId e) const {
  switch (trace_.kind(e)) {
    case EventKind::cpu_op:
      return names_.backward(e) ? Part::none : Part::op;
    case EventKind::annotation:
    case EventKind::other:
      return names_.step(e) ? Part::none : Part::context;
    case EventKind::python:
      return names_.module(e) ? Part::context : Part::none;
    default:
      return Part::none;
  }
}

uint32_t CallPaths::name_of(EventId e) {
  uint32_t& known = name_[trace_.columns().name[e]];
  if (known == kNone) {
    std::string buffer;
    known = tree_.name(shown(trace_.event_name(e), trace_.kind(e), buffer));
  }
  return known;
}

void CallPaths::place(EventId e, uint32_t above) {
  const Part p = part(e);
  within_[e] = p == Part::none || trace_.duration(e) == 0 ? above : tree_.child(above, name_of(e), p == Part::op);
}

uint32_t CallPaths::of(EventId e) {
  return part(e) != Part::none ? within_[e] : tree_.child(within_[e], name_of(e), true);
}

}  // namespace tenon::tracing
