#include "views/graph/scope_tree.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <unordered_map>

#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr size_t kMostParts = 24;  // deeper than any module; it bounds every walk over the tree
constexpr int kLeastRepeats = 3;

/// The number that a name ends in, -1: none; `prefix` is what stands before it.
int64_t number_at_end(const std::string& name, std::string_view& prefix) {
  size_t at = name.size();
  while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') --at;
  prefix = std::string_view(name).substr(0, at);
  int64_t n = -1;
  const auto read = std::from_chars(name.data() + at, name.data() + name.size(), n);
  return read.ec == std::errc() ? n : -1;
}

uint64_t mix(uint64_t a, uint64_t b) {
  return (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccd;
}

int64_t sum(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}
}  // namespace

std::vector<std::string> scope_parts(std::string_view name) {
  std::vector<std::string> parts;
  while (!name.empty()) {
    const size_t end = parts.size() + 1 < kMostParts ? name.find_first_of("./") : name.npos;
    if (end != 0) parts.emplace_back(name.substr(0, end));
    name.remove_prefix(end == name.npos ? name.size() : end + 1);
  }
  return parts;
}

ScopeTree::ScopeTree(const std::vector<Item>& items) : nodes_(1) {
  std::unordered_map<std::string, int> known;  // scopes, by their parent and name
  leaves_.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    std::vector<std::string> parts = scope_parts(item.scope.empty() ? item.name : item.scope + "." + item.name);
    if (parts.empty()) parts.emplace_back(tr("(no name)"));
    int at = kRoot;
    for (size_t p = 0; p + 1 < parts.size(); ++p) {
      const auto [found, added] = known.try_emplace(std::to_string(at) + "\n" + parts[p], 0);
      if (added) found->second = add(at, parts[p]);
      at = found->second;
    }
    const int leaf = add(at, parts.back());
    Node& n = nodes_[static_cast<size_t>(leaf)];
    n.item = static_cast<int>(i);
    n.items = 1;
    n.elements = item.elements;
    n.bytes = item.bytes;
    n.form = std::hash<std::string>()(item.form);
    leaves_.push_back(leaf);
  }
  sum_up(kRoot);
}

int ScopeTree::add(int parent, std::string name) {
  const int node = static_cast<int>(nodes_.size());
  nodes_.push_back({.name = std::move(name), .parent = parent, .children = {}});
  nodes_[static_cast<size_t>(parent)].children.push_back(node);
  return node;
}

/// From the leaves up: sums, then the order of the children, then which of them are built alike.
void ScopeTree::sum_up(int node) {
  for (int c : std::vector<int>(at(node).children)) {
    if (!at(c).leaf()) sum_up(c);
    Node& n = nodes_[static_cast<size_t>(node)];
    n.items += at(c).items;
    n.elements = sum(n.elements, at(c).elements);
    n.bytes += at(c).bytes;
  }
  sort_children(node);
  uint64_t form = 1;
  for (int c : at(node).children) form = mix(mix(form, std::hash<std::string>()(at(c).name)), at(c).form);
  nodes_[static_cast<size_t>(node)].form = form;
  gather_repeats(node);
  if (node != kRoot) return;
  std::vector<int> todo = {kRoot};
  while (!todo.empty()) {
    const int from = todo.back();
    todo.pop_back();
    for (int c : at(from).children) {
      nodes_[static_cast<size_t>(c)].depth = from == kRoot ? 0 : at(from).depth + 1;
      todo.push_back(c);
    }
  }
}

/// As the file has them, but for numbers: a file may be sorted by the letters of its names, 10 before 2.
void ScopeTree::sort_children(int node) {
  std::vector<int>& children = nodes_[static_cast<size_t>(node)].children;
  std::string_view first, prefix;
  for (int c : children) {
    if (number_at_end(at(c).name, prefix) < 0) return;
    if (c == children.front()) first = prefix;
    if (prefix != first) return;
  }
  std::stable_sort(children.begin(), children.end(), [&](int a, int b) {
    std::string_view ignored;
    return number_at_end(at(a).name, ignored) < number_at_end(at(b).name, ignored);
  });
}

