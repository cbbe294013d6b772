#include "views/graph/group_layout.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tenon::views {

float port_at(float width, int port, int count) {
  return width * static_cast<float>(port + 1) / static_cast<float>(std::max(count, port + 1) + 1);
}

namespace {
int port_of(const std::map<int, GroupedGraph::Ports>& all, int node,
            std::map<std::pair<int, int>, int> GroupedGraph::Ports::*side, std::pair<int, int> end) {
  const auto scope = all.find(node);
  if (scope == all.end()) return -1;
  const auto port = (scope->second.*side).find(end);
  return port == (scope->second.*side).end() ? -1 : port->second;
}
}  // namespace

int GroupedGraph::port_into(int node, const Wire& wire) const {
  return port_of(ports, node, &Ports::in, {wire.to, wire.to_port});
}
int GroupedGraph::port_out_of(int node, const Wire& wire) const {
  return port_of(ports, node, &Ports::out, {wire.from, wire.from_port});
}

bool is_group(const ScopeTree& tree, int node) {
  if (node <= ScopeTree::kRoot || tree.at(node).leaf() || tree.at(node).items < 2) return false;
  const int parent = tree.at(node).parent;
  return parent == ScopeTree::kRoot || tree.at(parent).items > tree.at(node).items;
}

int GroupLayout::cell_of(const ScopeTree& tree, int node) const {
  for (; node >= 0; node = tree.at(node).parent) {
    if (cell_at[static_cast<size_t>(node)] >= 0) return cell_at[static_cast<size_t>(node)];
    if (frame_at[static_cast<size_t>(node)] >= 0) return -1;
  }
  return -1;
}

namespace {
constexpr float kSide = 16, kTitle = 30, kFoot = 12;  // between a frame and what it holds

/// One scope that is open (the root first), laid out by itself.
struct Level {
  int scope = 0, around = -1, unit = -1;  ///< the level that it stands in, and as which of its units
  struct Unit {
    int node = -1;   ///< of the tree; -1: where a net comes in or goes out
    int level = -1;  ///< of an open scope
    int net = -1;
    std::map<int, int> in, out;  ///< ports by net, of scopes
  };
  std::vector<Unit> units;
  std::map<int, int> entries, exits;  ///< units by net
  struct Edge {
    int from, net, to, port;  ///< port: of an item; -1 where the net says it
    bool operator<(const Edge& o) const {
      return std::tie(from, net, to, port) < std::tie(o.from, o.net, o.to, o.port);
    }
  };
  std::map<Edge, int> known;
  std::vector<Edge> edges;
  std::map<std::pair<int, int>, int> ending;  ///< edges by their target and net
  std::vector<int> wires;                     ///< by edge: the first that runs through it
  LayeredLayout layout;
  Point at;        ///< of the layout, in the whole picture
  int pieces = 0;  ///< its first
};

class Builder {
 public:
  Builder(const GroupedGraph& g, const ScopeTree& tree, const std::set<int>& open, const LayeredOptions& options)
      : g_(g), tree_(tree), open_(open), options_(options) {
    place_.assign(tree.nodes().size(), {-1, -1});
    levels_.emplace_back();
    for (size_t l = 0; l < levels_.size(); ++l) gather(static_cast<int>(l));
    ends_.assign(g.wires.size(), {-1, -1});
    for (size_t w = 0; w < g.wires.size(); ++w) lead(static_cast<int>(w));
    for (size_t l = levels_.size(); l-- > 0;) lay_out(levels_[l], l == 0);
    out_.cell_at.assign(tree.nodes().size(), -1);
    out_.frame_at.assign(tree.nodes().size(), -1);
    for (size_t l = 0; l < levels_.size(); ++l) place(static_cast<int>(l));
    for (size_t l = 0; l < levels_.size(); ++l) link(levels_[l]);
    for (const auto& [level, edge] : ends_)
      out_.last.push_back(level < 0 ? -1 : piece_of(levels_[static_cast<size_t>(level)], edge));
    out_.w = levels_[0].layout.w;
    out_.h = levels_[0].layout.h;
  }
  GroupLayout take() { return std::move(out_); }

 private:
  Level& level(int l) { return levels_[static_cast<size_t>(l)]; }

