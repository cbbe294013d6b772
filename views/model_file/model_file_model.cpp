#include "views/model_file/model_file_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/tensor_stats.h"

namespace tenon::views {

namespace {
constexpr const char* kModelFileSource = "model_file";
constexpr float kEdge = 12, kSideBySide = 620;
}  // namespace

ModelFileModel::State* ModelFileModel::state() {
  const auto at = states_.find(document_);
  return file_ && at != states_.end() ? &at->second : nullptr;
}

const ModelFileModel::State* ModelFileModel::state() const {
  const auto at = states_.find(document_);
  return file_ && at != states_.end() ? &at->second : nullptr;
}

/// While something else is shown the last model file stays.
void ModelFileModel::set_document(const Document* d) {
  if (!d || !d->model) return;
  file_ = d->model;
  document_ = d->id;
  if ((page_ == Page::graph && !has_graph()) || (page_ == Page::code && !has_code())) page_ = Page::tensors;
  if (ready()) search(words_);
  if (on_page) on_page();
  changed();
}

void ModelFileModel::keep(const std::set<int>& documents) {
  std::erase_if(states_, [&](const auto& s) { return !documents.contains(s.first); });
  if (!file_ || documents.contains(document_)) return;
  file_ = nullptr;
  document_ = Document::kProject;
  page_ = Page::tensors;
  changed();
}

void ModelFileModel::set_outline(std::shared_ptr<const FileOutline> outline) {
  if (outline->file != file_ || ready()) return;
  State& s = states_[document_];
  s.file = file_;
  s.list.show(outline);
  s.graph.show(std::move(outline));
  s.graph.on_need_layout = [this, file = file_](std::set<int> open) {
    if (on_need_layout) on_need_layout(file, std::move(open));
  };
  search(words_);
  set_selection(selection_);
  if (on_page) on_page();
  changed();
}

void ModelFileModel::set_selection(const Selection& s) {
  selection_ = s;
  if (!ready() || s.document != document_) return;
  const bool own = s.source == kModelFileSource;
  if (s.kind == Selection::Kind::file_tensor) {
    const int tensor = file_->find_tensor(s.name);
    if (tensor < 0) return;
    if (!own) show_page(Page::tensors);
    if (!own && !state()->list.shows(tensor)) {
      search({});
      if (on_page) on_page();
    }
    if (!own || state()->list.tensor() != tensor) state()->list.reveal(tensor);
    choose(tensor);
  } else if (s.kind == Selection::Kind::file_node && has_graph() && s.id >= 0 &&
             s.id < state()->graph.graph().nodes()) {
    if (!own && s.source != kRunSource) show_page(Page::graph);
    if (!own) state()->graph.reveal(static_cast<int>(s.id));
  }
  changed();
}

void ModelFileModel::choose(int tensor) {
  State& s = *state();
  if (s.pane.tensor() == tensor && s.pane.file()) return;
  s.pane.show(s.file, tensor);
  if (const auto known = s.stats.find(tensor); known != s.stats.end()) s.pane.set_stats(known->second);
  if (on_choose) on_choose();
}

/// The row in focus is what the window selects, where it is a tensor.
void ModelFileModel::follow_focus() {
  const int tensor = state()->list.tensor();
  if (tensor < 0) return;
  choose(tensor);
  select(Selection::file_tensor(document_, file_->tensors[static_cast<size_t>(tensor)].name, kModelFileSource));
}

void ModelFileModel::choose_in_graph(int node) {
  GraphPane& g = state()->graph;
  g.set_focus(node);
  const int item = g.item();
  if (item >= 0 && item < g.graph().nodes()) select(Selection::file_node(document_, item, kModelFileSource));
}

void ModelFileModel::show_page(Page page) {
  if ((page == Page::graph && !has_graph()) || (page == Page::code && !has_code()) || (page == Page::run && !ready()))
    return;
  if (page == page_) return;
  page_ = page;
  if (on_page) on_page();
  changed();
}

void ModelFileModel::search(const std::string& words) {
  words_ = words;
  if (!ready()) return;
  state()->list.search(words);
  state()->graph.search(words);
  changed();
}

std::string ModelFileModel::found_text() const {
  if (!ready() || words_.empty() || page_ == Page::run || page_ == Page::code) return {};
  if (page_ == Page::graph)
    return tr("{} of {} nodes", format_grouped(state()->graph.found()), format_grouped(state()->graph.graph().items()));
  return tr("{} of {} tensors", format_grouped(list().found()),
            format_grouped(static_cast<int64_t>(file_->tensors.size())));
}

void ModelFileModel::next_found(int direction) {
  if (!ready() || words_.empty()) return;
  State& s = *state();
  if (page_ == Page::graph) {
    if (const int item = s.graph.next_found(direction); item >= 0) {
      s.graph.reveal(item);
      choose_in_graph(s.graph.graph().tree.leaf_of(item));
    }
  } else {
    for (size_t tries = 0; tries < s.list.rows().size(); ++tries) {
      const int before = s.list.focus();
      if (!s.list.move(direction) || s.list.focus() == before) break;
      if (s.list.tensor() >= 0) break;
    }
    follow_focus();
  }
  changed();
}

void ModelFileModel::open_all(bool open) {
  if (!ready()) return;
  if (page_ == Page::graph)
    state()->graph.open_all(open);
  else
    state()->list.open_all(open);
  changed();
}

void ModelFileModel::set_slice(const File& file, int tensor, ValueSlice slice) {
  if (!ready() || file != file_ || pane().tensor() != tensor) return;
  pane().set_slice(std::move(slice));
  changed();
}

void ModelFileModel::set_stats(const File& file, int tensor, const TensorStats& stats) {
  for (auto& [id, s] : states_) {
    if (s.file != file) continue;
    s.stats[tensor] = stats;
    if (s.pane.tensor() == tensor) s.pane.set_stats(stats);
  }
  changed();
}

void ModelFileModel::stop(const File& file, int tensor, const std::string& why) {
  for (auto& [id, s] : states_)
    if (s.file == file && s.pane.tensor() == tensor) s.pane.stop(why);
  changed();
}

void ModelFileModel::set_progress(double share) {
  if (!ready()) return;
  pane().set_progress(share);
  changed();
}

void ModelFileModel::set_layout(const File& file, GraphLayout layout, std::set<int> open) {
  for (auto& [id, s] : states_)
    if (s.file == file && s.graph.any()) s.graph.set_layout(std::move(layout), std::move(open));
  changed();
}

std::string ModelFileModel::chosen_name() const {
  if (!ready()) return {};
  if (page_ == Page::graph) {
    const GraphPane& g = state()->graph;
    return g.focus() <= 0 ? std::string() : g.item() >= 0 ? g.graph().name(g.item()) : g.graph().tree.path(g.focus());
  }
  const int tensor = list().tensor();
  return tensor < 0 ? std::string() : file_->tensors[static_cast<size_t>(tensor)].name;
}

bool ModelFileModel::click(const Hit& hit, Mods mods, bool twice) {
  State& s = *state();
  const auto id = static_cast<int>(hit.id);
  switch (hit.kind) {
    case ScopeList::row:
      s.list.set_focus(id);
      if (twice) s.list.toggle(id);
      follow_focus();
      return true;
    case ScopeList::fold:
      s.list.set_focus(id);
      s.list.toggle(id);
      return true;
    case TensorPane::axis_down:
    case TensorPane::axis_up:
      if (s.pane.step(id, (hit.kind == TensorPane::axis_up ? 1 : -1) * (mods.shift ? 10 : 1)) && on_choose) on_choose();
      return true;
    case TensorPane::cancel:
      if (on_cancel) on_cancel();
      return true;
    case TensorPane::read_again:
      s.pane.read();
      if (on_choose) on_choose();
      return true;
    case GraphPane::cell:
      choose_in_graph(id);
      if (twice) s.graph.toggle(id);
      return true;
    default:
      return false;
  }
}

bool ModelFileModel::pointer(const PointerEvent& e) {
  if (!ready()) return false;
  using Type = PointerEvent::Type;
  switch (e.type) {
    case Type::press:
      dragging_ = e.button == Button::left || e.button == Button::middle;
      moved_ = false;
      pressed_ = at_ = {e.x, e.y};
      if (const Hit hit = last_.hit_at(e.x, e.y);  // what the menu will be about
          e.button == Button::right && (hit.kind == ScopeList::row || hit.kind == GraphPane::cell))
        return click(hit, e.mods, false);
      return false;
    case Type::move:
      if (!dragging_) return false;
      if (std::hypot(e.x - pressed_.x, e.y - pressed_.y) > 4) moved_ = true;
      if (moved_ && page_ == Page::graph)
        state()->graph.pan(e.x - at_.x, e.y - at_.y);
      else if (moved_ && list_box_.contains(pressed_.x, pressed_.y))
        state()->list.scroll(at_.y - e.y);
      if (moved_) at_ = {e.x, e.y};
      return moved_;
    case Type::release: {
      const bool was = dragging_ && !moved_ && e.button == Button::left;
      dragging_ = false;
      return was && click(last_.hit_at(e.x, e.y), e.mods, false);
    }
    case Type::double_click: {
      dragging_ = false;
      const Hit hit = last_.hit_at(e.x, e.y);
      return (hit.kind == ScopeList::row || hit.kind == GraphPane::cell) && click(hit, e.mods, true);
    }
    default:
      return false;
  }
}

bool ModelFileModel::wheel(const WheelEvent& e) {
  if (!ready()) return false;
  constexpr float kNotch = 60;
  State& s = *state();
  if (page_ == Page::graph) {
    if (e.mods.ctrl)
      s.graph.zoom(std::pow(1.15f, e.dy), {e.x, e.y});
    else if (e.mods.shift)
      s.graph.pan(e.dy * kNotch, 0);
    else
      s.graph.pan(e.dx * kNotch, e.dy * kNotch);
    return true;
  }
  if (!list_box_.contains(e.x, e.y) || e.dy == 0) return false;
  s.list.scroll(-e.dy * kNotch);
  return true;
}

bool ModelFileModel::list_key(const KeyEvent& e) {
  ScopeList& list = state()->list;
  TensorPane& pane = state()->pane;
  const int rows = std::max(1, static_cast<int>(list.page() / 24) - 1);
  const int by = e.key == "Down"     ? 1
                 : e.key == "Up"     ? -1
                 : e.key == "PgDown" ? rows
                 : e.key == "PgUp"   ? -rows
                 : e.key == "Home"   ? -static_cast<int>(list.rows().size())
                 : e.key == "End"    ? static_cast<int>(list.rows().size())
                                     : 0;
  if (by) {
    if (!list.move(by)) return false;
    follow_focus();
    return true;
  }
  if (e.key == "[" || e.key == "]") {
    if (pane.next_slice(e.key == "]" ? 1 : -1) && on_choose) on_choose();
    return true;
  }
  if (e.key == "T") {
    if (pane.swap_axes() && on_choose) on_choose();
    return true;
  }
  const int focus = list.focus();
  if (focus <= 0) return (e.key == "Left" || e.key == "Right") && list.move(1);
  const bool open = list.is_open(focus), leaf = list.tensor() >= 0;
  if (e.key == "Return" || e.key == "Enter" || (e.key == "Right" && !open) || (e.key == "Left" && open && !leaf)) {
    if (!leaf) list.toggle(focus);
    return true;
  }
  if (e.key == "Right") return list.move(1) && (follow_focus(), true);
  if (e.key != "Left") return false;
  if (const int scope = list.scope_of(focus); scope > ScopeTree::kRoot) list.set_focus(scope);
  return true;
}

bool ModelFileModel::graph_key(const KeyEvent& e) {
  GraphPane& g = state()->graph;
  if (e.key == "Up" || e.key == "Down" || e.key == "Left" || e.key == "Right") {
    if (g.move(e.key)) choose_in_graph(g.focus());
    return true;
  }
  if (e.key == "Return" || e.key == "Enter")
    g.toggle(g.focus());
  else if (e.key == "Backspace")
    g.fold(g.focus());
  else if (e.key == "F")
    g.fit();
  else if (e.key == "+" || e.key == "=" || e.key == "-")
    g.zoom(e.key == "-" ? 1 / 1.25f : 1.25f, {graph_box_.x + graph_box_.w / 2, graph_box_.y + graph_box_.h / 2});
  else
    return false;
  return true;
}

bool ModelFileModel::key(const KeyEvent& e) {
  if (!ready()) return false;
  if (e.key == "N") {
    next_found(e.mods.shift ? -1 : 1);
    return true;
  }
  return page_ == Page::graph ? graph_key(e) : list_key(e);
}

/// What the file is, in as few lines as it takes; their height.
float ModelFileModel::draw_head(Scene& scene, Box b) const {
  std::vector<std::string> said = {describe(file_->kind)};
  for (const auto& f : file_->facts)
    if (f.name != "doc" && !f.text().empty()) said.push_back(f.head() + " " + f.text());
  scene.text({b.x, b.y, b.w, 20}, fmt::format("{}", fmt::join(said, " · ")), Ink::text, Face::small);
  std::vector<std::string> parts;
  for (const auto& [dtype, bytes] : file_->bytes_by_dtype())
    parts.push_back(dtype + " " + format_bytes(static_cast<double>(bytes)));
  if (parts.size() > 4) parts.resize(4), parts.emplace_back("…");
  std::string line = tr("{} · {} elements · {}", format_tensors(file_->tensors.size()),
                        format_grouped(file_->elements()), format_bytes(static_cast<double>(file_->bytes())));
  if (!parts.empty()) line += fmt::format(": {}", fmt::join(parts, ", "));
  if (!file_->nodes.empty()) line += " · " + tr("{} nodes", format_grouped(static_cast<int64_t>(file_->nodes.size())));
  scene.text({b.x, b.y + 19, b.w, 20}, line, Ink::secondary, Face::small);
  if (file_->foreign.empty() && file_->warnings.empty()) return 42;
  const std::string odd = file_->foreign.empty() ? file_->warnings.front()
                          : file_->foreign.size() == 1
                              ? tr("asks for {}, which is no data: shown, never run", file_->foreign.front())
                              : tr("asks for {} and {} more, which is no data: shown, never run",
                                   file_->foreign.front(), file_->foreign.size() - 1);
  scene.text({b.x, b.y + 38, b.w, 20}, odd, Ink::warning_text, Face::small);
  return 61;
}

void ModelFileModel::draw(Scene& scene) {
  list_box_ = pane_box_ = graph_box_ = {};
  const Size size = scene.size();
  if (!ready() || size.w < 2 * kEdge + 100 || size.h < 100) return;
  State& s = *state();
  const float top = 6 + draw_head(scene, {kEdge, 6, size.w - 2 * kEdge, 60});
  scene.line({0, top}, {size.w, top}, Ink::line);
  const float height = size.h - top;
  if (page_ == Page::graph) {
    graph_box_ = {0, top + 1, size.w, height - 1};
    return s.graph.draw(scene, graph_box_);
  }
  const bool side = size.w >= kSideBySide;
  const float pane = side ? std::clamp(size.w * 0.36f, 250.f, 440.f) : 0;
  list_box_ = {0, top, size.w - (side ? pane + 2 * kEdge : 0), height};
  s.list.draw(scene, list_box_);
  if (!side) return;
  const float x = list_box_.right();
  scene.line({x, top}, {x, size.h}, Ink::line);
  pane_box_ = {x + kEdge, top + 8, pane, height - 14};
  scene.clip(pane_box_);
  s.pane.draw(scene, pane_box_);
  scene.unclip();
}

Table ModelFileModel::table() const {
  Table t;
  if (!file_) return t;
  if (page_ == Page::graph) {
    t.columns = {{tr("Node")}, {tr("Op")}, {tr("Module")}, {tr("Reads")}, {tr("Makes")}};
    for (size_t i = 0; i < file_->nodes.size(); ++i) {
      const auto& n = file_->nodes[i];
      Table::Row row;
      row.selection = Selection::file_node(document_, static_cast<int64_t>(i), "model_file table");
      row.cells = {{n.name, 0, {}, Ink::none},
                   {n.op, 0, {}, Ink::none},
                   {n.scope, 0, {}, Ink::none},
                   {fmt::format("{}", fmt::join(n.inputs, ", ")), 0, {}, Ink::none},
                   {fmt::format("{}", fmt::join(n.outputs, ", ")), 0, {}, Ink::none}};
      t.rows.push_back(std::move(row));
    }
    return t;
  }
  t.columns = {{tr("Tensor")},         {tr("Dtype")},       {tr("Shape")},
               {tr("Elements"), true}, {tr("Bytes"), true}, {tr("Share"), true}};
  const double all = std::max(1.0, static_cast<double>(file_->bytes()));
  for (const auto& e : file_->tensors) {
    Table::Row row;
    row.selection = Selection::file_tensor(document_, e.name, "model_file table");
    const auto bytes = static_cast<double>(e.bytes);
    row.cells = {{e.name, 0, {}, Ink::none},
                 {e.dtype, 0, e.problem, Ink::none},
                 {fmt::format("[{}]", fmt::join(e.shape, ", ")), 0, {}, Ink::none},
                 Table::Cell::number(static_cast<double>(e.elements()), format_grouped(e.elements())),
                 Table::Cell::number(bytes, format_bytes(bytes)),
                 Table::Cell::number(bytes / all, format_percent(bytes / all))};
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string ModelFileModel::summary() const {
  if (!file_) return tr("Model file: none is shown");
  std::string out = tr("Model file: {}, {}, {}", describe(file_->kind), format_tensors(file_->tensors.size()),
                       format_bytes(static_cast<double>(file_->bytes())));
  if (!ready()) return out;
  if (page_ == Page::graph) return out + "; " + state()->graph.summary();
  if (list().focus() > 0 && list().tensor() < 0) out += tr("; row: {}", list().row_text(list().focus()));
  return out + state()->pane.summary();
}

}  // namespace tenon::views
