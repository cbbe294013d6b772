#include "views/autograd/autograd_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <queue>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using tracing::GradNode;

namespace {
constexpr float kHeader = 26, kRow = 30, kLane = 16;

/// Of the column: its name is longer in other languages.
float norm_width() { return std::max(84.f, text_width(tr("gradient norm"), Face::small) + 2); }
}  // namespace

void AutogradModel::set_step(const Links& links) {
  links_ = links;
  folded_.clear();
  scroll_ = 0;
  saved_ = 0;
  order_.clear();
  leaves_.clear();
  bad_.clear();
  if (links_) {
    const auto& r = *links_.record();
    order();
    bad_.assign(r.grad_nodes.size(), false);
    for (size_t i = 0; i < r.grad_nodes.size(); ++i) {
      saved_ += r.grad_nodes[i].saved_bytes;
      bad_[i] = std::isnan(r.grad_nodes[i].grad_norm) || std::isinf(r.grad_nodes[i].grad_norm);
    }
    for (uint32_t seq : bad_ops(r)) {
      uint32_t forward = seq <= r.ops.size() && r.ops[seq - 1].forward_seq ? r.ops[seq - 1].forward_seq : seq;
      for (int n : links_.grad_nodes_of(forward)) bad_[n] = true;
    }
  }
  arrange();
  set_selection(selection_);
}

/// Backward's order: a node after all that feed it, the later forward op first. Leaves hang on the first node that
/// feeds them.
void AutogradModel::order() {
  const auto& nodes = links_.record()->grad_nodes;
  int n = static_cast<int>(nodes.size());
  std::vector<int> waiting(n, 0);
  leaves_.assign(n, {});
  for (const GradNode& g : nodes)
    for (const auto& e : g.next)
      if (e.node >= 0 && e.node < n) ++waiting[e.node];
  auto later = [&](int a, int b) {
    return nodes[a].forward_seq != nodes[b].forward_seq ? nodes[a].forward_seq < nodes[b].forward_seq : a > b;
  };
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  std::vector<bool> hung(n, false);
  for (int i = 0; i < n; ++i)
    if (!waiting[i] && !nodes[i].leaf) ready.push(i);
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    order_.push_back(i);
    for (const auto& e : nodes[i].next) {
      if (e.node < 0 || e.node >= n) continue;
      if (nodes[e.node].leaf) {
        if (!hung[e.node]) leaves_[i].push_back(e.node);
        hung[e.node] = true;
      } else if (--waiting[e.node] == 0) {
        ready.push(e.node);
      }
    }
  }
}

void AutogradModel::arrange() {
  rows_.clear();
  most_saved_ = 1;
  row_of_.assign(links_ ? links_.record()->grad_nodes.size() : 0, -1);
  std::string previous = "\n";
  for (int i : order_) {
    const GradNode& g = links_.record()->grad_nodes[i];
    std::string module = module_path(g.module);
    bool fold = folded_.count(module) > 0;
    if (!(fold && !rows_.empty() && rows_.back().folded && rows_.back().module == module)) {
      rows_.push_back({});
      rows_.back().node = i;
      rows_.back().module = module;
      rows_.back().folded = fold;
      rows_.back().first_of_module = module != previous;
    }
    Row& row = rows_.back();
    row.nodes.push_back(i);
    row.saved += g.saved_bytes;
    row.leaves.insert(row.leaves.end(), leaves_[i].begin(), leaves_[i].end());
    row_of_[i] = static_cast<int>(rows_.size()) - 1;
    for (int l : leaves_[i]) row_of_[l] = row_of_[i];
    most_saved_ = std::max(most_saved_, row.saved);
    previous = module;
  }
  lay_lanes();
}