  /// The units of a level; open scopes among them become levels of their own.
  void gather(int l) {
    std::vector<int> todo(tree_.at(level(l).scope).children.rbegin(), tree_.at(level(l).scope).children.rend());
    while (!todo.empty()) {
      const int node = todo.back();
      todo.pop_back();
      if (!tree_.at(node).leaf() && !is_group(tree_, node)) {
        todo.insert(todo.end(), tree_.at(node).children.rbegin(), tree_.at(node).children.rend());
        continue;
      }
      const int unit = static_cast<int>(level(l).units.size());
      place_[static_cast<size_t>(node)] = {l, unit};
      level(l).units.push_back({.node = node, .in = {}, .out = {}});
      if (tree_.at(node).leaf() || !open_.contains(node)) continue;
      level(l).units.back().level = static_cast<int>(levels_.size());
      Level inner;
      inner.scope = node;
      inner.around = l;
      inner.unit = unit;
      levels_.push_back(std::move(inner));
    }
  }

  /// The level and unit that an item is seen as.
  std::pair<int, int> seen(int item) const {
    std::pair<int, int> out{-1, -1};
    for (int n = tree_.leaf_of(item); n > ScopeTree::kRoot; n = tree_.at(n).parent)
      if (const auto& [l, u] = place_[static_cast<size_t>(n)];
          l >= 0 && levels_[static_cast<size_t>(l)].units[static_cast<size_t>(u)].level < 0)
        out = {l, u};
    return out;
  }
  int depth(int l) const {
    int out = 0;
    for (; (l = levels_[static_cast<size_t>(l)].around) >= 0;) ++out;
    return out;
  }
  int add_edge(int l, Level::Edge e, int wire) {
    Level& at = level(l);
    const auto [found, added] = at.known.try_emplace(e, static_cast<int>(at.edges.size()));
    if (added) {
      at.edges.push_back(e);
      at.wires.push_back(wire);
      at.ending.try_emplace({e.to, e.net}, found->second);
    }
    return found->second;
  }
  int end_of(int l, std::map<int, int> Level::*ends, int net) {
    const auto [found, added] = (level(l).*ends).try_emplace(net, static_cast<int>(level(l).units.size()));
    if (added) level(l).units.push_back({.net = net, .in = {}, .out = {}});
    return found->second;
  }

  /// Leads a wire from its source out of the frames around that, and into those around its target.
  void lead(int w) {
    const GroupedGraph::Wire& wire = g_.wires[static_cast<size_t>(w)];
    auto [from_level, from] = seen(wire.from);
    auto [to_level, to] = seen(wire.to);
    if (from_level < 0 || to_level < 0 || (from_level == to_level && from == to)) return;
    const auto [found, added] = nets_.try_emplace({wire.from, wire.from_port}, static_cast<int>(nets_.size()));
    const int net = found->second;
    if (added) sources_.push_back({wire.from, wire.from_port});
    const int to_node = level(to_level).units[static_cast<size_t>(to)].node;
    int port = tree_.at(to_node).leaf() ? wire.to_port : g_.port_into(to_node, wire), above = depth(from_level),
        below = depth(to_level);
    std::pair<int, int>& end = ends_[static_cast<size_t>(w)];
    while (from_level != to_level) {
      if (above >= below) {
        add_edge(from_level, {from, net, end_of(from_level, &Level::exits, net), -1}, w);
        from = level(from_level).unit;
        from_level = level(from_level).around;
        --above;
      } else {
        const int e = add_edge(to_level, {end_of(to_level, &Level::entries, net), net, to, port}, w);
        if (end.first < 0) end = {to_level, e};
        to = level(to_level).unit;
        to_level = level(to_level).around;
        port = -1;
        --below;
      }
    }
    const int e = add_edge(from_level, {from, net, to, port}, w);
    if (end.first < 0) end = {from_level, e};
  }

