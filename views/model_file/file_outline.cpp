#include "views/model_file/file_outline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tenon::views {

namespace {
constexpr int kFirstRows = 40, kFirstCells = 24;

ScopeTree tree_of(const formats::ModelFile& file) {
  std::vector<ScopeTree::Item> items;
  items.reserve(file.tensors.size());
  for (const auto& e : file.tensors)
    items.push_back({.scope = {},
                     .name = e.name,
                     .form = fmt::format("{} {}", e.dtype, fmt::join(e.shape, " ")),
                     .elements = e.elements(),
                     .bytes = e.bytes});
  return ScopeTree(items);
}
}  // namespace

FileOutline::FileOutline(std::shared_ptr<const formats::ModelFile> of)
    : file(std::move(of)), tensors(tree_of(*file)), open_tensors(tensors.first_open(kFirstRows)) {
  if (file->nodes.empty()) return;
  graph.emplace(file);
  open_nodes = graph->tree.first_open(kFirstCells);
  layout = lay_out(*graph, open_nodes);
}

}  // namespace tenon::views