void AutogradModel::lay_lanes() {
  wires_.clear();
  lanes_ = 1;
  std::vector<int> lane_waits;  // by lane: the row it leads to, -1 free
  struct Pending {
    int from, from_lane, to, lane;
  };
  std::vector<Pending> pending;
  for (int r = 0; r < static_cast<int>(rows_.size()); ++r) {
    int lane = -1;
    for (size_t l = 0; l < lane_waits.size(); ++l)
      if (lane_waits[l] == r) {
        if (lane < 0) lane = static_cast<int>(l);
        lane_waits[l] = -1;
      }
    if (lane < 0) {
      lane = static_cast<int>(std::find(lane_waits.begin(), lane_waits.end(), -1) - lane_waits.begin());
      if (lane == static_cast<int>(lane_waits.size())) lane_waits.push_back(-1);
    }
    rows_[r].lane = lane;
    for (const Pending& p : pending)
      if (p.to == r) wires_.push_back({p.from, r, p.from_lane, p.lane, lane});
    std::erase_if(pending, [r](const Pending& p) { return p.to == r; });
    std::set<int> targets;
    for (int n : rows_[r].nodes)
      for (const auto& e : links_.record()->grad_nodes[n].next)
        if (e.node >= 0 && e.node < static_cast<int>(row_of_.size()) && !links_.record()->grad_nodes[e.node].leaf &&
            row_of_[e.node] > r)
          targets.insert(row_of_[e.node]);
    for (int to : targets) {
      int l = static_cast<int>(std::find(lane_waits.begin(), lane_waits.end(), to) - lane_waits.begin());
      if (l == static_cast<int>(lane_waits.size())) {
        l = lane_waits.size() > static_cast<size_t>(lane) && lane_waits[lane] < 0
                ? lane
                : static_cast<int>(std::find(lane_waits.begin(), lane_waits.end(), -1) - lane_waits.begin());
        if (l == static_cast<int>(lane_waits.size())) lane_waits.push_back(-1);
        lane_waits[l] = to;
      }
      pending.push_back({r, lane, to, l});
    }
    lanes_ = std::max(lanes_, static_cast<int>(lane_waits.size()));
  }
}

void AutogradModel::set_selection(const Selection& s) {
  selection_ = s;
  selected_ =
      links_ && s.kind != Selection::Kind::module && s.kind != Selection::Kind::range ? links_.grad_node_of(s) : -1;
  if (s.source != "autograd") {
    if (selected_ >= 0)
      reveal(selected_);
    else if (s.kind == Selection::Kind::module)
      for (const Row& row : rows_)
        if (in_module(row.module, s.name)) {
          reveal(row.node);
          break;
        }
  }
  changed();
}

void AutogradModel::reveal(int node) {
  int row = node < static_cast<int>(row_of_.size()) ? row_of_[node] : -1;
  if (row < 0 || height_ <= 0) return;
  float y = static_cast<float>(row) * kRow, room = height_ - kHeader - kRow;
  if (y < scroll_) scroll_ = y - kRow;
  if (y > scroll_ + room) scroll_ = y - room + kRow;
}

void AutogradModel::toggle(const std::string& module) {
  if (!folded_.erase(module)) folded_.insert(module);
  arrange();
  changed();
}

void AutogradModel::fold_all(bool folded) {
  folded_.clear();
  if (folded && links_)
    for (int i : order_) folded_.insert(module_path(links_.record()->grad_nodes[i].module));
  arrange();
  changed();
}

float AutogradModel::row_y(int row) const { return kHeader + static_cast<float>(row) * kRow - scroll_; }

void AutogradModel::draw_wires(Scene& scene, float graph_x) {
  auto x = [&](int lane) { return graph_x + static_cast<float>(lane) * kLane; };
  for (const Wire& w : wires_) {
    float y0 = row_y(w.from_row) + kRow / 2, y1 = row_y(w.to_row) + kRow / 2;
    if (y1 < kHeader || y0 > height_) continue;
    bool hot = selected_ >= 0 && (row_of_[selected_] == w.from_row || row_of_[selected_] == w.to_row);
    Ink ink = hot ? Ink::accent : Ink::secondary;
    float width = hot ? 2 : 1.2f, alpha = hot ? 1 : 0.7f;
    Point a{x(w.from_lane), y0}, b{x(w.to_lane), y1};
    if (w.from_lane == w.lane && w.lane == w.to_lane) {
      scene.line(a, b, ink, width, alpha);
      continue;
    }
    float lx = x(w.lane);
    Point c{lx, std::min(y0 + kRow * 0.8f, y1)}, d{lx, std::max(y1 - kRow * 0.8f, c.y)};
    if (c.x != a.x)
      scene.curve(a, c, ink, width, alpha, true);
    else
      d.y > a.y ? scene.line(a, d, ink, width, alpha) : void();
    if (c.x != a.x && d.y > c.y) scene.line(c, d, ink, width, alpha);
    if (d.x != b.x || d.y != b.y) scene.curve(d, b, ink, width, alpha, true);
  }
}

