// The page of a model file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "engine/formats/model_file.h"
#include "views/model_file/model_file_model.h"
#include "views/report/document_report.h"
#include "views/shared/axis.h"
#include "views/shared/format.h"
#include "views/shared/scene_svg.h"

namespace tenon::views {

using formats::ModelFile;

namespace {
constexpr float kModelWidth = 920;
constexpr size_t kLayersDrawn = 24, kRowsUnfolded = 60;

/// Tensors whose names differ in their last part alone.
struct FileLayer {
  std::string name;
  size_t tensors = 0;
  int64_t elements = 0;
  uint64_t bytes = 0;
  std::string holds;  ///< "weight [64, 3, 7, 7], bias [64]"
};

std::string shape_text(const ModelFile::Entry& e) { return fmt::format("[{}]", fmt::join(e.shape, ", ")); }

/// In the order of the file.
std::vector<FileLayer> layers_of(const ModelFile& m) {
  std::vector<FileLayer> all;
  std::map<std::string, size_t> places;
  for (const ModelFile::Entry& e : m.tensors) {
    const size_t dot = e.name.find_last_of("./");
    const std::string layer = dot == e.name.npos ? "" : e.name.substr(0, dot);
    const std::string last = dot == e.name.npos ? e.name : e.name.substr(dot + 1);
    const auto [at, fresh] = places.try_emplace(layer, all.size());
    if (fresh) all.push_back({layer.empty() ? "(outermost)" : layer});
    FileLayer& l = all[at->second];
    ++l.tensors;
    l.elements += std::min(e.elements(), INT64_MAX - l.elements);
    l.bytes += e.bytes;
    if (l.tensors <= 6) l.holds += (l.tensors > 1 ? ", " : "") + last + " " + shape_text(e);
    if (l.tensors == 7) l.holds += ", …";
  }
  return all;
}

Table::Cell told(std::string text) { return {std::move(text), 0, {}, Ink::none}; }
Table::Cell bytes_told(uint64_t bytes) {
  return Table::Cell::number(static_cast<double>(bytes), format_bytes(static_cast<double>(bytes)));
}
Table::Cell counted(int64_t n) { return Table::Cell::number(static_cast<double>(n), format_grouped(n)); }

/// A bar a layer, as long as it has bytes.
std::string picture_of(std::vector<FileLayer> layers, const std::string& title) {
  std::stable_sort(layers.begin(), layers.end(),
                   [](const FileLayer& a, const FileLayer& b) { return a.bytes > b.bytes; });
  if (layers.size() > kLayersDrawn) layers.resize(kLayersDrawn);
  constexpr float kRow = 20, kNames = 300, kNumbers = 84;
  Scene scene({kModelWidth, kRow * static_cast<float>(layers.size()) + 12});
  const double most = std::max(1.0, static_cast<double>(layers.empty() ? 1 : layers[0].bytes));
  float y = 6;
  for (const FileLayer& l : layers) {
    const float w = static_cast<float>(static_cast<double>(l.bytes) / most) * (kModelWidth - kNames - kNumbers - 20);
    scene.text({8, y, kNames - 16, kRow}, l.name, Ink::text, Face::small, Align::right);
    scene.rect({kNames, y + 3, std::max(w, 1.f), kRow - 6}, Ink::memory_parameter, 0.95f, 2);
    scene.text({kNames + w + 6, y, kNumbers, kRow}, format_bytes(static_cast<double>(l.bytes)), Ink::secondary,
               Face::mono_small);
    scene.target({0, y, kModelWidth, kRow}, {}, Cursor::arrow, l.name + ": " + l.holds);
    y += kRow;
  }
  return to_inline_svg(scene, title, "layers-");
}

void tell_table(HtmlPage& page, const std::string& title, const Table& t) {
  if (t.rows.size() > kRowsUnfolded)
    return page.folded(fmt::format("{} ({} rows)", title, format_grouped(static_cast<int64_t>(t.rows.size()))), t);
  page.heading(title);
  page.table(t);
}

void tell_what(HtmlPage& page, const ModelFile& m) {
  page.section("what", "What it is");
  std::vector<std::pair<std::string, std::string>> facts = {{"Format", formats::describe(m.kind)}};
  for (const ModelFile::Fact& f : m.facts) facts.emplace_back(f.head(), f.text());
  facts.emplace_back("Tensors", format_grouped(static_cast<int64_t>(m.tensors.size())));
  facts.emplace_back("Elements", format_grouped(m.elements()));
  facts.emplace_back("Bytes of values", format_bytes(static_cast<double>(m.bytes())));
  for (const auto& [dtype, bytes] : m.bytes_by_dtype())
    facts.emplace_back("of " + dtype, format_bytes(static_cast<double>(bytes)));
  if (!m.nodes.empty()) facts.emplace_back("Nodes", format_grouped(static_cast<int64_t>(m.nodes.size())));
  for (const ModelFile::Value& v : m.inputs) facts.emplace_back("Input", v.name + " " + v.type);
  for (const ModelFile::Value& v : m.outputs) facts.emplace_back("Output", v.name + " " + v.type);
  for (const std::string& f : m.foreign) facts.emplace_back("Asks for", f + ": no data; shown, never run");
  for (const std::string& w : m.warnings) facts.emplace_back("Warning", w);
  page.facts(facts);
}

void tell_layers(HtmlPage& page, const ModelFile& m) {
  if (m.tensors.empty()) return;
  page.section("layers", "Layers");
  const std::vector<FileLayer> layers = layers_of(m);
  page.figure(picture_of(layers, "Bytes by layer"),
              layers.size() > kLayersDrawn
                  ? fmt::format("Bytes of the {} largest of {} layers.", kLayersDrawn, layers.size())
                  : "Bytes of every layer.");
  Table t;
  t.columns = {{"Layer"}, {"Tensors", true}, {"Elements", true}, {"Bytes", true}, {"Holds"}};
  for (const FileLayer& l : layers)
    t.rows.push_back({{told(l.name), counted(static_cast<int64_t>(l.tensors)), counted(l.elements), bytes_told(l.bytes),
                       told(l.holds)},
                      {}});
  tell_table(page, "Layers in the order of the file", t);
  Table all;
  all.columns = {{"Tensor"}, {"Type"}, {"Shape"}, {"Elements", true}, {"Bytes", true}, {""}};
  for (const ModelFile::Entry& e : m.tensors)
    all.rows.push_back({{told(e.name), told(e.dtype), told(shape_text(e)), counted(e.elements()), bytes_told(e.bytes),
                         told(e.problem.empty() ? e.category : e.problem)},
                        {}});
  tell_table(page, "Tensors", all);
}

void tell_graph(HtmlPage& page, const Document& d) {
  const ModelFile& m = *d.model;
  if (m.nodes.empty()) return;
  page.section("graph", "Graph");
  ModelFileModel view;
  view.set_document(&d);
  if (view.wants_outline()) view.set_outline(std::make_shared<const FileOutline>(d.model));
  if (view.has_graph()) {
    view.show_page(ModelFileModel::Page::graph);
    // As large as the graph is at half its size, which is as small as its letters can be read.
    const GraphLayout& laid = view.outline()->layout;
    const Size size{std::clamp((laid.right - laid.left) / 2 + 60, kModelWidth, 2400.f),
                    std::clamp(laid.bottom / 2 + 100, 300.f, 3200.f)};
    page.figure(to_inline_svg(view.frame(size), "Graph of " + d.title, "graph-"),
                "The graph from its inputs at the top to its outputs; a module is a box.");
  }
  std::map<std::string, int64_t> operators;
  for (const ModelFile::Node& n : m.nodes) ++operators[n.op];
  Table ops;
  ops.columns = {{"Operator"}, {"Nodes", true}};
  for (const auto& [op, n] : operators) ops.rows.push_back({{told(op), counted(n)}, {}});
  tell_table(page, "Operators", ops);
  Table nodes;
  nodes.columns = {{"Node"}, {"Operator"}, {"Module"}, {"Reads"}, {"Makes"}, {"Settings"}};
  for (const ModelFile::Node& n : m.nodes) {
    std::string settings;
    for (const auto& [key, value] : n.attributes) settings += (settings.empty() ? "" : ", ") + key + " " + value;
    nodes.rows.push_back({{told(n.name), told(n.op), told(n.scope), told(fmt::format("{}", fmt::join(n.inputs, ", "))),
                           told(fmt::format("{}", fmt::join(n.outputs, ", "))), told(elide_middle(settings, 200))},
                          {}});
  }
  page.folded(fmt::format("Nodes ({} rows)", format_grouped(static_cast<int64_t>(nodes.rows.size()))), nodes);
}
}  // namespace

void tell_model_file(HtmlPage& page, const Document& d) {
  const ModelFile& m = *d.model;
  tell_what(page, m);
  tell_layers(page, m);
  tell_graph(page, d);
  if (m.texts.empty()) return;
  page.section("metadata", "Metadata");
  Table t;
  t.columns = {{"Name"}, {"Value"}};
  for (const auto& [name, value] : m.texts) t.rows.push_back({{told(name), told(elide_middle(value, 2000))}, {}});
  page.table(t);
}

}  // namespace tenon::views
