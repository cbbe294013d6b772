// trace diff A B: why a step of B takes longer (or shorter) than one of A.
#include <fmt/format.h>

#include <algorithm>

#include "tracing/analyses/step_sums.h"

// Note [What a difference is made of]
// The critical path cuts a step's length into pieces that follow each other, so the sums of the pieces by what they are
// and where they were called from differ by exactly what the steps differ by: those are the items. But when work grows,
// the path may also come to run over other work that was there before, and its items grow with it; and work beside the
// path (communication that computation hides) may grow without lengthening the step. So an item is a cause by as much
// as both its share of the path and its own time grew: the smaller of the two. What grew in one place and shrank in
// another was moved, and is a cause by what its name grew in all.
//
// Note [Calls that match]
// Two calls are the same where their paths of modules, annotations and ops are. Of what is left over on both sides,
// those are the same whose paths are once names are left out that only one of the traces knows: an annotation around
// everything, a module of a trace with stacks. Ends of paths always count: what only B does is an item of its own.

namespace tenon::tracing {
namespace {

using traces::kNone;
using What = PartKey::What;

struct Item {
  PartKey key;
  PartSum a, b;
  double delta() const { return b.path - a.path; }
  double work() const { return b.work - a.work; }
  double weight = 0;  ///< how far it is a cause
};

/// The names of all paths that a trace has parts on.
std::vector<bool> known_names(const CallTree& tree, const StepSums& sums) {
  std::vector<bool> known(tree.names()), seen(tree.nodes().size());
  for (const auto& [key, sum] : sums.parts)
    for (uint32_t n = key.node; n && !seen[n]; n = tree.nodes()[n].parent) seen[n] = known[tree.nodes()[n].name] = true;
  return known;
}

/// The parts of both, matched by path, in an order that depends on nothing but the paths.
std::vector<Item> matched(const CallTree& tree, const StepSums& a, const StepSums& b) {
  std::vector<Item> items, left;
  for (const auto& [key, sum] : a.parts) {
    auto it = b.parts.find(key);
    (it == b.parts.end() ? left : items).push_back({key, sum, it == b.parts.end() ? PartSum{} : it->second});
  }
  for (const auto& [key, sum] : b.parts)
    if (!a.parts.contains(key)) left.push_back({key, {}, sum});
  auto order = [](const Item& x, const Item& y) {
    return std::tuple(x.key.node, x.key.what, x.key.after) < std::tuple(y.key.node, y.key.what, y.key.after);
  };
  std::sort(left.begin(), left.end(), order);

  const std::vector<bool> in_a = known_names(tree, a), in_b = known_names(tree, b);
  CallTree common;  // the same nodes without the names that only one side knows
  std::vector<uint32_t> short_of(tree.nodes().size());
  for (uint32_t n = 1; n < tree.nodes().size(); ++n) {
    const CallTree::Node& node = tree.nodes()[n];
    const uint32_t above = short_of[node.parent];
    short_of[n] = in_a[node.name] && in_b[node.name] ? common.child(above, node.name, node.op) : above;
  }
  std::unordered_map<PartKey, size_t, PartHash> place;
  std::vector<std::vector<Item>> groups;
  for (const Item& i : left) {
    PartKey key = i.key;
    if (key.node) {
      const CallTree::Node& end = tree.nodes()[key.node];
      key.node = common.child(short_of[end.parent], end.name, end.op);
    }
    if (key.after != kNone && !(in_a[key.after] && in_b[key.after])) key.after = kNone;
    auto [it, fresh] = place.emplace(key, groups.size());
    if (fresh) groups.emplace_back();
    groups[it->second].push_back(i);
  }
  auto plus = [](PartSum& into, const PartSum& s) {
    into.path += s.path, into.work += s.work, into.calls += s.calls;
    into.see(s.longest, s.longest_ns);
  };
  for (const auto& group : groups) {
    const bool of_a =
        std::any_of(group.begin(), group.end(), [](const Item& i) { return i.a.calls > 0 || i.a.path > 0; });
    const bool of_b =
        std::any_of(group.begin(), group.end(), [](const Item& i) { return i.b.calls > 0 || i.b.path > 0; });
    if (!of_a || !of_b) {
      items.insert(items.end(), group.begin(), group.end());
      continue;
    }
    Item one{group[0].key, {}, {}};
    for (const Item& i : group) plus(one.a, i.a), plus(one.b, i.b);
    items.push_back(one);
  }
  std::sort(items.begin(), items.end(), order);
  return items;
}

void rank(const CallTree& tree, std::vector<Item>& items, double change) {
  const double sign = change >= 0 ? 1 : -1;
  // By the name at the end of the path: what grew there in all.
  std::unordered_map<PartKey, double, PartHash> of_name;
  auto name_key = [&](const Item& i) { return PartKey{tree.nodes()[i.key.node].name, i.key.after, i.key.what}; };
  for (const Item& i : items) of_name[name_key(i)] += sign * i.work();
  double explained = 0;
  for (Item& i : items) {
    i.weight = std::max(0.0, std::min({sign * i.work(), sign * i.delta(), of_name[name_key(i)]}));
    explained += i.weight;
  }
  // A wait has no work of its own. Where the CPU waits more often than it did, it is the reason of what nothing else
  // explains.
  for (Item& i : items)
    if (i.key.what == What::wait && sign * (i.b.calls - i.a.calls) > 0.02 * i.a.calls)
      i.weight = std::max({0.0, sign * i.delta(), sign * change - explained});
  std::stable_sort(items.begin(), items.end(), [&](const Item& x, const Item& y) {
    if (x.weight != y.weight) return x.weight > y.weight;
    return sign * x.delta() > sign * y.delta();
  });
}

std::string cut(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

std::string cut_front(const std::string& text, size_t most) {
  return text.size() <= most ? text : "..." + text.substr(text.size() - most + 3);
}

/// A path as a line can hold it: the module it is in, its end, and as much of what leads there as fits.
std::string short_path(const CallTree& tree, uint32_t node, size_t most) {
  if (!node) return "";
  std::string whole = tree.path(node);
  if (whole.size() <= most) return whole;
  const uint32_t context = tree.context(node);
  const std::string end = cut(tree.text(tree.nodes()[node].name), most / 2),
                    place = context == node ? "" : cut_front(tree.path(context), most - end.size() - 9);
  if (context == node) return cut_front(whole, most);
  std::string tail = end;
  uint32_t n = tree.nodes()[node].parent;
  for (; n != context; n = tree.nodes()[n].parent) {
    const std::string& name = tree.text(tree.nodes()[n].name);
    if (place.size() + 9 + name.size() + 3 + tail.size() > most) break;
    tail = name + " > " + tail;
  }
  return place +
         (n == context    ? ""
          : place.empty() ? "..."
                          : " > ...") +
         (place.empty() && n == context ? "" : " > ") + tail;
}

std::string label(const CallTree& tree, const PartKey& k, bool whole) {
  const std::string path = whole ? tree.path(k.node) : short_path(tree, k.node, 72);
  const std::string after = k.after == kNone ? "" : (whole ? tree.text(k.after) : cut(tree.text(k.after), 40));
  switch (k.what) {
    case What::gpu:
      return path;
    case What::cpu:
      return path + " (CPU)";
    case What::wait:
      return path + " (waiting)";
    case What::launch_delay:
      return piece_name(PathPiece::What::launch_delay, "");
    case What::between:
      return piece_name(PathPiece::What::between, "");
    case What::gap:
      break;
  }
  if (path.empty())
    return piece_name(PathPiece::What::nothing, "") + (after.empty() ? ", at the beginning" : ", after " + after);
  return path + (after.empty() ? " (CPU)" : " (CPU, after " + after + ")");
}

Finding trace_diff(const TraceRequest& r) {
  Finding f;
  CallTree tree;
  StepSums sums[2];
  for (int i = 0; i < 2; ++i) sums[i] = step_sums(*r.traces[i], asked_steps(*r.traces[i], r), tree);
  const StepSums &a = sums[0], &b = sums[1];
  if (a.steps == 0 || b.steps == 0)
    return nothing(fmt::format("There is no step to compare in {}.", a.steps == 0 ? "A" : "B"));
  std::vector<Item> items = matched(tree, a, b);
  const double change = b.length - a.length;
  rank(tree, items, change);
  double sum = 0;
  for (const Item& i : items) sum += i.delta();
  const bool whole = a.whole || b.whole;
  const std::string each = whole ? "" : " a step";
  auto ns = [](double v) { return nanoseconds_text(v); };
  const double relative = a.length > 0 ? std::abs(change) / a.length : 0;
  if (relative < 0.005) {
    f.sentence = fmt::format("{} take the same time: {} and {}.", whole ? "A and B" : "The steps of A and B",
                             ns(a.length), ns(b.length));
  } else {
    f.sentence = fmt::format("{} takes {} {} than {} ({} against {}, {}).", whole ? "B" : "A step of B",
                             ns(std::abs(change)), change >= 0 ? "longer" : "shorter", whole ? "A" : "one of A",
                             ns(b.length), ns(a.length), share_text(relative));
    if (!items.empty() && items[0].weight > 0) {
      const Item& top = items[0];
      const std::string name = label(tree, top.key, false);
      const std::string calls = top.a.calls != top.b.calls
                                    ? fmt::format("{:.4g} calls{} instead of {:.4g}", top.b.calls, each, top.a.calls)
                                    : "";
      if (top.key.what == What::wait)
        f.sentence +=
            fmt::format(" The CPU waits for the GPU {} often: {}, {}. They no longer work side by side as before.",
                        change >= 0 ? "more" : "less", name, calls.empty() ? "as often as before" : calls);
      else
        f.sentence += fmt::format(" {} accounts for {}: {}{} instead of {}{}.", name, ns(top.weight), ns(top.b.work),
                                  each, ns(top.a.work), calls.empty() ? "" : ", " + calls);
    }
  }
  f.facts = {{"a_ns", "a step of A", Unit::nanoseconds, a.length},
             {"b_ns", "a step of B", Unit::nanoseconds, b.length},
             {"change_ns", "difference", Unit::nanoseconds, change},
             {"items_ns", "sum of the items", Unit::nanoseconds, sum},
             {"a_steps", "steps of A", Unit::count, static_cast<int64_t>(a.steps)},
             {"b_steps", "steps of B", Unit::count, static_cast<int64_t>(b.steps)}};
  Table table{"items",
              {{"name", "WHAT", Unit::text},
               {"delta_ns", "OF THE DIFFERENCE", Unit::nanoseconds},
               {"work_ns", "ITSELF", Unit::nanoseconds},
               {"a_ns", "IN A", Unit::nanoseconds},
               {"b_ns", "IN B", Unit::nanoseconds},
               {"a_calls", "CALLS A", Unit::number},
               {"b_calls", "CALLS B", Unit::number},
               {"path", "PATH", Unit::text, true}},
              {}};
  double shown = 0;
  size_t more = 0;
  for (const Item& i : items) {
    if (i.delta() == 0 && i.work() == 0) continue;
    if (table.rows.size() >= r.top) {
      ++more;
      continue;
    }
    shown += i.delta();
    auto sight = [](const PartSum& s) { return s.longest == kNone ? Sight() : Sight::of(s.longest); };
    table.add({label(tree, i.key, false), i.delta(), i.work(), i.a.work, i.b.work, i.a.calls, i.b.calls,
               label(tree, i.key, true)},
              sight(i.a), sight(i.b));
  }
  if (more)
    table.add({fmt::format("{} more", more), sum - shown, 0.0, 0.0, 0.0, 0.0, 0.0, std::string()}, Sight(), Sight());
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered_trace_compare =
    register_trace_analysis({"diff", "why a step of B takes longer or shorter than one of A", 2, 2, trace_diff});

}  // namespace
}  // namespace tenon::tracing