void AutogradModel::draw_row(Scene& scene, const Row& row, float y, float text_x, float width) {
  const auto& nodes = links_.record()->grad_nodes;
  const GradNode& g = nodes[row.node];
  bool selected = selected_ >= 0 && std::find(row.nodes.begin(), row.nodes.end(), selected_) != row.nodes.end();
  bool covered =
      selection_.kind == Selection::Kind::module && in_module(row.module, selection_.name) && !selection_.name.empty();
  bool bad = std::any_of(row.nodes.begin(), row.nodes.end(), [&](int n) { return bad_[n]; });
  if (selected || covered) scene.rect({0, y, width, kRow}, Ink::accent, selected ? 0.22f : 0.1f);
  if (row.first_of_module) scene.line({text_x, y}, {width - 12, y}, Ink::line, 1, 0.8f);
  Box whole{0, y, width, kRow};
  std::string tip = tr("{}\nsaves {} for backward", g.name, format_bytes(static_cast<double>(row.saved)));
  if (g.grad_norm >= 0 || bad) tip += "\n" + tr("gradient norm {}", format_exact(g.grad_norm));
  scene.target(whole, {row.folded ? group : node, row.node}, Cursor::hand, tip);

  // Columns: node, module, saved bytes, gradient norm, leaves.
  float name_w = 180, module_w = 120, saved_w = 120, x = text_x;
  const float norm_w = norm_width();
  float leaves_x = x + name_w + module_w + saved_w + norm_w + 24;
  // A folded module says what is in it, and its largest gradient.
  std::string name = g.name;
  double largest = g.grad_norm;
  if (row.folded) {
    std::vector<std::string> names;
    for (int n : row.nodes) {
      if (std::find(names.begin(), names.end(), nodes[n].name) == names.end()) names.push_back(nodes[n].name);
      if (!std::isnan(largest) && !(nodes[n].grad_norm <= largest)) largest = nodes[n].grad_norm;
    }
    name = fmt::format("▸ {}", fmt::join(names, ", "));
  }
  scene.text({x, y, name_w - 8, kRow}, name, bad ? Ink::bad_text : Ink::text, Face::body);
  x += name_w;
  if (row.first_of_module && !row.module.empty()) {
    Box box{x, y + 5, std::min(text_width(row.module, Face::small) + 22, module_w - 8), kRow - 10};
    scene.rect(box, Ink::raised, 1, 3);
    scene.text({box.x + 6, box.y, box.w - 8, box.h}, (row.folded ? "▸ " : "▾ ") + row.module, Ink::secondary,
               Face::small);
    scene.target(box, {group, row.node}, Cursor::hand,
                 row.module + "\n" + (row.folded ? tr("Click to show its nodes") : tr("Click to fold its nodes")));
  }
  x += module_w;
  if (row.saved > 0) {
    float w = std::max(2.f, static_cast<float>(row.saved) / static_cast<float>(most_saved_) * (saved_w - 70));
    scene.text({x, y, 62, kRow}, format_bytes(static_cast<double>(row.saved)), Ink::text, Face::mono_small,
               Align::right);
    scene.rect({x + 68, y + kRow / 2 - 4, w, 8}, Ink::memory_activation, 0.9f, 2);
  } else {
    scene.text({x, y, 62, kRow}, "–", Ink::secondary, Face::mono_small, Align::right);
  }
  x += saved_w;
  const std::string norm = largest >= 0 || std::isnan(largest) ? format_value(largest) : "–";
  scene.text({x, y, norm_w, kRow}, norm,
             bad           ? Ink::bad_text
             : norm == "–" ? Ink::secondary
                           : Ink::text,
             Face::mono_small, Align::right);
  x = leaves_x;
  for (int l : row.leaves) {
    const GradNode& leaf_node = nodes[l];
    std::string text = leaf_node.name;
    if (!row.module.empty() && text.starts_with(row.module + ".")) text = text.substr(row.module.size() + 1);
    std::string value = leaf_node.grad_norm >= 0 || std::isnan(leaf_node.grad_norm)
                            ? "‖g‖ " + format_value(leaf_node.grad_norm)
                            : tr("no gradient");
    float w = text_width(text, Face::small) + text_width(value, Face::mono_small) + 30;
    if (x + 60 > width) break;
    Box chip{x, y + 4, std::min(w, width - x - 8), kRow - 8};
    bool chosen = selected_ == l;
    scene.rect(chip, Ink::raised, 1, 4);
    scene.outline(chip, chosen ? Ink::accent : bad_[l] ? Ink::bad : Ink::line, chosen ? 2.f : 1.f, 4);
    scene.rect({chip.x + 7, chip.y + chip.h / 2 - 3, 6, 6}, Ink::memory_parameter, 1, 3);
    float tw = text_width(text, Face::small) + 2;
    scene.text({chip.x + 18, chip.y, std::min(tw, chip.w - 22), chip.h}, text, Ink::text, Face::small);
    if (chip.w > tw + 40)
      scene.text({chip.x + 20 + tw, chip.y, chip.w - tw - 26, chip.h}, value, bad_[l] ? Ink::bad_text : Ink::secondary,
                 Face::mono_small);
    scene.target(chip, {leaf, l}, Cursor::hand,
                 leaf_node.name + "\n" +
                     (leaf_node.grad_norm == -1 ? tr("gradient norm none: nothing reached it")
                                                : tr("gradient norm {}", format_exact(leaf_node.grad_norm))));
    x += chip.w + 8;
  }
}