  void lay_out(Level& at, bool root) {
    for (const Level::Edge& e : at.edges) {  // scopes that are boxes have a port a net
      Level::Unit &from = at.units[static_cast<size_t>(e.from)], &to = at.units[static_cast<size_t>(e.to)];
      if (from.node >= 0) from.out.try_emplace(e.net, static_cast<int>(from.out.size()));
      if (to.node >= 0) to.in.try_emplace(e.net, static_cast<int>(to.in.size()));
    }
    LayeredGraph graph;
    for (const Level::Unit& u : at.units) graph.nodes.push_back(node_of(at, u));
    for (const Level::Edge& e : at.edges) {
      const Level::Unit &from = at.units[static_cast<size_t>(e.from)], &to = at.units[static_cast<size_t>(e.to)];
      const bool from_item = from.node >= 0 && tree_.at(from.node).leaf();
      const int own = from.node >= 0 && !from_item && from.level < 0 ? port_out_of(from.node, e.net) : -1;
      graph.edges.push_back({e.from,
                             from.node < 0 ? 0
                             : from_item   ? source_port(e.net)
                             : own >= 0    ? own
                                           : from.out.at(e.net),
                             e.to,
                             to.node < 0   ? 0
                             : e.port >= 0 ? e.port
                                           : to.in.at(e.net)});
    }
    LayeredOptions options = options_;
    if (root) {
      at.layout = layered_layout(graph, options);
      return;
    }
    options.least_height *= 1.5f;
    LayeredLayout& known = laid_out_[form_of(graph)];
    if (known.at.empty()) known = layered_layout(graph, options);
    at.layout = known;
  }
  /// Everything that a layout is made of: blocks that are built alike are laid out once.
  static std::string form_of(const LayeredGraph& graph) {
    std::string form;
    const auto put = [&](const auto& value) { form.append(reinterpret_cast<const char*>(&value), sizeof value); };
    const auto put_all = [&](const std::vector<float>& ports) {
      put(ports.size());
      for (float p : ports) put(p);
    };
    put(graph.nodes.size());
    for (const LayeredGraph::Node& n : graph.nodes) {
      put(n.w), put(n.h), put(n.rank);
      put_all(n.in), put_all(n.out);
    }
    for (const LayeredGraph::Edge& e : graph.edges) put(e.from), put(e.from_port), put(e.to), put(e.to_port);
    return form;
  }
  int port_out_of(int node, int net) const {
    const auto& [item, port] = sources_[static_cast<size_t>(net)];
    return g_.port_out_of(node, {item, port, -1, 0});
  }
  int source_port(int net) const { return sources_[static_cast<size_t>(net)].second; }

  LayeredGraph::Node node_of(const Level& at, const Level::Unit& u) {
    LayeredGraph::Node n;
    if (u.node < 0) {
      n.w = 8;
      n.in = n.out = {4};
      const auto entry = at.entries.find(u.net);
      const bool in = entry != at.entries.end() && &at.units[static_cast<size_t>(entry->second)] == &u;
      n.rank = in ? LayeredGraph::Rank::first : LayeredGraph::Rank::last;
      return n;
    }
    if (tree_.at(u.node).leaf()) {
      const GroupedGraph::Item& item = g_.items[static_cast<size_t>(tree_.at(u.node).item)];
      n.w = item.w, n.h = item.h;
      for (int p = 0; p < item.inputs; ++p) n.in.push_back(port_at(n.w, p, item.inputs));
      for (int p = 0; p < item.outputs; ++p) n.out.push_back(port_at(n.w, p, item.outputs));
      return n;
    }
    if (u.level < 0) {
      const auto own = g_.ports.find(u.node);
      const bool owns = own != g_.ports.end();
      const int ins = std::max(owns ? own->second.inputs : 0, static_cast<int>(u.in.size())),
                outs = std::max(owns ? own->second.outputs : 0, static_cast<int>(u.out.size()));
      n.w = g_.folded_w, n.h = g_.folded_h;
      for (int p = 0; p < ins; ++p) n.in.push_back(port_at(n.w, p, ins));
      for (int p = 0; p < outs; ++p) n.out.push_back(port_at(n.w, p, outs));
      return n;
    }
    const Level& inner = level(u.level);
    n.w = inner.layout.w + 2 * kSide;
    n.h = inner.layout.h + kTitle + kFoot;
    n.in.resize(u.in.size());
    n.out.resize(u.out.size());
    for (const auto& [net, port] : u.in) n.in[static_cast<size_t>(port)] = crossing(inner, inner.entries, net);
    for (const auto& [net, port] : u.out) n.out[static_cast<size_t>(port)] = crossing(inner, inner.exits, net);
    return n;
  }
  static float crossing(const Level& inner, const std::map<int, int>& ends, int net) {
    return kSide + inner.layout.at[static_cast<size_t>(ends.at(net))].x + 4;
  }