void ScopeTree::gather_repeats(int node) {
  const std::vector<int> children = at(node).children;
  std::vector<int> kept;
  auto alike = [&](int a, int b) {
    std::string_view of_a, of_b;
    return !at(a).leaf() && !at(b).leaf() && at(a).form == at(b).form && number_at_end(at(a).name, of_a) >= 0 &&
           number_at_end(at(b).name, of_b) >= 0 && of_a.empty() && of_b.empty();
  };
  for (size_t i = 0; i < children.size();) {
    size_t end = i + 1;
    while (end < children.size() && alike(children[i], children[end])) ++end;
    if (static_cast<int>(end - i) < kLeastRepeats) {
      kept.insert(kept.end(), children.begin() + static_cast<std::ptrdiff_t>(i),
                  children.begin() + static_cast<std::ptrdiff_t>(end));
    } else {
      const int group = static_cast<int>(nodes_.size());
      Node g{.name = at(children[i]).name + " … " + at(children[end - 1]).name, .parent = node, .children = {}};
      g.repeats = static_cast<int>(end - i);
      for (size_t k = i; k < end; ++k) {
        g.children.push_back(children[k]);
        nodes_[static_cast<size_t>(children[k])].parent = group;
        g.items += at(children[k]).items;
        g.elements = sum(g.elements, at(children[k]).elements);
        g.bytes += at(children[k]).bytes;
      }
      nodes_.push_back(std::move(g));
      kept.push_back(group);
    }
    i = end;
  }
  nodes_[static_cast<size_t>(node)].children = std::move(kept);
}

std::string ScopeTree::path(int node) const {
  std::string out;
  for (; node > kRoot; node = at(node).parent)
    if (!at(node).repeats) out = at(node).name + (out.empty() ? "" : "." + out);
  return out;
}

bool ScopeTree::below(int node, int scope) const {
  while (node >= 0 && node != scope) node = at(node).parent;
  return node == scope;
}

std::set<int> ScopeTree::first_open(int most) const {
  std::set<int> open;
  std::vector<int> level = at(kRoot).children;
  size_t rows = level.size();
  while (!level.empty()) {
    std::vector<int> next, scopes;
    for (int n : level)
      if (!at(n).leaf() && !at(n).repeats) {
        scopes.push_back(n);
        next.insert(next.end(), at(n).children.begin(), at(n).children.end());
      }
    rows += next.size();
    if (rows > static_cast<size_t>(most)) break;
    open.insert(scopes.begin(), scopes.end());
    level = std::move(next);
  }
  return open;
}

std::vector<int> ScopeTree::rows(const std::set<int>& open) const {
  std::vector<int> out, todo(at(kRoot).children.rbegin(), at(kRoot).children.rend());
  while (!todo.empty()) {
    const int n = todo.back();
    todo.pop_back();
    out.push_back(n);
    if (open.contains(n)) todo.insert(todo.end(), at(n).children.rbegin(), at(n).children.rend());
  }
  return out;
}

std::vector<int> ScopeTree::rows_with(const std::vector<bool>& items) const {
  std::vector<bool> holds(nodes_.size(), false);
  for (size_t i = 0; i < items.size() && i < leaves_.size(); ++i)
    if (items[i])
      for (int n = leaves_[i]; n >= 0 && !holds[static_cast<size_t>(n)]; n = at(n).parent)
        holds[static_cast<size_t>(n)] = true;
  std::vector<int> out, todo(at(kRoot).children.rbegin(), at(kRoot).children.rend());
  while (!todo.empty()) {
    const int n = todo.back();
    todo.pop_back();
    if (!holds[static_cast<size_t>(n)]) continue;
    out.push_back(n);
    todo.insert(todo.end(), at(n).children.rbegin(), at(n).children.rend());
  }
  return out;
}

int ScopeTree::seen(int item, const std::set<int>& open) const {
  int out = leaf_of(item);
  for (int n = at(out).parent; n > kRoot; n = at(n).parent)
    if (!open.contains(n) && at(n).items > 1) out = n;
  return out;
}

}  // namespace tenon::views