void AutogradModel::draw(Scene& scene) {
  Size size = scene.size();
  height_ = size.h;
  if (empty()) return;
  scroll_ = std::clamp(scroll_, 0.f, std::max(0.f, static_cast<float>(rows_.size()) * kRow + kHeader + 8 - size.h));
  float graph_x = 20, text_x = graph_x + static_cast<float>(std::min(lanes_, 12)) * kLane + 8;
  scene.clip({0, kHeader, size.w, size.h - kHeader});
  int first = std::max(0, static_cast<int>(scroll_ / kRow) - 1),
      last = std::min<int>(static_cast<int>(rows_.size()), first + static_cast<int>(size.h / kRow) + 3);
  for (int r = first; r < last; ++r) draw_row(scene, rows_[r], row_y(r), text_x, size.w);
  draw_wires(scene, graph_x);
  for (int r = first; r < last; ++r) {
    float x = graph_x + static_cast<float>(rows_[r].lane) * kLane, y = row_y(r) + kRow / 2;
    bool bad = std::any_of(rows_[r].nodes.begin(), rows_[r].nodes.end(), [&](int n) { return bad_[n]; });
    bool selected = selected_ >= 0 && row_of_[selected_] == r;
    scene.rect({x - 6, y - 6, 12, 12}, Ink::panel, 1, 6);
    scene.rect({x - 5, y - 5, 10, 10},
               bad        ? Ink::bad
               : selected ? Ink::accent
                          : Ink::phase_backward,
               1, rows_[r].folded ? 2 : 5);
  }
  scene.unclip();
  float x = text_x;
  auto head = [&](float w, const std::string& text, Align align, float text_w) {
    scene.text({x, 0, text_w, kHeader}, text, Ink::secondary, Face::small, align);
    x += w;
  };
  head(180, tr("backward node"), Align::left, 170);
  head(120, tr("module"), Align::left, 110);
  head(120, tr("saved"), Align::right, 62);
  head(norm_width() + 24, tr("gradient norm"), Align::right, norm_width());
  head(120, tr("leaves"), Align::left, 110);
  std::string total = tr("{} nodes · {} saved", order_.size(), format_bytes(static_cast<double>(saved_)));
  if (size.w - x > text_width(total, Face::small) + 24)
    scene.text({x, 0, size.w - x - 12, kHeader}, total, Ink::secondary, Face::small, Align::right);
  scene.line({0, kHeader}, {size.w, kHeader}, Ink::line);
}

bool AutogradModel::pointer(const PointerEvent& e) {
  if (empty()) return false;
  switch (e.type) {
    case PointerEvent::Type::press:
      dragging_ = e.button == Button::left || e.button == Button::middle;
      moved_ = false;
      press_y_ = e.y;
      drag_scroll_ = scroll_;
      return false;
    case PointerEvent::Type::move:
      if (!dragging_) return false;
      if (std::fabs(e.y - press_y_) > 4) moved_ = true;
      if (moved_) scroll_ = drag_scroll_ + press_y_ - e.y;
      return moved_;
    case PointerEvent::Type::release: {
      bool was = dragging_;
      dragging_ = false;
      if (!was || moved_ || e.button != Button::left) return moved_;
      Hit hit = last_.hit_at(e.x, e.y);
      if (hit.kind == node || hit.kind == leaf) select(Selection::grad_node(hit.id, "autograd"));
      if (hit.kind == group) toggle(module_path(links_.record()->grad_nodes[hit.id].module));
      return true;
    }
    default:
      return false;
  }
}