  void place(int l) {
    Level& at = level(l);
    at.pieces = static_cast<int>(out_.pieces.size());
    const int frame = l == 0 ? -1 : out_.frame_at[static_cast<size_t>(at.scope)];
    for (size_t u = 0; u < at.units.size(); ++u) {
      const Level::Unit& unit = at.units[u];
      if (unit.node < 0) continue;
      const LayeredGraph::Node n = node_of(at, unit);
      const Box box{at.at.x + at.layout.at[u].x, at.at.y + at.layout.at[u].y, n.w, n.h};
      if (unit.level < 0) {
        out_.cell_at[static_cast<size_t>(unit.node)] = static_cast<int>(out_.cells.size());
        out_.cells.push_back({unit.node, box, frame});
        continue;
      }
      out_.frame_at[static_cast<size_t>(unit.node)] = static_cast<int>(out_.frames.size());
      out_.frames.push_back({unit.node, box, frame, frame < 0 ? 0 : out_.frames[static_cast<size_t>(frame)].depth + 1});
      level(unit.level).at = {box.x + kSide, box.y + kTitle};
    }
    const Box around = frame < 0 ? Box{} : out_.frames[static_cast<size_t>(frame)].box;
    for (const LayeredLayout::Piece& p : at.layout.pieces) {
      GroupLayout::Piece piece;
      piece.before = p.before < 0 ? -1 : at.pieces + p.before;
      piece.wire = at.wires[static_cast<size_t>(p.edge)];
      const Level::Edge& e = at.edges[static_cast<size_t>(p.edge)];
      for (Point q : p.points) piece.points.push_back({q.x + at.at.x, q.y + at.at.y});
      if (p.before < 0 && at.units[static_cast<size_t>(e.from)].node < 0) piece.points.front().y = around.y;
      if (at.layout.last[static_cast<size_t>(p.edge)] == static_cast<int>(&p - at.layout.pieces.data()) &&
          at.units[static_cast<size_t>(e.to)].node < 0)
        piece.points.back().y = around.bottom();
      out_.pieces.push_back(std::move(piece));
    }
  }
  int piece_of(const Level& at, int edge) const {
    const int last = at.layout.last[static_cast<size_t>(edge)];
    return last < 0 ? -1 : at.pieces + last;
  }

  /// What comes into a frame goes on from what led to it, and what leaves one from what led out of it.
  void link(const Level& at) {
    for (size_t i = 0; i < at.layout.pieces.size(); ++i) {
      const LayeredLayout::Piece& p = at.layout.pieces[i];
      if (p.before >= 0) continue;
      const Level::Edge& e = at.edges[static_cast<size_t>(p.edge)];
      const Level::Unit& from = at.units[static_cast<size_t>(e.from)];
      int before = -1;
      if (from.node < 0) {
        before = ending(levels_[static_cast<size_t>(at.around)], at.unit, e.net);
      } else if (from.level >= 0) {
        const Level& inner = levels_[static_cast<size_t>(from.level)];
        before = ending(inner, inner.exits.at(e.net), e.net);
      }
      out_.pieces[static_cast<size_t>(at.pieces) + i].before = before;
    }
  }
  /// The piece with which a net ends at a unit.
  int ending(const Level& at, int unit, int net) const {
    const auto found = at.ending.find({unit, net});
    return found == at.ending.end() ? -1 : piece_of(at, found->second);
  }

  const GroupedGraph& g_;
  const ScopeTree& tree_;
  const std::set<int>& open_;
  LayeredOptions options_;
  std::vector<Level> levels_;
  std::vector<std::pair<int, int>> place_;  ///< by node of the tree: level and unit
  std::map<std::pair<int, int>, int> nets_;
  std::vector<std::pair<int, int>> sources_;  ///< by net: item and port
  std::vector<std::pair<int, int>> ends_;     ///< by wire: the level and the edge that ends at its target
  std::unordered_map<std::string, LayeredLayout> laid_out_;
  GroupLayout out_;
};
}  // namespace

GroupLayout group_layout(const GroupedGraph& graph, const ScopeTree& tree, const std::set<int>& open,
                         const LayeredOptions& options) {
  return Builder(graph, tree, open, options).take();
}

}  // namespace tenon::views
