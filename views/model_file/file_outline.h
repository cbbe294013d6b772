#pragma once
#include <memory>
#include <optional>

#include "views/model_file/op_graph.h"

namespace tenon::views {

/// What is worked out of a model file once, away from the UI thread, before it is drawn.
struct FileOutline {
  std::shared_ptr<const formats::ModelFile> file;
  ScopeTree tensors;             ///< its items are the file's tensors
  std::set<int> open_tensors;    ///< scopes that are open at first
  std::optional<OpGraph> graph;  ///< nothing: the format has none
  std::set<int> open_nodes;
  GraphLayout layout;  ///< of the graph as it is at first

  explicit FileOutline(std::shared_ptr<const formats::ModelFile> of);
};

}  // namespace tenon::views