bool AutogradModel::wheel(const WheelEvent& e) {
  if (empty() || e.dy == 0) return false;
  scroll_ -= e.dy * 60;
  return true;
}

/// From a node to its leaves, through them, and back.
bool AutogradModel::next_leaf(const Row& row, int direction) {
  const auto at = std::find(row.leaves.begin(), row.leaves.end(), selected_);
  const int now = at == row.leaves.end() ? -1 : static_cast<int>(at - row.leaves.begin());
  const int to = std::clamp(now + direction, -1, static_cast<int>(row.leaves.size()) - 1);
  if (to != now) select(Selection::grad_node(to < 0 ? row.node : row.leaves[to], "autograd"));
  return true;
}

bool AutogradModel::key(const KeyEvent& e) {
  if (empty()) return false;
  int row = selected_ >= 0 ? row_of_[selected_] : -1;
  if (e.key == "Down")
    row = std::min(row + 1, static_cast<int>(rows_.size()) - 1);
  else if (e.key == "Up")
    row = std::max(row - 1, 0);
  else if (e.key == "PgDown" || e.key == "PgUp") {
    scroll_ += (e.key == "PgDown" ? 1 : -1) * (height_ - 2 * kRow);
    return true;
  } else if (e.key == "Home")
    row = 0;
  else if (e.key == "End")
    row = static_cast<int>(rows_.size()) - 1;
  else if (row >= 0 && (e.key == "Return" || e.key == "Enter" || e.key == "Left" || e.key == "Right")) {
    const Row& at = rows_[row];
    const bool folded = at.folded;
    if (e.key == "Right" && !folded) return next_leaf(at, 1);
    if (e.key == "Left" && links_.record()->grad_nodes[selected_].leaf) return next_leaf(at, -1);
    if (!at.module.empty() && folded != (e.key == "Left")) toggle(std::string(at.module));
    return true;
  } else
    return false;
  select(Selection::grad_node(rows_[row].node, "autograd"));
  reveal(rows_[row].node);
  return true;
}

Table AutogradModel::table() const {
  Table t;
  t.columns = {
      {tr("Node")}, {tr("Module")}, {tr("Saved"), true}, {tr("Gradient norm"), true}, {tr("Forward op"), true}};
  if (!links_) return t;
  const auto& nodes = links_.record()->grad_nodes;
  auto add = [&](int i) {
    const GradNode& g = nodes[i];
    Table::Row row;
    row.selection = Selection::grad_node(i, "autograd table");
    row.cells = {{g.name, 0, {}, g.leaf ? Ink::memory_parameter : Ink::phase_backward},
                 {module_path(g.module), 0, {}, Ink::none},
                 Table::Cell::number(static_cast<double>(g.saved_bytes),
                                     g.saved_bytes ? format_bytes(static_cast<double>(g.saved_bytes)) : "–"),
                 Table::Cell::number(g.grad_norm, g.grad_norm == -1 ? "–" : format_value(g.grad_norm)),
                 Table::Cell::number(g.forward_seq, g.forward_seq ? "#" + std::to_string(g.forward_seq) : "–")};
    t.rows.push_back(std::move(row));
  };
  for (int i : order_) {
    add(i);
    for (int l : leaves_[i]) add(l);
  }
  return t;
}

std::string AutogradModel::summary() const {
  if (!links_) return tr("Autograd graph: no step is loaded");
  std::string text =
      tr("Autograd graph of step {}: {} nodes, {} saved for backward", format_grouped(links_.record()->step),
         order_.size(), format_bytes(static_cast<double>(saved_)));
  if (selected_ < 0) return text;
  const GradNode& g = links_.record()->grad_nodes[selected_];
  text += tr("; chosen: {}", g.name);
  if (const std::string& module = module_path(g.module); !g.leaf && !module.empty()) text += tr(" of {}", module);
  if (g.grad_norm >= 0 || std::isnan(g.grad_norm)) text += tr(", gradient norm {}", format_value(g.grad_norm));
  return text;
}

}  // namespace tenon::views
