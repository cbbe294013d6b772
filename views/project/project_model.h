#pragma once
#include <string>
#include <vector>

#include "projects/run_driver.h"
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
    /// Equal but for what lies below.
    bool same_line(const Node& o) const;
    bool operator==(const Node& o) const;
  };

  /// The tree as it is to be shown, where `status` is that of the run which trains (or trained last) in this window.
  /// Equal trees need no repaint.
  static std::vector<Node> tree(const ProjectContents& contents, const projects::RunStatus& status);
  /// The files that are open beside the project.
  static Node opened(const std::vector<Document>& documents);
};

}  // namespace tenon::views
