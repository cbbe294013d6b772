#pragma once
#include <string>
#include <vector>

#include "views/shared/document.h"
#include "views/shared/project_contents.h"
#include "views/shared/selection.h"
#include "views/shared/tokens.h"

namespace tenon::views {

/// What a project holds, as one tree: the model, the runs with their checkpoints, traces and exports.
struct ProjectModel {
  struct Node {
    std::string icon;        ///< name of an icon of the resources
    std::string text, note;  ///< the name, and what is said of it in a quieter voice
    std::string tip;
    Ink mark = Ink::none;
    Selection selection;
    std::vector<Node> children;
    std::string brief = {};  ///< what of the note stands where there is no room for all of it; empty: the whole
    /// Equal but for what lies below.
    bool same_line(const Node& o) const;
    bool operator==(const Node& o) const;
  };

  /// Equal trees need no repaint.
  static std::vector<Node> tree(const ProjectContents& contents);
  /// The files that are open beside the project.
  static Node opened(const std::vector<Document>& documents);
};

}  // namespace tenon::views
